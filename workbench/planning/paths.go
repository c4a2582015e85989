package planning

import (
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	// mostPaths bounds what is looked at to complete paths, and deepestPath how
	// far below the directory: a project may hold a data set.
	mostPaths   = 2000
	deepestPath = 3
)

// Paths names what lies in a directory, for completing what a person types, those
// near the top first. Directories end with a slash. Hidden ones, links and what
// cannot be read are left out. Names are as the disk has them: untrusted text.
func Paths(dir string) []string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	var out []string
	seen := 0
	for level := []string{"."}; len(level) > 0; {
		var below []string
		for _, at := range level {
			for _, e := range entries(root, at, mostPaths-seen) {
				seen++
				name := path.Join(at, e.Name())
				switch {
				case strings.HasPrefix(e.Name(), ".") || e.Name() == "__pycache__":
				case e.Type().IsRegular():
					out = append(out, name)
				case e.IsDir():
					out = append(out, name+"/")
					if strings.Count(name, "/") < deepestPath-1 {
						below = append(below, name)
					}
				}
			}
		}
		level = below
	}
	return out
}

// entries are at most n entries of a directory below a root.
func entries(root *os.Root, dir string, n int) []fs.DirEntry {
	if n <= 0 {
		return nil
	}
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	all, _ := f.ReadDir(n) // what was read before an error is there
	return all
}
