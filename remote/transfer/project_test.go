//go:build unix

package transfer

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const codeDir = "dlwb/c/code"

// dirText describes everything in a directory: what a test compares.
func dirText(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%q", rel)
		switch {
		case d.IsDir():
			line += " dir"
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			line += " -> " + target
		default:
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if len(text) > 99 {
				text = fmt.Appendf(nil, "%x", sha256.Sum256(text))
			}
			line += fmt.Sprintf(" %o %d %q", info.Mode().Perm(), info.ModTime().Unix(), text)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// oddProject has what names and trees can have.
var oddProject = map[string]string{
	"train.py": "print(1)\n", "-rf": "dash", "a b/c d": "space", "new\nline/x\ny": "newline", "ünï/cödé": "unicode",
	"\xff\xfe/\x01": "bytes", "empty/": "", "it's/$(x)`y`\"\\": "shell", "d/e/f/g": "deep", "in": "-> d/e", "d/e/up": "-> ../../train.py",
	"dangling": "-> nothing", "zero": "", "big": strings.Repeat("0123456789abcdef", 20_000), "*": "star", "~": "tilde",
	strings.Repeat("long-directory-name/", 12) + strings.Repeat("n", 200): "long", "a\\nb": "backslash",
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
