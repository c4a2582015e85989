// Package settings reads what the user allows, from a file of the user's own.
// A project can neither bring such a file nor change it: it is the one place,
// besides the command line, where somebody may say that a profile goes further
// than its own directory.
package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dlwb/dlwb/internal/ownfile"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
)

// Settings are what the user allows.
type Settings struct {
	// Path is the file that they were read from, or would be.
	Path string
	// AllowCode are directories outside of a profile's own that it may send.
	AllowCode []string
	// Send are patterns of files that are sent although they look like
	// secrets; Hold of those that are held back although they do not.
	Send, Hold []string
	// Secrets are variables of the user's shell that a run gets, by name. The
	// command line says them, no file does.
	Secrets []string
}

// FileName is the name of the file, in the directory of dlwb's settings.
const FileName = "config.yaml"

// Keys are the keys of the file.
var Keys = []profiles.ListKey{
	{Key: "code.allow", Doc: "Directories that a profile may send although they do not lie below its own, each with all below it.",
		Example: "[~/code/common]", Check: isDir},
	{Key: "secrets.send", Doc: "Files that are sent although they look like secrets, as patterns of .gitignore below the code directory.",
		Example: `[certs/test.key, "*.tfvars"]`},
	{Key: "secrets.hold", Doc: "Files that are held back although they look like nothing special, as patterns of .gitignore.",
		Example: `["customers*.csv"]`},
}

func isDir(text string) (why, next string) {
	if filepath.IsAbs(filepath.FromSlash(text)) || text == "~" || strings.HasPrefix(text, "~/") {
		return "", ""
	}
	return "it is relative, and to what can't be known", "write the path out, or begin it with ~/"
}

// Path is where the file is: below $XDG_CONFIG_HOME, else below ~/.config; on
// Windows below %AppData%.
func Path() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dlwb", FileName), nil
	}
	if runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "dlwb", FileName), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config", "dlwb", FileName), err
}

// Load reads the user's settings. Without a file nothing is allowed. One that
// another user can change is refused.
func Load() (Settings, error) {
	path, err := Path()
	if err != nil {
		return Settings{}, nil // a user without a home has no settings
	}
	s := Settings{Path: path}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err := ownfile.Check(path); err != nil {
		return s, fmt.Errorf("read your settings: %w", err)
	}
	text, err := read(path)
	if err != nil {
		return s, fmt.Errorf("read your settings: %w", err)
	}
	return parse(path, text)
}

// read reads the file, which is refused where it is a pipe or a device.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, profiles.MaxSize+1))
}

func parse(path string, text []byte) (Settings, error) {
	found, err := profiles.ParseLists(path, "the settings", text, Keys)
	s := Settings{Path: path, Send: found["secrets.send"], Hold: found["secrets.hold"]}
	for _, dir := range found["code.allow"] {
		s.AllowCode = append(s.AllowCode, expand(dir))
	}
	return s, err
}

// expand puts the home directory in the place of ~.
func expand(dir string) string {
	home, err := os.UserHomeDir()
	if below, ok := strings.CutPrefix(dir, "~"); ok && err == nil {
		return filepath.Join(home, filepath.FromSlash(below))
	}
	return filepath.Clean(filepath.FromSlash(dir))
}
