// Package crash reads what a Go program leaves when its runtime ends it: many lines of
// stacks, in which the one that says why comes first. What the limits of a login do to
// dlwb's agent is said in words, as whoever reads it can lift them.
package crash

import "strings"

// limits are words of the runtime, and what keeps the program from running.
var limits = []struct{ said, why string }{
	{"failed to create new OS thread", "its user may start no more processes or threads there (ulimit -u)"},
	{"newosproc", "its user may start no more processes or threads there (ulimit -u)"},
	{"pthread_create failed", "its user may start no more processes or threads there (ulimit -u)"},
	{"failed to reserve page summary memory", "programs get too little address space there (ulimit -v)"},
	{"cannot reserve arena virtual address space", "programs get too little address space there (ulimit -v)"},
	{"runtime: cannot allocate memory", "it gets no memory there"},
	{"fatal error: runtime: out of memory", "it gets no memory there"},
}

// Why is the reason in what a program has said when its runtime ended it; limit: the
// machine lets it have too little. Empty: its runtime did not end it.
func Why(said string) (why string, limit bool) {
	for _, l := range limits {
		if strings.Contains(said, l.said) {
			return l.why, true
		}
	}
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") {
			return line, false
		}
	}
	return "", false
}
