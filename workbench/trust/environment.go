package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// What is read of the files of an environment.
const (
	mostFile  = 1 << 20
	mostFiles = 100
	mostBytes = 8 << 20
)

// included is a line of a requirements file that names another one. It may be
// in the list of a conda environment, too.
var included = pattern.New(`^(?:-\s+)?["']?(?:-r|-c|--requirement|--constraint)(?:\s*=\s*|\s+|)["']?([^"'#]+?)["']?\s*(?:\s#.*)?$`)

// environment adds the file that an environment is made from and those that it
// includes.
func (m *material) environment(file string) error {
	waiting, seen := []string{file}, map[string]bool{}
	for len(waiting) > 0 {
		path := realPath(waiting[0])
		waiting = waiting[1:]
		if seen[path] {
			continue
		}
		if seen[path] = true; len(seen) > mostFiles {
			return fmt.Errorf("read the environment's files: %s includes more than %d others", file, mostFiles)
		}
		if !within(path, m.project) {
			m.outside = append(m.outside, path)
			continue
		}
		text, err := plainfile.Read(path, mostFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue // who makes the environment says so
		}
		if err != nil {
			return fmt.Errorf("read the environment's files: %w", err)
		}
		if m.bytes += int64(len(text)); m.bytes > mostBytes {
			return fmt.Errorf("read the environment's files: %s and what it includes have more than %d bytes", file, mostBytes)
		}
		m.add(KindEnvironment, path, text)
		waiting = append(waiting, includes(filepath.Dir(path), string(text))...)
	}
	slices.Sort(m.outside)
	return nil
}

// includes are the files that a requirements file includes. An address is none.
func includes(dir, text string) (files []string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		m := included.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.Contains(m[1], "://") {
			continue
		}
		name := filepath.FromSlash(strings.TrimSpace(m[1]))
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		files = append(files, name)
	}
	return files
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
