//go:build unix

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAPreviewSaysWhatASyncThenDoesAndChangesNothing(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	preview := func() SyncPreview {
		list, err := previewNodes(t.Context(), []syncNode{n}, scanTest(t, dir), codeDir)
		check(t, err)
		return list[0]
	}
	writeFiles(t, dir, map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1"})
	if p := preview(); p.Files != 5 || p.Bytes != 5 || exists(n.code()) {
		t.Errorf("on an empty node: %+v", p)
	}
	syncTest(t, dir, n)
	writeFiles(t, n.code(), map[string]string{"b": "edited", "c": "edited"})
	writeFiles(t, dir, map[string]string{"a": "22", "c": "22"})
	check(t, os.Remove(filepath.Join(dir, "d")))
	before := dirText(t, n.home)
	p := preview()
	if !slices.Equal(p.Send, []string{"a", "c"}) || !slices.Equal(p.Remove, []string{"d"}) ||
		!slices.Equal(p.Edited, []string{"b"}) || !slices.Equal(p.Aside, []string{"c"}) || p.Bytes != 4 {
		t.Errorf("the preview is %+v", p)
	}
	if after := dirText(t, n.home); after != before {
		t.Errorf("the preview changed the node from\n%s\nto\n%s", before, after)
	}
	res := syncTest(t, dir, n)
	if res.Files != p.Files || res.Removed != len(p.Remove) || len(res.Edited) != 1 || len(res.MadeWay) != 1 {
		t.Errorf("the sync did %v, %q, %q", res, res.Edited, res.MadeWay)
	}
	if list, err := previewNodes(t.Context(), nil, scanTest(t, dir), codeDir); err != nil || list[0].Files != 4 {
		t.Errorf("without nodes: %+v, %v", list, err)
	}
}

// The records of a project of some size go as what changes in them.
func TestShortRecordsSayTheSameAsLongOnes(t *testing.T) {
	for name, make := range shellsOfNodes(t) {
		if name == "busybox without tar" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, n := t.TempDir(), make(t)
			writeFiles(t, dir, manyFiles)
			tree := func() *Tree {
				tree := scanTest(t, dir)
				tree.HashCache = filepath.Join(dir, "..", filepath.Base(n.home)+".cache")
				tree.Files = cacheFiles + 1 // it counts as one that is worth it
				return tree
			}
			sync := func() SyncResult {
				res, err := syncNodes(t.Context(), []syncNode{n}, tree(), codeDir, nil)
				check(t, err)
				wantSame(t, n, dir)
				return res
			}
			sync()
			n.received.Store(0)
			n.execs.Store(0)
			writeFiles(t, dir, map[string]string{"d1/f1 ü": "changed", "new": "1", "link": "-> d1"})
			check(t, os.Remove(filepath.Join(dir, "d3/f3 ü")))
			if res := sync(); res.Files != 3 || res.Removed != 1 || n.execs.Load() != 2 || n.received.Load() > 30_000 {
				t.Errorf("%v took %d commands and %d bytes", res, n.execs.Load(), n.received.Load())
			}
			if res := sync(); res.Changed != 0 {
				t.Errorf("without changes: %v", res)
			}
			// What the node has written down is what it would have been told.
			check(t, os.Remove(tree().heartFile()))
			writeFiles(t, n.code(), map[string]string{"d5/f5 ü": "edited there"})
			writeFiles(t, dir, map[string]string{"d4/f4 ü": "changed"})
			res, err := syncNodes(t.Context(), []syncNode{n}, tree(), codeDir, nil)
			check(t, err)
			if res.Files != 1 || len(res.Edited) != 1 || len(res.MadeWay) != 0 {
				t.Errorf("%v, edited %q, moved aside %q", res, res.Edited, res.MadeWay)
			}
		})
	}
}

// A record on the node that is not what it is said to be costs a second look.
func TestRecordsThatWereTamperedWithAreSentInFull(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	writeFiles(t, dir, manyFiles)
	syncTest(t, dir, n)
	manifests, _ := filepath.Glob(filepath.Join(n.home, ".dlwb/sync/*/manifest"))
	text, err := os.ReadFile(manifests[0])
	check(t, err)
	check(t, os.WriteFile(manifests[0], append(text, "x\n"...), 0o600))
	writeFiles(t, dir, map[string]string{"d1/f1 ü": "changed"})
	syncTest(t, dir, n)
	wantSame(t, n, dir)
}

var manyFiles = func() map[string]string {
	files := map[string]string{}
	for i := range 150 {
		files[fmt.Sprintf("d%d/f%d ü", i, i)] = fmt.Sprint("text ", i)
	}
	return files
}()
