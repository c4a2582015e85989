//go:build linux

package intake

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// A sync that begins sweeps what crashes have left, while others make their stages.
func TestASweepRemovesNoStageThatIsJustBeingMade(t *testing.T) {
	code, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	stop := make(chan struct{})
	var sweeps, makers sync.WaitGroup
	for range 2 {
		sweeps.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					sweep(code)
				}
			}
		})
	}
	for m := range 4 {
		makers.Go(func() {
			for i := range 200 {
				s, err := newStage(code, fmt.Sprintf("%d-%d", m, i), 1<<20)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.files.WriteFile("file", []byte("text"), 0o600); err != nil {
					t.Errorf("a stage was swept away: %v", err)
				}
				s.close()
			}
		})
	}
	makers.Wait()
	close(stop)
	sweeps.Wait()
}

// A process that is killed between making a stage and locking it leaves nothing that
// the next sync does not remove at once.
func TestASweepRemovesAStageWhoseMakerWasKilled(t *testing.T) {
	code, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	const ours, older = stagePrefix + "1" + heldSuffix, stagePrefix + "2" + newSuffix
	for _, name := range []string{ours, older} {
		if err := code.MkdirAll(name+"/f", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweep(code)
	if _, err := code.Stat(ours); err == nil {
		t.Error("the stage is there")
	}
	if _, err := code.Stat(older); err != nil {
		t.Error("the stage of an older agent, which has no such lock, may be held:", err)
	}
}
