//go:build linux

package supervise_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/remote/wire"
)

// testSegment makes a log turn often.
const testSegment = 128 << 10

// counted prints lines that tell where they are: 10 bytes each.
func counted(from, to int) string {
	return fmt.Sprintf(`awk 'BEGIN { for (i = %d; i < %d; i++) printf "%%9d\n", i }'`, from, to)
}

func countedText(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%9d\n", i)
	}
	return b.String()
}

func TestALogLiesInSegmentsOfWhichTheNewestAreKept(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks(counted(0, 100_000)), func(l *wire.LaunchRequest) { l.Segment, l.Keep = testSegment, 3 })
	s := b.ended()
	newest := int64(1_000_000 / testSegment)
	first := (newest - 2) * testSegment
	want := wire.StateLog{Name: "rank-0.log", Size: 1_000_000, First: first}
	found := false
	for _, l := range s.Logs {
		found = found || l == want
	}
	if !found {
		t.Errorf("logs %+v, want %+v", s.Logs, want)
	}
	var kept strings.Builder
	for k := first / testSegment; k <= newest; k++ {
		kept.WriteString(b.Read("rank-0.log." + strconv.FormatInt(k, 10)))
	}
	if want := countedText(0, 100_000)[first:]; kept.String() != want {
		t.Errorf("%d bytes are kept, want %d, the newest", kept.Len(), len(want))
	}
	if left, _ := filepath.Glob(b.File("*.pipe")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestALogHoldsWhateverBytesWerePrinted(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks(`head -c 3000000 /dev/urandom >$HOME/bytes; cat $HOME/bytes; cat $HOME/bytes >&2`), func(l *wire.LaunchRequest) { l.Segment = 1_000_003 })
	b.ended()
	bytes, err := os.ReadFile(filepath.Join(b.Home, "bytes"))
	must(t, err)
	got := b.Read("rank-0.log")
	for k := 1; k <= 5; k++ {
		got += b.Read(fmt.Sprintf("rank-0.log.%d", k))
	}
	if got != string(bytes)+string(bytes) {
		t.Errorf("%d bytes differ from the %d that were printed", len(got), 2*len(bytes))
	}
}

func TestWhatHoldsThePipeHoldsTheEndForAMomentOnly(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := append(ranks(forever), ranks("(sleep 1000 &); echo over; exit 3")...)
	procs[1].Name, procs[1].Log, procs[1].Env = "rank-1", "rank-1.log", bytesOf("RANK=1")
	b.launch(procs)
	b.ended()
	b.wantOrder("rank 1 ended 3 -", "stopping rank 1 on node0 exited with code 3", "ended 3")
	if b.Read("rank-1.log") != "over\n" {
		t.Errorf("log %q", b.Read("rank-1.log"))
	}
}

// diskOf puts a small disk under a directory of the box.
func diskOf(t *testing.T, dir, size string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	if err := syscall.Mount("dlwb-test", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("NOT RUN: a small disk can only be mounted by root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

func TestAFullDiskCostsOutputAndSaysHowMuchButNeverTheTraining(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	diskOf(t, filepath.Join(b.Home, ".dlwb/runs"), "4m")
	b.launch(ranks("echo up; until [ -e $HOME/full ]; do sleep 0.05; done; " + counted(0, 100_000) +
		" || echo FAILED >&2; echo printed >$HOME/printed; until [ -e $HOME/roomy ]; do sleep 0.05; done; " +
		"until grep -q missing $DLWB_RUN_DIR/rank-0.log; do echo more; sleep 0.1; done; echo over"))
	b.WaitLog("rank-0.log", "up")
	filler := filepath.Join(b.Home, ".dlwb/runs/filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk takes everything: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(b.Home, "full"), nil, 0o600))
	runbox.Within(t, runbox.Patience, "the training prints on", func() bool {
		_, err := os.Stat(filepath.Join(b.Home, "printed"))
		return err == nil
	})
	if s := b.state(); !strings.HasSuffix(s.Full, " rank-0.log the disk was full") {
		t.Errorf("the record says %q", s.Full)
	}
	must(t, os.Remove(filler))
	must(t, os.WriteFile(filepath.Join(b.Home, "roomy"), nil, 0o600))
	b.ended()
	log := b.Read("rank-0.log")
	if b.record("exit") != "0 -" || !strings.HasSuffix(log, "over\n") || strings.Contains(log, "FAILED") {
		t.Errorf("exit %q; the log ends with %q", b.record("exit"), log[max(0, len(log)-100):])
	}
	before, after, _ := strings.Cut(log, "\n[dlwb: the disk was full; ")
	var missing int
	if _, err := fmt.Sscanf(after, "%d bytes of output are missing here]", &missing); err != nil {
		t.Fatalf("the log does not tell what is missing: %q", log)
	}
	// Beside the numbers, what was printed while there was no room is missing too.
	if printed := len("up\n") + 1_000_000 - len(before); missing < printed || (missing-printed)%len("more\n") != 0 {
		t.Errorf("%d bytes of the numbers are missing, and the log says %d", printed, missing)
	}
}

func TestARunOnADiskThatIsFullFromTheBeginningSaysSo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	disk := filepath.Join(b.Home, ".dlwb/runs")
	diskOf(t, disk, "1m")
	if err := os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk takes everything: %v", err)
	}
	if said, err := b.tryLaunch(planOf(ranks("echo up"))); err == nil || !strings.Contains(said, "no space left") {
		t.Errorf("%v: %q", err, said)
	}
	if s := b.state(); s.State != "absent" {
		t.Errorf("state %+v", s)
	}
	must(t, os.Remove(filepath.Join(disk, "filler")))
	b.launch(ranks("echo up"))
	if b.ended(); b.record("exit") != "0 -" {
		t.Errorf("record %q", b.record("exit"))
	}
}

// A file that may not grow is as a full disk.
func TestALogThatMayNotGrowEndsNobody(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env = append(b.env, "DLWB_TEST_LIMIT=40000")
	b.launch(ranks(counted(0, 20_000) + "; echo printed >$HOME/printed"))
	b.ended()
	if s := b.state(); b.record("exit") != "0 -" || !strings.Contains(s.Full, "limit for a file's size") {
		t.Errorf("record %q, full %q", b.record("exit"), s.Full)
	}
	if _, err := os.Stat(filepath.Join(b.Home, "printed")); err != nil {
		t.Error("the training did not go on")
	}
}

// A rank that fails where there is no room left says so itself.
func TestARankThatFailsOnAFullDiskSaysHowMuchWasFree(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a small disk can't be mounted: that needs root")
	}
	t.Parallel()
	b := newBox(t)
	must(t, os.MkdirAll(filepath.Join(b.Home, ".dlwb/runs"), 0o700))
	if err := syscall.Mount("tmpfs", filepath.Join(b.Home, ".dlwb/runs"), "tmpfs", 0, "mode=0700,size=1m"); err != nil {
		t.Skipf("a small disk can't be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(b.Home, ".dlwb/runs"), syscall.MNT_DETACH) })
	b.launch(ranks(`cat /dev/zero >"$DLWB_RUN_DIR/filler"; exit 3`))
	b.ended()
	b.wantOrder("rank 0 started", "rank 0 free 0", "rank 0 ended 3 -")
}
