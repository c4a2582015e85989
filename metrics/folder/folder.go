// Package folder says which files of a folder can hold metrics, and why others are
// not read.
package folder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/metrics"
)

// Bounds of a folder that is looked through.
const (
	deepestFolder = 8
	mostInFolder  = 1000
)

// Unread is a file that was looked at and gave nothing.
type Unread struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Files are the files below a directory, in the order of their names. What is
// hidden is not looked at; links are not followed.
func Files(dir string) (files []string, skipped []Unread, err error) {
	root := filepath.Clean(dir)
	err = filepath.WalkDir(root+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		name, below, depth := filepath.Base(path), path != root, strings.Count(path, string(filepath.Separator))-strings.Count(root, string(filepath.Separator))
		switch {
		case err != nil && !below:
			return fmt.Errorf("look through %s: %w", dir, err)
		case err != nil:
			skipped = append(skipped, Unread{path, err.Error()})
		case below && entry.IsDir() && name == ".aim":
			skipped = append(skipped, Unread{path, "Aim keeps its metrics in RocksDB, which is not read; the SDK of Aim gives them as tables (Repo.query_metrics)"})
			return filepath.SkipDir
		case below && strings.HasPrefix(name, "."), name == "__pycache__", name == "node_modules":
			if entry.IsDir() {
				return filepath.SkipDir
			}
		case entry.IsDir() && depth > deepestFolder:
			skipped = append(skipped, Unread{path, fmt.Sprintf("more than %d directories deep", deepestFolder)})
			return filepath.SkipDir
		case entry.IsDir():
		case !entry.Type().IsRegular():
			skipped = append(skipped, Unread{path, "no regular file"})
		case len(files) >= mostInFolder:
			skipped = append(skipped, Unread{path, fmt.Sprintf("more than %d files", mostInFolder)})
			return filepath.SkipAll
		default:
			files = append(files, path)
		}
		return nil
	})
	return files, skipped, err
}

// packings are the ends of names of files that are read through what they are
// packed in.
var packings = []string{".gz", ".zst", ".bz2"}

// NoMetrics says why a file in a folder need not be read; "" when it must be. A
// file of no format of metrics can be the output of a training when its name
// says so: source code and settings have numbers with names, too.
func NoMetrics(path string) string {
	f, err := plainfile.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	start := make([]byte, 64<<10)
	n, err := io.ReadFull(f, start)
	if start = start[:n]; n == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return err.Error()
		}
		return "it is empty"
	}
	name := strings.ToLower(filepath.Base(path))
	for _, end := range packings {
		if inside, packed := strings.CutSuffix(name, end); packed {
			if name = inside; slices.Contains([]string{".csv", ".json", ".jsonl"}, filepath.Ext(name)) {
				return ""
			}
		}
	}
	switch ext := filepath.Ext(name); {
	case strings.HasSuffix(name, "-wal"), strings.HasSuffix(name, "-shm"), strings.HasSuffix(name, "-journal"):
		return "it is a part of the database beside it"
	case bytes.HasPrefix(start, []byte("\xfd7zXZ\x00")):
		return "it is compressed by xz, which is not read"
	case metrics.Sniff(start) != metrics.Log, slices.Contains([]string{".log", ".out", ".err", ".txt"}, ext),
		strings.Contains(name, ".log."), strings.Contains(name, "stdout"), strings.Contains(name, "stderr"), name == "log":
		return ""
	case bytes.IndexByte(start, 0) >= 0:
		return "it is binary, and no event file"
	}
	return "no format of metrics, nor by its name the output of a training"
}
