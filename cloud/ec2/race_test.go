//go:build race

package ec2

// The race detector makes each story five times as long and finds its races in the
// first few; the whole number is told without it.
const fewCases, someCases, allCases = 500, 1_000, 1_000
