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
	"testing"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// testSegment makes a log turn often.
const testSegment = 128 << 10

func countedText(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%9d\n", i)
	}
	return b.String()
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
