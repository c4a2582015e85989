//go:build linux

package transfer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAPreviewSaysWhatASyncThenDoesAndChangesNothing(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	preview := func() SyncPreview {
		list, err := previewNodes(t.Context(), []syncPeer{n}, scanTest(t, dir), codeDir)
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
