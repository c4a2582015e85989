//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// A run that has ended does not go on, whatever is interrupted behind it: what is said
// is that its results did not all come, and which are kept.
func TestAnInterruptedFetchSaysWhatIsKept(t *testing.T) {
	sample.Leave(t)
	b := newBed(t).withOneNode()
	b.profile(`
import os
os.makedirs("outputs", exist_ok=True)
for i in range(8000):
    open(f"outputs/{i}", "w").write(str(i))
print("step: 1 loss: 0.5", flush=True)
`, "results: {paths: [outputs/], to: home}\n")
	x := b.onTerminal(200, 50, "run", "--plain")
	x.shows("… fetch")
	x.types("\x03")
	if code := <-x.ended; code != ExitInterrupt {
		t.Errorf("run: exit code %d\n%s", code, x.shown)
	}
	if said := x.shown.String(); !strings.Contains(said, "has ended; bringing home what it wrote was interrupted; ") || !strings.Contains(said, ": interrupted") || strings.Contains(said, "goes on; dlwb attach") {
		t.Errorf("run says:\n%s", said)
	}
	x = b.onTerminal(200, 50, "pull", "bed", "again", "--plain")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(b.dir, "again")); err == nil {
			break
		}
	}
	x.types("\x03")
	if code := <-x.ended; code != ExitInterrupt {
		t.Errorf("pull: exit code %d\n%s", code, x.shown)
	}
	x.shows("bringing home what run bed-", " wrote was interrupted; ", "dlwb pull bed again goes on")
}
