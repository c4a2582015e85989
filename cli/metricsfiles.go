package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench/history"
)

// severalFiles is the format of an answer about a folder or several files.
const severalFiles metrics.Format = "files"

// Bounds of a folder that is looked through.
const (
	deepestFolder = 8
	mostInFolder  = 1000
)

// unreadDoc is a file that was looked at and gave nothing.
type unreadDoc struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// isFolder reports whether a path is a directory.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// metricsOfFiles reads each file by its kind, and of a folder those that can
// hold metrics. Each series says which file it is from; what gave none says why.
func (a *app) metricsOfFiles(ctx context.Context, paths []string, user []metrics.UserMetric, why bool) error {
	answer := metricsAnswer{}
	answer.fill(&metrics.Document{Format: severalFiles})
	for _, path := range paths {
		if !isFolder(path) {
			doc, err := a.document(ctx, path, user, a.explained(&answer, why))
			if err != nil {
				return err
			}
			answer.join(path, doc)
			continue
		}
		files, skipped, err := filesBelow(path)
		if err != nil {
			return err
		}
		answer.Unread = append(answer.Unread, skipped...)
		for _, file := range files {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if reason := noMetrics(file); reason != "" {
				answer.Unread = append(answer.Unread, unreadDoc{file, reason})
				continue
			}
			doc, err := a.document(ctx, file, user, a.explained(&answer, why))
			if err != nil {
				answer.Unread = append(answer.Unread, unreadDoc{file, err.Error()})
				continue
			}
			answer.join(file, doc)
		}
	}
	if a.json {
		return writeMetricsJSON(a.out, &answer)
	}
	return a.answer(answer, func(out io.Writer) { writeFiles(out, answer) })
}

// join adds what a file says.
func (answer *metricsAnswer) join(file string, doc *metrics.Document) {
	switch {
	case doc.Format == metrics.NvidiaSMI:
		answer.Unread = append(answer.Unread, unreadDoc{file, "an answer of nvidia-smi, which is told when it is the only file"})
		return
	case len(doc.Set.Series) == 0:
		answer.Unread = append(answer.Unread, unreadDoc{file, fmt.Sprintf("no series found (read as %s)", doc.Format)})
		return
	}
	one := metricsAnswer{}
	one.fill(doc)
	for _, s := range one.Series {
		s.Sources = []history.SeriesSource{{Source: file, Format: string(doc.Format), Count: int64(s.from.Len() * s.Every), Shown: "all"}}
		answer.Series = append(answer.Series, s)
	}
	answer.Faults = append(answer.Faults, one.Faults...)
}

// filesBelow are the files below a directory, in the order of their names. What is
// hidden is not looked at; links are not followed.
func filesBelow(dir string) (files []string, skipped []unreadDoc, err error) {
	root := filepath.Clean(dir)
	err = filepath.WalkDir(root+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		name, below, depth := filepath.Base(path), path != root, strings.Count(path, string(filepath.Separator))-strings.Count(root, string(filepath.Separator))
		switch {
		case err != nil && !below:
			return fmt.Errorf("look through %s: %w", dir, err)
		case err != nil:
			skipped = append(skipped, unreadDoc{path, err.Error()})
		case below && strings.HasPrefix(name, "."), name == "__pycache__", name == "node_modules":
			if entry.IsDir() {
				return filepath.SkipDir
			}
		case entry.IsDir() && depth > deepestFolder:
			skipped = append(skipped, unreadDoc{path, fmt.Sprintf("more than %d directories deep", deepestFolder)})
			return filepath.SkipDir
		case entry.IsDir():
		case !entry.Type().IsRegular():
			skipped = append(skipped, unreadDoc{path, "no regular file"})
		case len(files) >= mostInFolder:
			skipped = append(skipped, unreadDoc{path, fmt.Sprintf("more than %d files", mostInFolder)})
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

// noMetrics says why a file in a folder need not be read; "" when it must be. A
// file of no format of metrics can be the output of a training when its name
// says so: source code and settings have numbers with names, too.
func noMetrics(path string) string {
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

// mostNamed bounds the files that are named for one reason.
const mostNamed = 3

// writeFiles prints one line for each series with its file, and what was not read.
func writeFiles(out io.Writer, answer metricsAnswer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(answer.Series) > 0 {
		sanitize.Fprintf(w, seriesHeader+"\tFILE\n")
	} else {
		fmt.Fprintln(out, "no series found")
	}
	for i := range answer.Series {
		sanitize.Fprintf(w, seriesRow+"\t%s\n", append(answer.Series[i].cells(), answer.Series[i].Sources[0].Source)...)
	}
	w.Flush()
	var reasons []string
	files := map[string][]string{}
	for _, u := range answer.Unread {
		if files[u.Why] == nil {
			reasons = append(reasons, u.Why)
		}
		files[u.Why] = append(files[u.Why], u.File)
	}
	for _, why := range reasons {
		named := strings.Join(files[why][:min(len(files[why]), mostNamed)], ", ")
		if more := len(files[why]) - mostNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		sanitize.Fprintf(out, "not read: %s: %s\n", named, why)
	}
}
