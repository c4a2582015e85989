//go:build linux

package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote/wire"
)

func TestFilesOfMetricsComeFromTheNode(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	must(t, os.Mkdir(filepath.Join(s.Home, "code"), 0o700))
	writeFile(t, filepath.Join(s.Home, "mark"), "x")
	text := strings.Repeat("row of a table\n", 10_000)
	writeFile(t, filepath.Join(s.Home, "code/metrics.jsonl"), text)
	r := wire.FilesRequest{Dirs: []string{"code/"}, Mark: "mark", Once: true}
	before := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(s.Home, "mark"), before, before))
	var got strings.Builder
	var piece wire.FilePiece
	must(t, n.MetricFiles(testContext(t), r, func(m wire.FilesNews) error {
		if m.File != nil {
			piece = *m.File
		}
		got.Write(m.Data)
		return nil
	}))
	if piece.Path != "code/metrics.jsonl" || piece.Length != int64(len(text)) || got.String() != text {
		t.Errorf("%d bytes came of %+v", got.Len(), piece)
	}
	r.Once, r.Known = false, []wire.FileAt{{Inode: piece.Inode, Next: piece.Size}}
	passes := 0
	err := n.MetricFiles(testContext(t), r, func(m wire.FilesNews) error {
		if m.File != nil {
			t.Errorf("what is known comes again: %+v", m.File)
		}
		passes++
		return enough(passes == 2)
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("it ended with %v", err)
	}
}

func TestANodeTellsItsFacts(t *testing.T) {
	n := openTest(t, sshdtest.Start(t))
	f, err := n.Facts(testContext(t))
	host, _ := os.Hostname()
	if err != nil || f.Host != host || f.Kernel == "" || f.Cores < 1 || f.Memory < 1<<20 {
		t.Errorf("got %+v, %v", f, err)
	}
}
