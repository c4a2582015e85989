package trust

import (
	"os"
	"path/filepath"
	"strings"
)

// ProjectDir is the directory that a profile's project is: the git work tree
// that the profile lies in, else its own directory. It is never the home
// directory or one above, unless the profile itself lies there: what else is in
// a home is no part of a project. Links in the path are resolved.
func ProjectDir(profile string) string {
	dir := realPath(filepath.Dir(profile))
	home, _ := os.UserHomeDir()
	if home != "" {
		home = realPath(home)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if home != "" && within(home, at) || filepath.Dir(at) == at {
			return dir
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
}

// realPath resolves the links in a path as far as it exists.
func realPath(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(realPath(dir), filepath.Base(path))
	}
	return path
}

// within reports whether a path is a directory or something below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
