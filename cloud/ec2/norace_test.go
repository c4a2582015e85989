//go:build !race

package ec2

// How many random stories the two promises about money are held by, in make test, in
// make test-stories and in make test-long.
const fewCases, someCases, allCases = 500, 2_000, 10_000
