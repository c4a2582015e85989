// Package statedir is the directory in which dlwb keeps its state: where it is, and
// that nobody else can change it.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/internal/ownfile"
)

// Default is where state is kept: $DLWB_HOME, else dlwb below
// $XDG_STATE_HOME, else ~/.local/state/dlwb.
func Default() (string, error) {
	if d := os.Getenv("DLWB_HOME"); d != "" {
		return named(d)
	}
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "dlwb"), nil
	}
	home, err := os.UserHomeDir()
	if err == nil && !filepath.IsAbs(home) { // it would be another one in each directory
		err = fmt.Errorf("the home directory is %q, which is no absolute path", home)
	}
	if err != nil {
		return "", fmt.Errorf("find the state directory: %w; set DLWB_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "dlwb"), nil
}

// named is the directory that DLWB_HOME names. A relative one would be another in each
// directory: clusters would be on record in one and not in the next, and a project
// could bring a state directory in which it is trusted. Who writes ~ in a file of
// variables, which no shell reads, has one as well.
func named(d string) (string, error) {
	if !filepath.IsAbs(d) {
		what := "is a relative path, and would be another directory in each place"
		if d[0] == '~' {
			what = "begins with ~, which only a shell expands"
		}
		return "", fmt.Errorf("find the state directory: DLWB_HOME is %q, which %s; give the whole path", d, what)
	}
	return filepath.Clean(d), nil
}

// Make makes the state directory, and refuses one that another user of this
// machine can change: keys, host keys and what is trusted are read from there.
func Make(dir string) error {
	for _, d := range []string{"", "locks", "runs"} {
		err := ownfile.MakeDir(filepath.Join(dir, d))
		if unsafe := (*ownfile.Error)(nil); err != nil && !errors.As(err, &unsafe) { // that one says what to do
			err = fmt.Errorf("%w; set DLWB_HOME to a directory that you can write to", err)
		}
		if err != nil {
			return fmt.Errorf("open the state directory: %w", err)
		}
	}
	for _, d := range []string{"dlwb.sqlite", "keys", "forwards"} {
		if err := ownfile.Check(filepath.Join(dir, d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open the state directory: %w", err)
		}
	}
	return nil
}
