//go:build linux

package chaos

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
)

const (
	// printed is what the training prints while its node is cut off.
	printed = 40_000_000
	// mostStall is how long after the end of a cut the next byte may take: half of the
	// time, as others have the machine now and then.
	mostStall = 5 * time.Second
)

// printer prints numbered lines of 200 bytes: most of them at an even pace, and
// what is missing of 40 MB once it is told that the cuts are over. It writes
// down the SHA-256 of what it has printed.
const printer = `
import hashlib, os, sys, time
total, pace, n, line = 40_000_000, float(open("pace").read()), 0, 0
digest = hashlib.sha256()
def put(lines):
    global n, line
    text = b"".join(b"%%08d %%s\n" %% (line + i, b"x" * 190) for i in range(lines))
    line += lines
    n += len(text)
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
    digest.update(text)
began = time.time()
while not os.path.exists("healed"):
    behind = (time.time() - began) * pace - n
    if behind > 200 and n < total - 4_000_000:
        put(min(int(behind / 200), 20_000))
    elif n < total - 400:
        put(1) # always something
    time.sleep(0.05)
put((total - n) // 200)
open("digest.tmp", "w").write("%%s %%d" %% (digest.hexdigest(), n))
os.rename("digest.tmp", "digest")
`

// cut is one way to lose a connection, for a while.
type cut struct {
	name       string
	begin, end func(bed *testbed.Bed, host int) error
}

// cuts are resets (whatever reaches the host is answered with one: connections
// break at once, and new ones are refused) and black holes (no answer at all).
var cuts = []cut{
	{"reset", rule("-I", "tcp-reset"), rule("-D", "tcp-reset")},
	{"black hole",
		func(b *testbed.Bed, host int) error { return b.Do("cut", testbed.Name(host)) },
		func(b *testbed.Bed, host int) error { return b.Do("heal", testbed.Name(host)) }},
}

func rule(what, answer string) func(*testbed.Bed, int) error {
	return func(b *testbed.Bed, host int) error {
		_, err := b.Run(host, "iptables-legacy -w "+what+" INPUT -p tcp --dport 22 -j REJECT --reject-with "+answer)
		return err
	}
}

// cutsLoseNothing cuts a host off again and again while a training prints, and
// compares what dlwb has stored with what was printed.
func cutsLoseNothing(t *testing.T, bed *testbed.Bed, host, number, seed int) {
	l := newLab(t, "cuts", bed.SSHConfig(), []string{testbed.Name(host)}, strings.ReplaceAll(printer, "%%", "%"), "")
	l.write("code/pace", fmt.Sprint(printed/(8*number)))
	run := l.start("run", "--json")
	id := run.await(soon, "the start of the run", called("run_started"))["run"]
	log := l.storedLog(id, 0)
	eventually(t, soon, func() error { return atLeast(log, 1) })

	dice := dice(seed, 0)
	stalls := map[string][]time.Duration{}
	for i := range number {
		c := cuts[i%len(cuts)]
		down := time.Second + time.Duration(dice.Int64N(int64(9*time.Second)))
		if c.name == "reset" {
			down /= 5
		}
		stall := c.play(t, bed, host, log, down)
		stalls[c.name] = append(stalls[c.name], stall)
		time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
	}
	code := bed.Home(host) + "/dlwb/cuts/code"
	if err := os.WriteFile(code+"/healed", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := run.end(2 * time.Minute); code != 0 {
		t.Errorf("exit code %d:\n%s", code, run.said())
	}
	if end := run.find(called("run_ended")); end == nil || end["verdict"] != "succeeded" {
		t.Errorf("it ended with %v", end)
	}
	compare(t, log, filepath.Join(code, "digest"))
	for name, all := range stalls {
		slices.Sort(all)
		t.Logf("%d cuts by a %s: the next byte came %s after the end of the cut (median), %s at most",
			len(all), name, all[len(all)/2].Round(10*time.Millisecond), all[len(all)-1].Round(10*time.Millisecond))
		if all[(len(all)-1)/2] > mostStall {
			t.Errorf("after a %s the next byte took %s", name, all)
		}
	}
	if r := l.run(soon, "down", "--json"); r.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("down:\n%s", r.said())
	}
}

// play cuts a host off, and tells how long after the end of that the next byte
// came.
func (c cut) play(t *testing.T, bed *testbed.Bed, host int, log string, down time.Duration) time.Duration {
	t.Helper()
	if err := c.begin(bed, host); err != nil {
		t.Fatal(err)
	}
	time.Sleep(down) // how long is drawn by chance: that is the point of it
	before := size(log)
	if err := c.end(bed, host); err != nil {
		t.Fatal(err)
	}
	healed := time.Now()
	for size(log) == before {
		if time.Since(healed) > time.Minute {
			t.Fatalf("nothing came within a minute of the end of a cut by a %s", c.name)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(healed)
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func atLeast(path string, n int64) error {
	if have := size(path); have < n {
		return fmt.Errorf("%s has %d bytes", path, have)
	}
	return nil
}

// compare holds the stored log against the digest that the training made.
func compare(t *testing.T, log, digest string) {
	t.Helper()
	text, err := os.ReadFile(digest)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %d", hex.EncodeToString(sum.Sum(nil)), n); got != string(text) || n != printed {
		t.Errorf("stored: %s\nprinted: %s", got, text)
	} else {
		t.Logf("%d bytes stored, SHA-256 as printed: 0 lost, 0 doubled", n)
	}
}
