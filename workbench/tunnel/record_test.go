package tunnel

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/workbench/event"
)

// noting is set in the environment of a process of TestTwoProcessesLoseNoRecord.
const noting = "DLWB_TEST_NOTING"

// Each process has its own Tunnels, as two dlwb of one state directory have.
func TestTwoProcessesLoseNoRecord(t *testing.T) {
	const each, processes = 40, 3
	if dir := os.Getenv(noting); dir != "" {
		first, _ := strconv.Atoi(os.Getenv(noting + "_FIRST"))
		mine := New(t.Context(), dir, Owner{})
		for port := first; port < first+each; port++ {
			mine.noteKept(&tunnel{c: Cluster{Name: "demo", Life: 1}, opened: event.ForwardOpened{Kind: event.ForwardTCP, Name: fmt.Sprint(port), LocalPort: port, Kept: true}})
			mine.keepPort("demo", fmt.Sprint(port), port, false)
		}
		return
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			c := exec.Command(os.Args[0], "-test.run=^TestTwoProcessesLoseNoRecord$")
			c.Env = append(os.Environ(), noting+"="+dir, fmt.Sprintf("%s_FIRST=%d", noting, 1000*(i+1)))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	seen := New(t.Context(), dir, Owner{})
	if kept, ports := len(seen.keptOf("demo")), len(seen.keptPorts("demo")); kept != each*processes || ports != each*processes {
		t.Errorf("of %d tunnels %d are on record, and %d ports", each*processes, kept, ports)
	}
}
