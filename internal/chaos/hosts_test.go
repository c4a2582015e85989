//go:build linux

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
)

// pairs is how many pairs of hosts play at once: most of it is waiting.
func pairs() int {
	if all() {
		return 6
	}
	return 3
}

// Whatever happens to the connection, to dlwb, to a node: what was printed is
// stored once, the verdict is right, and nothing is left. The parts share one
// set of hosts, as there is one on a machine at a time.
func TestChaosOnRealHosts(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	cells, cuts := asked(cellsVar, sample.Part(t, fewCells/2, fewCells, "moments")), fewCuts
	if all() {
		cuts = allCuts
	}
	bed := hosts(t, 1+2*pairs())
	var count tally
	var parts sync.WaitGroup // all at once, however many cores there are: they wait
	parts.Go(func() {
		t.Run("cuts", func(t *testing.T) { cutsLoseNothing(t, bed, 0, cuts, seed) })
	})
	for i, hand := range deal(cells, seed) {
		parts.Go(func() {
			t.Run(fmt.Sprint("pair ", i), func(t *testing.T) {
				newPair(t, bed, i, 1+2*i, dice(seed, 1+i)).cells(t, hand, &count)
			})
		})
	}
	parts.Wait()
	t.Logf("%d moments played, of %d; the right verdict and nothing left: %d; %d cuts", count.played.Load(), cells, count.right.Load(), cuts)
}

// deal gives each pair its faults: all kinds equally often, in an order drawn
// by chance.
func deal(cells, seed int) [][]fault {
	order := dice(seed, 100).Perm(len(faults))
	hands := make([][]fault, pairs())
	for i := range cells {
		hand := &hands[i%len(hands)]
		*hand = append(*hand, faults[order[(i+i/len(faults))%len(faults)]])
	}
	return hands
}

func command(name string, args ...string) *exec.Cmd { return exec.Command(name, args...) }

// writeIfDir makes an empty file, if its directory is there.
func writeIfDir(dir, name string) error {
	return os.WriteFile(filepath.Join(dir, name), nil, 0o644)
}
