//go:build linux

package remote

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// testSegment makes a log turn often.
const testSegment = 128 << 10

func smallLogs(most int64) func(*Launch) {
	return func(l *Launch) { l.logSegment, l.LogMost = testSegment, most }
}

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
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks(counted(0, 100_000)), smallLogs(3*testSegment))
		s := b.ended()
		if s.LogSize("rank-0.log") != 1_000_000 {
			t.Errorf("logs %+v, want a size of 1,000,000", s.Logs)
		}
		var first int64
		for _, l := range s.Logs {
			if l.Name == "rank-0.log" {
				first = l.First
			}
		}
		newest := int64(1_000_000 / testSegment)
		if first != (newest-2)*testSegment {
			t.Errorf("the first byte kept is %d, want %d", first, (newest-2)*testSegment)
		}
		var kept strings.Builder
		for k := first / testSegment; k <= newest; k++ {
			kept.WriteString(b.read("rank-0.log." + strconv.FormatInt(k, 10)))
		}
		if want := countedText(0, 100_000)[first:]; kept.String() != want {
			t.Errorf("%d bytes are kept, want %d, the newest", kept.Len(), len(want))
		}
		if left, _ := filepath.Glob(b.file("*.pipe")); len(left) > 0 || b.has("rank-0.log.pid") {
			t.Errorf("left behind: %v, a pid file: %v", left, b.has("rank-0.log.pid"))
		}
	})
}

func TestAKilledLogWriterCostsTheTrainingNothing(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("trap 'echo PIPE >" + b.home + "/pipe' PIPE; echo up; for i in 1 2 3 4 5 6 7 8 9; do until [ -e $HOME/go$i ]; do sleep 0.05; done; echo line $i; done; echo over"))
		b.waitLog("rank-0.log", "up")
		for i := 1; i <= 9; i++ {
			for _, p := range b.processes() {
				dd := strings.HasPrefix(p.args, "dd ")
				if i%3 != 0 && dd || i%3 != 1 && strings.Contains(p.args, "/bin/log ") { // one, the other, both
					must(t, syscall.Kill(p.pid, syscall.SIGKILL))
					// On its way out it may still take what comes, and then nobody writes it.
					within(t, 30*time.Second, "it is dead", func() bool { return !isAlive(p.pid) })
				}
			}
			must(t, os.WriteFile(filepath.Join(b.home, "go"+strconv.Itoa(i)), nil, 0o600))
			b.waitLog("rank-0.log", "line "+strconv.Itoa(i))
		}
		if s := b.ended(); s.Exit.Code != 0 {
			t.Errorf("the run ended with %+v:\n%s", s.Exit, b.read("rank-0.log"))
		}
		if _, err := os.Stat(filepath.Join(b.home, "pipe")); err == nil {
			t.Error("the training got SIGPIPE")
		}
	})
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
	inEachShell(t, func(t *testing.T, b *box) {
		diskOf(t, filepath.Join(b.home, ".dlwb/runs"), "4m")
		b.launch(ranks("echo up; until [ -e $HOME/full ]; do sleep 0.05; done; " + counted(0, 100_000) +
			" || echo FAILED >&2; echo printed >$HOME/printed; until [ -e $HOME/roomy ]; do sleep 0.05; done; " + counted(100_000, 101_000) + "; until [ -e $HOME/told ]; do sleep 0.05; done; echo over"))
		b.waitLog("rank-0.log", "up")
		filler := filepath.Join(b.home, ".dlwb/runs/filler")
		if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk takes everything: %v", err)
		}
		must(t, os.WriteFile(filepath.Join(b.home, "full"), nil, 0o600))
		within(t, 30*time.Second, "the training prints on", func() bool {
			_, err := os.Stat(filepath.Join(b.home, "printed"))
			return err == nil
		})
		must(t, os.Remove(filler))
		must(t, os.WriteFile(filepath.Join(b.home, "roomy"), nil, 0o600))
		// What shows that there is room again may still be lost, however much it is.
		b.waitLog("rank-0.log", "bytes of output are missing here]")
		must(t, os.WriteFile(filepath.Join(b.home, "told"), nil, 0o600))
		s := b.ended()
		log := b.read("rank-0.log")
		if s.Exit.Code != 0 || !strings.HasSuffix(log, "over\n") || strings.Contains(log, "FAILED") {
			t.Errorf("exit %+v; the log ends with %q", s.Exit, log[max(0, len(log)-100):])
		}
		_, after, _ := strings.Cut(log, "[dlwb: the disk was full; ")
		var least, most int
		if _, err := fmt.Sscanf(after, "%d to %d bytes of output are missing here]", &least, &most); err != nil {
			t.Fatalf("the log does not tell what is missing: %q", log)
		}
		said := strings.Index(log, "\n[dlwb:")
		end := strings.Index(log[said:], "]\n") + said + 2
		missing := len("up\n") + 1_010_000 + len("over\n") - (len(log) - (end - said))
		if missing < least || missing > most {
			t.Errorf("%d bytes are missing, and the log says %d to %d", missing, least, most)
		}
		if s.Full != "rank-0.log the disk was full" {
			t.Errorf("the record says %q", s.Full)
		}
	})
}

