//go:build linux

package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// largeTest syncs a project in which everything beyond 300 KB is large.
func largeTest(t *testing.T, dir string, nodes ...syncNode) (SyncResult, error) {
	t.Helper()
	tree := scanTest(t, dir)
	tree.large, tree.relay = 300_000, 512<<10
	return syncNodes(testContext(t), nodes, tree, codeDir, nil)
}

func TestALargeFileCostsWhatHasChangedInIt(t *testing.T) {
	for name, make := range shellsOfNodes(t) {
		if name == "busybox without tar" {
			continue // there everything goes by sftp
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, n := t.TempDir(), make(t)
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
			if left, _ := filepath.Glob(n.code(".dlwb*")); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
			lists, _ := filepath.Glob(filepath.Join(n.home, ".dlwb/sync/*/chunks.*"))
			if len(lists) != 2 {
				t.Errorf("the lists of chunks are %q, want one for each large file", lists)
			}
		})
	}
}

func TestALargeFileThatIsCutOffGoesOnWhereItWas(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	writeFiles(t, dir, map[string]string{"large": noise(1, 3_000_000), "small": "1"})
	n.cut.Store(2_000_000)
	if _, err := largeTest(t, dir, n); err == nil || !strings.Contains(err.Error(), "ended early") {
		t.Fatalf("the stream was to be cut: %v", err)
	}
	n.cut.Store(0)
	res, err := largeTest(t, dir, n)
	check(t, err)
	wantSame(t, n, dir)
	if res.Wire > 1_050_000 {
		t.Errorf("after 2 of 3 MB had come, %d bytes were sent", res.Wire)
	}
}

func TestALargeFileThatChangedOnTheNodeIsSentAnew(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	text := noise(1, 3_000_000)
	writeFiles(t, dir, map[string]string{"large": text})
	_, err := largeTest(t, dir, n)
	check(t, err)
	// The list of chunks there is of something else: what is made is wrong.
	lists, _ := filepath.Glob(filepath.Join(n.home, ".dlwb/sync/*/chunks.*"))
	list, err := os.ReadFile(lists[0])
	check(t, err)
	lines := bytes.SplitAfter(list, []byte("\n"))
	lines[0], lines[1] = lines[1], lines[0]
	check(t, os.WriteFile(lists[0], bytes.Join(lines, nil), 0o600))
	writeFiles(t, dir, map[string]string{"large": text + "more"})
	_, err = largeTest(t, dir, n)
	check(t, err)
	wantSame(t, n, dir)
}

func TestALargeFileIsPassedOnToo(t *testing.T) {
	nodes, servers := family(t, 3)
	dir := t.TempDir()
	text := noise(1, 2_000_000)
	writeFiles(t, dir, map[string]string{"large": text, "small": "1"})
	list := []syncNode{nodes[0], nodes[1], nodes[2]}
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
	cut := func(text []byte) []chunk {
		var c chunker
		_, _ = c.Write(text)
		return c.list()
	}
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
		list := spans(cut(old), cut(now))
		skip := rapid.Int64Range(0, literal(list)).Draw(t, "skip")
		var rest bytes.Buffer
		if _, err := rest.ReadFrom(literals(bytes.NewReader(now), list, skip)); err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		if _, err := all.ReadFrom(literals(bytes.NewReader(now), list, 0)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(all.Bytes()[skip:], rest.Bytes()) {
			t.Fatalf("from byte %d on, another text is sent", skip)
		}
		var made []byte
		sent := all.Bytes()
		for _, s := range list {
			if s.old {
				made = append(made, old[s.off:s.off+s.len]...)
			} else {
				made, sent = append(made, sent[:s.len]...), sent[s.len:]
			}
		}
		if !bytes.Equal(made, now) {
			t.Fatalf("%d bytes are made of %d, want %d", len(made), len(old), len(now))
		}
	})
}

func FuzzListsOfChunks(f *testing.F) {
	f.Add("131072 00112233445566778899aabbccddeeff\n")
	f.Add("-1 00\n")
	f.Fuzz(func(t *testing.T, text string) {
		chunks, err := parseChunks(text)
		if err != nil {
			return
		}
		for _, s := range spans(chunks, chunks) {
			if s.len < 0 || s.off < 0 {
				t.Errorf("the list %q makes the span %v", text, s)
			}
		}
	})
}

func TestWhoGoesOnWithALargeFileStillCutsAllOfIt(t *testing.T) {
	content := []byte(noise(7, 3<<20))
	var whole, rest bytes.Buffer
	_, all, err := copyCut(&whole, bytes.NewReader(content))
	check(t, err)
	const at = 1<<20 + 17 // within a piece that is copied
	n, again, err := copyCut(&behind{&rest, at}, bytes.NewReader(content))
	check(t, err)
	if n != int64(len(content)) || !bytes.Equal(whole.Bytes(), content) || !bytes.Equal(rest.Bytes(), content[at:]) {
		t.Errorf("%d bytes were read, %d and %d written of %d", n, whole.Len(), rest.Len(), len(content))
	}
	if len(all) < 2 || !slices.Equal(all, again) {
		t.Errorf("%d chunks, and %d of who goes on", len(all), len(again))
	}
}

// Manifests of earlier versions lie on nodes: an unchanged tree has an unchanged digest.
func TestTheDigestOfAManifestStaysAsItIs(t *testing.T) {
	m := manifest{
		"a b\x01é": {kind: kindFile, mode: 0o644, value: "x\xff"}, "d": {kind: kindDir},
		"l": {kind: kindLink, value: "../ \""}, "s": {kind: kindFile, mode: 0o755},
	}
	sum := sha256.New()
	for _, p := range slices.Sorted(maps.Keys(m)) {
		_, _ = fmt.Fprintf(sum, "%c %o %q %q\n", m[p].kind, m[p].mode, m[p].value, p)
	}
	if want := hex.EncodeToString(sum.Sum(nil)); m.digest() != want {
		t.Errorf("%s, want %s", m.digest(), want)
	}
}
