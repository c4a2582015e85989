//go:build !race

package archtest

// mostAtStart is how many bytes packages may allocate before main begins. The first
// garbage collection comes at 4 MB, and then each start of the program pays for it.
const mostAtStart = 2_750_000
