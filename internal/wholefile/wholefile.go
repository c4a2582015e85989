// Package wholefile writes a file whole or not at all: its readers see the old
// content or the new one, also when the writer dies, and also when several
// processes write at once.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file. It is on the disk when there is no error. Where its
// directory is not there, it is made for the user alone.
func Write(path string, content []byte, mode fs.FileMode) error {
	return write(path, content, mode, (*os.File).Sync)
}

// Cache replaces a private file that may be lost when the machine stops, because
// it can be made again.
func Cache(path string, content []byte) error {
	return write(path, content, 0o600, func(*os.File) error { return nil })
}

func write(path string, content []byte, mode fs.FileMode, sync func(*os.File) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if mode != 0o600 {
		err = errors.Join(err, f.Chmod(mode))
	}
	if err == nil {
		err = sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
