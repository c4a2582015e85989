//go:build linux

package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// removeLines takes the lines that hold a text out of a file. The file keeps its
// inode and its mode: it may be a link, or watched. What is kept is in it at each
// moment: nobody is locked out by an interruption.
func removeLines(path, text string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	was, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(was), text) {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(was) {
		if !bytes.Contains(line, []byte(text)) {
			kept = append(kept, line...)
		}
	}
	if _, err := f.WriteAt(kept, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(kept)))
}

// holds reports whether a file holds a text.
func holds(path, text string) bool {
	b, err := os.ReadFile(path)
	return err == nil && bytes.Contains(b, []byte(text))
}
