// Package examples holds the training scripts that come with dlwb, so that the
// demo needs nothing but the program itself.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed charlm
var files embed.FS

// Charlm is the character-level language model of the demo.
func Charlm() fs.FS {
	sub, err := fs.Sub(files, "charlm")
	if err != nil {
		panic(err) // it is part of the program
	}
	return sub
}
