package tunnel

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// sshConfigMost bounds the user's own configuration of ssh.
const sshConfigMost = 64 << 20

// SSHInclude is the one line that makes the nodes of all clusters known by name
// to the user's own ssh, and to whatever uses it.
type SSHInclude struct {
	File  string `json:"file"` // the user's ssh configuration
	Line  string `json:"line"`
	There bool   `json:"already_there"`
	Added bool   `json:"added"`
	Undo  string `json:"undo"`
}

// Include says what the line is, and whether it is in the user's ssh
// configuration already. It changes nothing.
func (s *SSH) Include() (SSHInclude, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return SSHInclude{}, fmt.Errorf("find ~/.ssh/config: %w", err)
	}
	// It stays a line about a directory, so that it need not be changed when
	// clusters come and go.
	in := SSHInclude{File: filepath.Join(home, ".ssh", "config"), Line: "Include " + includePath(filepath.Join(s.dir(), "*.conf"))}
	in.Undo = "to undo it, delete that line from " + in.File
	text, err := plainfile.Read(in.File, sshConfigMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return in, fmt.Errorf("read %s: %w", in.File, err)
	}
	for line := range bytes.Lines(text) {
		in.There = in.There || strings.TrimSpace(string(line)) == in.Line
	}
	return in, nil
}

// includePath is a path in quotation marks. Include knows no %-tokens.
func includePath(path string) string { return `"` + filepath.ToSlash(path) + `"` }

// AddInclude puts the line at the top of the user's ssh configuration, once:
// further down it would belong to the Host above it. The rest of the file stays
// as it is, byte for byte, and so do its mode and a link that leads to it.
func (s *SSH) AddInclude() (SSHInclude, error) {
	in, err := s.Include()
	if err != nil || in.There {
		return in, err
	}
	if err := os.MkdirAll(s.dir(), 0o700); err != nil {
		return in, err
	}
	if err := os.MkdirAll(filepath.Dir(in.File), 0o700); err != nil {
		return in, err
	}
	if err := putFirst(in.File, in.Line+"\n"); err != nil {
		return in, fmt.Errorf("add a line to %s: %w", in.File, err)
	}
	in.Added = true
	return in, nil
}

// putFirst puts text in front of a file, all of it or nothing.
func putFirst(path, text string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if _, e := os.Lstat(path); e == nil {
		return err // a link that leads nowhere: what was meant is not known
	}
	mode := fs.FileMode(0o600)
	old, err := plainfile.Read(path, sshConfigMost)
	switch {
	case err == nil:
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return wholefile.Write(path, append([]byte(text), old...), mode)
}
