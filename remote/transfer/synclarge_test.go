//go:build linux

package transfer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/remote/cut"
)

// largeTest syncs a project in which everything beyond 300 KB is large.
func largeTest(t *testing.T, dir string, nodes ...syncPeer) (SyncResult, error) {
	t.Helper()
	tree := scanTest(t, dir)
	tree.large, tree.relay = 300_000, relayPolicy{from: 512 << 10}
	return syncNodes(testContext(t), nodes, tree, codeDir, nil)
}

func TestALargeFileCostsWhatHasChangedInIt(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	odd := "a b/it's $(x)\nlarge"
	text := noise(1, 6_000_000)
	writeFiles(t, dir, map[string]string{odd: text, "text": strings.Repeat("all work and no play\n", 20_000), "small": "1"})
	check(t, os.Chmod(filepath.Join(dir, odd), 0o755))
	res, err := largeTest(t, dir, n)
	check(t, err)
	wantSame(t, n, dir)
	if res.Files != 3 || res.Wire > 6_150_000 {
		t.Errorf("%v took %d bytes", res, res.Wire)
	}
	writeFiles(t, dir, map[string]string{odd: text[:3_000_000] + noise(2, 100_000) + text[3_000_000:]})
	check(t, os.Chmod(filepath.Join(dir, odd), 0o755))
	res, err = largeTest(t, dir, n)
	check(t, err)
	wantSame(t, n, dir)
	if res.Files != 1 || res.Wire > 3_000_000 || len(res.MadeWay) > 0 {
		t.Errorf("100 KB in the middle: %v took %d bytes, moved aside %q", res, res.Wire, res.MadeWay)
	}
	res, err = largeTest(t, dir, n)
	check(t, err)
	if res.Changed != 0 {
		t.Errorf("without changes: %v", res)
	}
	n.serving.Wait()
	if left, _ := filepath.Glob(n.code(".dlwb*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func TestALargeFileThatIsCutOffGoesOnWhereItWas(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, map[string]string{"large": noise(1, 6_000_000), "small": "1"})
	n.cut.Store(5_000_000)
	if _, err := largeTest(t, dir, n); err == nil {
		t.Fatal("the stream was to be cut")
	}
	n.serving.Wait()
	n.cut.Store(0)
	res, err := largeTest(t, dir, n)
	check(t, err)
	wantSame(t, n, dir)
	if res.Wire > 4_000_000 {
		t.Errorf("after most of 6 MB had come, %d bytes were sent", res.Wire)
	}
}

func TestALargeFileWhoseBeginningWasTamperedWithIsSentAnew(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, map[string]string{"large": noise(1, 6_000_000)})
	n.cut.Store(5_000_000)
	if _, err := largeTest(t, dir, n); err == nil {
		t.Fatal("the stream was to be cut")
	}
	n.serving.Wait()
	n.cut.Store(0)
	parts, _ := filepath.Glob(n.code(".dlwb-large/*.part"))
	if len(parts) != 1 {
		t.Fatalf("%q is there of it", parts)
	}
	f, err := os.OpenFile(parts[0], os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteAt([]byte("another beginning"), 0)
	check(t, err)
	check(t, f.Close())
	_, err = largeTest(t, dir, n)
	check(t, err)
	wantSame(t, n, dir)
}

func TestALargeFileIsPassedOnToo(t *testing.T) {
	nodes, servers := family(t, 3)
	dir := t.TempDir()
	text := noise(1, 2_000_000)
	writeFiles(t, dir, map[string]string{"large": text, "small": "1"})
	list := []syncPeer{peer{nodes[0]}, peer{nodes[1]}, peer{nodes[2]}}
	res, err := largeTest(t, dir, list...)
	check(t, err)
	for _, s := range servers {
		wantCode(t, s, dir)
	}
	if res.Wire > 2_100_000 || res.Changed != 3 {
		t.Errorf("%v took %d bytes", res, res.Wire)
	}
	// One of them has the older file no longer, another one can't be reached.
	writeFiles(t, dir, map[string]string{"large": text[:1_000_000] + noise(2, 700_000) + text[1_000_000:]})
	check(t, os.Remove(filepath.Join(servers[2].Home, codeDir, "large")))
	check(t, os.WriteFile(filepath.Join(servers[0].Home, ".dlwb/peer_known_hosts"), nil, 0o600))
	_, err = largeTest(t, dir, list...)
	check(t, err)
	for _, s := range servers {
		wantCode(t, s, dir)
	}
}

func TestSpansMakeTheNewFileOfTheOldOneAndWhatIsSent(t *testing.T) {
	whole := []byte(noise(7, 12_000_000))
	rapid.Check(t, func(t *rapid.T) {
		old := whole[:rapid.IntRange(0, 6_000_000).Draw(t, "old")]
		now := append([]byte(nil), old...)
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(now)).Draw(t, "at")
			gone := rapid.IntRange(0, min(len(now)-at, 300_000)).Draw(t, "gone")
			from := rapid.IntRange(6_000_000, 11_000_000).Draw(t, "from")
			more := whole[from : from+rapid.IntRange(0, 400_000).Draw(t, "more")]
			now = append(append(append([]byte(nil), now[:at]...), more...), now[at+gone:]...)
		}
		a, err1 := cut.File(bytes.NewReader(old))
		b, err2 := cut.File(bytes.NewReader(now))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		var made []byte
		for _, s := range cut.Spans(a, b) {
			if s.At != int64(len(made)) {
				t.Fatalf("a span begins at %d after %d bytes", s.At, len(made))
			}
			if from := s.From; from >= 0 {
				made = append(made, old[from:from+s.Len]...)
			} else {
				made = append(made, now[s.At:s.At+s.Len]...)
			}
		}
		if !bytes.Equal(made, now) {
			t.Fatalf("%d bytes are made of %d, want %d", len(made), len(old), len(now))
		}
	})
}

func TestTenThousandSmallFilesComeAndGo(t *testing.T) {
	sample.Leave(t)
	dir, n := t.TempDir(), newIntakeNode(t)
	for i := range 10_000 {
		p := filepath.Join(dir, fmt.Sprintf("d%d/e%d", i%40, i%7))
		check(t, os.MkdirAll(p, 0o755))
		check(t, os.WriteFile(filepath.Join(p, fmt.Sprintf("f%d", i)), fmt.Append(nil, "text ", i), 0o644))
	}
	if res := syncTest(t, dir, n); res.Files != 10_000 {
		t.Errorf("%v", res)
	}
	wantSame(t, n, dir)
	check(t, os.RemoveAll(filepath.Join(dir, "d3")))
	if res := syncTest(t, dir, n); res.Removed != 250 || res.Files != 0 {
		t.Errorf("%v", res)
	}
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
}