// segmented makes a node whose logs turn often, with a log written by the test
// itself as the node's scripts would.
func segmented(t *testing.T) (*Node, *sshdtest.Server, string) {
	t.Helper()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	n.segment = testSegment
	dir := filepath.Join(s.Home, ".dlwb/runs/r1")
	must(t, os.MkdirAll(dir, 0o700))
	return n, s, filepath.Join(dir, "rank-0.log")
}

// writeSegments appends a text as the log writer does.
func writeSegments(t *testing.T, path string, off int, text string) {
	t.Helper()
	for len(text) > 0 {
		k, room := off/testSegment, testSegment-off%testSegment
		name := path
		if k > 0 {
			name += "." + strconv.Itoa(k)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		must(t, err)
		piece := text[:min(room, len(text))]
		_, err = f.WriteString(piece)
		must(t, errors.Join(err, f.Close()))
		text, off = text[len(piece):], off+len(piece)
	}
}

func TestFollowLogGoesFromSegmentToSegmentThroughCuts(t *testing.T) {
	t.Parallel()
	n, s, path := segmented(t)
	text := countedText(0, 120_000)
	writeSegments(t, path, 0, text[:300_000]) // whole segments and a part of one
	got, written, cuts := 0, 300_000, 0
	sum := sha256.New()
	err := n.FollowLog(testContext(t), "r1", "rank-0.log", 0, func(off int64, p []byte) error {
		if off != int64(got) {
			return fmt.Errorf("got offset %d after %d bytes", off, got)
		}
		sum.Write(p)
		got += len(p)
		if got >= written && written < len(text) {
			more := min(len(text)-written, testSegment*2/3)
			writeSegments(t, path, written, text[written:written+more])
			written += more
			if written > (cuts+1)*400_000 {
				cuts++
				s.KillConnections()
			}
		}
		return enough(got >= len(text))
	}, func(from, to int64) error { return fmt.Errorf("told of dropped bytes %d to %d", from, to) })
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if want := sha256.Sum256([]byte(text)); !bytes.Equal(sum.Sum(nil), want[:]) || cuts < 2 {
		t.Errorf("the bytes that came differ from those written; %d cuts", cuts)
	}
	waitUntil(t, "nothing follows there", func() bool { return followers(t, s.Home) == 0 })
}

func TestAReaderWhoComesTooLateIsToldWhichBytesAreGone(t *testing.T) {
	n, _, path := segmented(t)
	text := countedText(0, 60_000)
	writeSegments(t, path, 0, text)
	must(t, errors.Join(os.Remove(path), os.Remove(path+".1"), os.Remove(path+".2")))
	var got []byte
	var gone [][2]int64
	err := n.FollowLog(testContext(t), "r1", "rank-0.log", 70_000, func(off int64, p []byte) error {
		if len(got) == 0 && off != 3*testSegment {
			t.Errorf("the first byte is %d", off)
		}
		got = append(got, p...)
		return enough(len(got) >= len(text)-3*testSegment)
	}, func(from, to int64) error {
		gone = append(gone, [2]int64{from, to})
		return nil
	})
	if !errors.Is(err, errEnough) || string(got) != text[3*testSegment:] {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if len(gone) != 1 || gone[0] != [2]int64{70_000, 3 * testSegment} {
		t.Errorf("told that %v are gone", gone)
	}
}
