//go:build linux

package hostsstory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testbed"
)

// writes leaves results below its paths, and in the directory of its own, and prints
// their digests.
const writes = `import hashlib, os
def leave(path, n):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = os.urandom(n)
    open(path, "wb").write(data)
    print("wrote", os.path.basename(path), hashlib.sha256(data).hexdigest(), flush=True)
leave("outputs/large", 40 << 20)
for i in range(50):
    leave(f"outputs/small{i}", 20000)
leave(os.path.join(os.environ["DLWB_RESULTS"], "own"), 20 << 20)
`

// digests are those that a training printed, by the name of the file.
func digests(t *testing.T, log string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "wrote" {
			all[f[1]] = f[2]
		}
	}
	return all
}

// holds says which of the files are not below a directory as they were written.
func holds(dir string, want map[string]string) (missing []string) {
	found := map[string]bool{}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || want[d.Name()] == "" {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return nil
		}
		defer func() { _ = f.Close() }()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err == nil && hex.EncodeToString(sum.Sum(nil)) == want[d.Name()] {
			found[d.Name()] = true
		}
		return nil
	})
	for name := range want {
		if !found[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

// cutPulls is how many moments of a run --down are cut, and cutHosts at how many hosts
// at once. One takes up to two minutes: make chaos asks for more of them (DLWB_CUTS).
const cutPulls, cutHosts = 8, 4

// Wherever a run --down is cut off, by a reset or a black hole, for a moment or for
// longer than is waited: what its training wrote is home, or still where it was.
func TestRunDownRemovesNoResultsThatAreNotHome(t *testing.T) {
	bed, from := someHosts(t, cutHosts)
	for host := range cutHosts {
		mustDo(t, bed, "lanrate", testbed.Name(from+host), "300mbit")
	}
	moments := sample.Part(t, cutHosts, cutPulls, "cuts")
	if text := os.Getenv("DLWB_CUTS"); text != "" {
		var err error
		if moments, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	var next, home, kept atomic.Int64
	var all sync.WaitGroup
	for host := range cutHosts {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(moments); i = next.Add(1) - 1 {
				t.Run(fmt.Sprintf("moment %d of seed %d", i, seed), func(t *testing.T) {
					if cutOnce(t, bed, from+host, rand.New(rand.NewPCG(seed, uint64(i)))) {
						home.Add(1)
					} else {
						kept.Add(1)
					}
				})
			}
		})
	}
	all.Wait()
	t.Logf("%d moments: %d times all came home, %d times the cluster was kept with it", moments, home.Load(), kept.Load())
}

// cutOnce cuts one run --down, and reports whether its results came home by it.
func cutOnce(t *testing.T, bed *testbed.Bed, host int, dice *rand.Rand) bool {
	t.Helper()
	l := newLaptop(t, bed.SSHConfig(), fmt.Sprintf("name: cutpull\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\nlimits: {lost: 30s}\n", testbed.Name(host)), writes)
	run := l.start("run", "--down", "--json")
	id := l.await(run, time.Minute, "the start of the run", called("run_started"))["run"]
	log := filepath.Join(l.home, "state", "runs", fmt.Sprint(id), "rank-0.log")
	until(t, time.Minute, "all is written", func() bool {
		text, _ := os.ReadFile(log)
		return strings.Contains(string(text), "wrote own")
	})
	want := digests(t, log)
	time.Sleep(time.Duration(dice.Int64N(int64(4 * time.Second)))) // the moment is drawn by chance: that is the point of it
	down := time.Duration(dice.Int64N(int64(12 * time.Second)))
	if dice.IntN(4) == 0 {
		down = 40*time.Second + down
	}
	heal := func() { mustDo(t, bed, "heal", testbed.Name(host)) }
	if dice.IntN(3) == 0 {
		if _, err := bed.Run(host, "iptables-legacy -w -I INPUT -p tcp --dport 22 -j REJECT --reject-with tcp-reset"); err != nil {
			t.Fatal(err)
		}
	} else {
		mustDo(t, bed, "cut", testbed.Name(host))
	}
	select {
	case <-time.After(down):
	case <-run.done: // it has seen all it wanted to
	}
	heal()
	code := l.end(run, 4*time.Minute)
	there := filepath.Join(bed.Home(host), "dlwb", "cutpull")
	missing := holds(filepath.Join(l.home, "state", "runs", fmt.Sprint(id), "results"), want)
	gone := holds(there, want)
	text := run.text()
	switch {
	case len(missing) > 0 && len(gone) > 0:
		t.Errorf("lost after a cut of %s: %v are not home and %v not there\n%s", down, missing, gone, text)
	case len(missing) > 0 && code == 0:
		t.Errorf("%v are not home, and the exit code is 0\n%s", missing, text)
	case len(missing) > 0 && !strings.Contains(text, "dlwb pull "+fmt.Sprint(id)):
		t.Errorf("nobody says what to do\n%s", text)
	}
	if len(missing) > 0 {
		if code, text := l.do(2*time.Minute, "pull", fmt.Sprint(id)); code != 0 {
			t.Errorf("pull: %d %s", code, text)
		}
		if still := holds(filepath.Join(l.home, "state", "runs", fmt.Sprint(id), "results"), want); len(still) > 0 {
			t.Errorf("after pull %v are not home", still)
		}
	}
	if _, err := os.Stat(there); err == nil {
		if code, text := l.do(time.Minute, "down", "cutpull"); code != 0 {
			t.Errorf("down: %d %s", code, text)
		}
	}
	return len(missing) == 0
}
