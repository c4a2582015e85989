//go:build race

package archtest

// mostAtStart is more where the race detector looks on: what is built with it allocates
// where it otherwise would not.
const mostAtStart = 3_500_000
