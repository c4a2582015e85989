//go:build race

package ec2

// cases: the race detector makes each story five times as long and finds its
// races in the first few; the whole number is told without it (make test).
const cases = 1_000
