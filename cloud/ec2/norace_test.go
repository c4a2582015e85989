//go:build !race

package ec2

// cases is how many random stories the two promises about money are held by.
const cases = 10_000
