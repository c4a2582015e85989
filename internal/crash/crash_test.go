package crash

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

func TestTheReasonIsFoundBeforeTheStacks(t *testing.T) {
	for said, want := range map[string]struct {
		why   string
		limit bool
	}{
		"":                      {},
		"gzip: not found\n":     {},
		"it said: panic: no\n":  {},
		"x\npanic: oh\n\ngorou": {"panic: oh", false},
		"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1": {"fatal error: all goroutines are asleep - deadlock!", false},
		"runtime: failed to create new OS thread (have 5 already; errno=11)\nruntime: may need to increase max user processes (ulimit -u)\nfatal error: newosproc\n": {
			"its user may start no more processes or threads there (ulimit -u)", true},
	} {
		if why, limit := Why(said); why != want.why || limit != want.limit {
			t.Errorf("%q: %q, %v", said, why, limit)
		}
	}
}

// The words are those of the runtime that builds the agent.
func TestTheRuntimesOwnWordsAreKnown(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT RUN: limits of Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `ulimit -v 200000; exec "$0" -test.run=^$`, self).CombinedOutput()
	if err == nil {
		t.Skip("NOT RUN: 200 MB of addresses are enough for this program")
	}
	if why, limit := Why(string(out)); !limit || !strings.Contains(why, "ulimit -v") {
		t.Errorf("%q, %v of\n%.300s", why, limit, out)
	}
}
