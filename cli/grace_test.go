package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// saverScript needs a while to save when it is told to end. It says when it has begun,
// and leaves what it saved where no removal of a cluster gets at it.
const saverScript = `
import os, signal, sys, time
def save(*_):
    time.sleep(%d)
    open(os.environ["SAVED"], "w").write("all")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("step: 1 loss: 0.5", flush=True)
while True:
    time.sleep(0.1)
`

// The grace is the one that the run was launched with, whoever ends it and from
// wherever, and whatever its profile says meanwhile. 12 s are longer than the grace of
// a profile that names none, 7 s are shorter.
func TestTheGraceOfAProfileIsWhatARunHasToSave(t *testing.T) {
	sample.Leave(t)
	for _, end := range []struct {
		name string
		args []string // of the dlwb that ends it; nil: Ctrl-C ends it
		more string
	}{
		{name: "stop", args: []string{"stop", "bed", "--json"}},
		{name: "down", args: []string{"down", "bed", "--json"}},
		{name: "interrupt"},
		{name: "stall", more: "limits: {stall: 2s}\n"},
	} {
		for grace, takes := range map[string]int{"60s": 12, "1s": 7} {
			t.Run(end.name+" within "+grace, func(t *testing.T) {
				b := newBed(t).withOneNode()
				saved := filepath.Join(b.home, "saved")
				b.profile(fmt.Sprintf(saverScript, takes), "  grace: "+grace+"\n  env: {SAVED: "+saved+"}\n"+end.more)
				d := b.start("run", "--down", "--json")
				d.awaitStep(1)
				switch {
				case end.args != nil:
					b.profile(fmt.Sprintf(saverScript, takes), "  grace: 30s\n") // which counts for the next run
					elsewhere := *b
					elsewhere.dir = t.TempDir()
					if r := elsewhere.run(end.args...); r.code != 0 {
						t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
					}
				case end.more == "":
					d.signal(syscall.SIGINT)
				}
				d.end()
				whole, err := os.ReadFile(saved)
				if long := time.Duration(takes)*time.Second > 10*time.Second; long && string(whole) != "all" {
					t.Errorf("it was killed before it had saved: %q, %v", whole, err)
				} else if !long && err == nil {
					t.Error("it had far longer than its grace")
				}
			})
		}
	}
}
