// Command readme writes the key table of the screen into README.md, between
// its two markers.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/dlwb/dlwb/ui"
)

//go:generate go run . ../../README.md

var (
	from = []byte("<!-- keys: made by the key table, see ui.KeyTable -->\n")
	to   = []byte("<!-- /keys -->")
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: readme README.md")
		os.Exit(2)
	}
	page, err := os.ReadFile(os.Args[1])
	if err == nil {
		if page, err = withKeys(page); err == nil {
			err = os.WriteFile(os.Args[1], page, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

// withKeys puts the key table between the markers of a page.
func withKeys(page []byte) ([]byte, error) {
	head, rest, found := bytes.Cut(page, from)
	_, tail, closed := bytes.Cut(rest, to)
	if !found || !closed {
		return nil, fmt.Errorf("the page has no place for the keys: %s…%s", from, to)
	}
	return bytes.Join([][]byte{head, from, []byte("\n" + ui.KeyTable() + "\n"), to, tail}, nil), nil
}
