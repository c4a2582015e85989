//go:build !race

package ec2

// How many random stories the two promises about money are held by, in make test and
// in make test-long.
const someCases, allCases = 2_000, 10_000
