package remote

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// IgnoreFile is a file with ignore rules.
type IgnoreFile struct {
	Path string // absolute
	Text []byte
}

// Survey is what decides, besides the profile, which files of a project are
// sent.
type Survey struct {
	IgnoreFiles []IgnoreFile // all that Scan reads
	// Asked are files that look like secrets by their names and that a rule of
	// the project wants sent. Scan holds them back all the same.
	Asked []string
}

// LookAtProject finds what decides which files of the project in dir are sent, as Scan
// does. It reads ignore files, and no others.
func LookAtProject(ctx context.Context, dir string, exclude []string) (Survey, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return Survey{}, fmt.Errorf("look at project %s: %w", dir, err)
	}
	root, err := os.OpenRoot(full)
	if err != nil {
		return Survey{}, fmt.Errorf("look at project %s: %w; is code.dir in the profile right?", dir, err)
	}
	defer func() { _ = root.Close() }()
	s := &scanner{ctx: ctx, root: root, namesOnly: true, emptied: map[string]bool{}, tree: &Tree{Dir: full}}
	if err := s.all(Rules{Exclude: exclude}); err != nil {
		return Survey{}, fmt.Errorf("look at project %s: %w", dir, err)
	}
	seen := Survey{IgnoreFiles: s.ignoreFiles}
	for _, f := range s.tree.Held {
		if f.Asked {
			seen.Asked = append(seen.Asked, f.Path)
		}
	}
	return seen, nil
}
