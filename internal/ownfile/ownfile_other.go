//go:build !unix

package ownfile

import "os"

// MakeDir makes a directory where there is none.
func MakeDir(path string) error { return os.MkdirAll(path, 0o700) }

// Check reports fs.ErrNotExist when nothing lies at path.
func Check(path string) error {
	_, err := os.Stat(path)
	return err
}
