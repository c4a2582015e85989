//go:build linux

package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// addLine adds a line to a file, behind whatever there is, unless it is there.
func addLine(path, line string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for l := range bytes.Lines(text) {
		if string(bytes.TrimRight(l, "\n")) == line {
			return nil
		}
	}
	line += "\n"
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// removeLines takes lines out of a file. The file keeps its inode and its mode: it may
// be a link, or watched. What is kept is in it at each moment: nobody is locked out by an
// interruption.
func removeLines(path string, is func(line string) bool) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	was, err := os.ReadFile(path)
	var kept []byte
	for line := range bytes.Lines(was) {
		if !is(string(line)) {
			kept = append(kept, line...)
		}
	}
	if err != nil || len(kept) == len(was) {
		return err
	}
	if _, err := f.WriteAt(kept, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(kept)))
}

// holds reports whether a file has such a line.
func holds(path string, is func(line string) bool) bool {
	b, _ := os.ReadFile(path)
	for line := range bytes.Lines(b) {
		if is(string(line)) {
			return true
		}
	}
	return false
}

// forPeers reports whether a line of authorized_keys lets the other nodes of a cluster in.
func forPeers(line string) bool { return strings.Contains(line, hostclaim.PeerLine) }

// ofLife ends such a line of a cluster that is not the first in its home directory.
func ofLife(life string) string { return " of life " + life }

// peerLines tells the lines that are a life's own. With the first cluster go all that are
// of nobody who is there.
func (h *Host) peerLines(c hostclaim.Claim, beside bool) func(line string) bool {
	all := h.claims()
	return func(line string) bool {
		line = strings.TrimRight(line, "\r\n")
		if beside || !forPeers(line) {
			return forPeers(line) && strings.HasSuffix(line, ofLife(c.Life))
		}
		for _, other := range all {
			if other.Life != c.Life && strings.HasSuffix(line, ofLife(other.Life)) {
				return false
			}
		}
		return true
	}
}
