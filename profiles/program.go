package profiles

import (
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/shellword"
)

// checkProgram looks at what a command starts, where that is a file of the code
// directory and no script of Python's: what no shell would find or start there is told
// before a node says "not found" of a file that is there.
func (p *Profile) checkProgram(dir string) Errors {
	name, plain := program(words(p.Run.Command))
	if name == "" || path.IsAbs(name) || strings.ContainsAny(name, `$*\~`) {
		return nil
	}
	file := inside(dir, name)
	at, err := os.Stat(file)
	if err != nil || !at.Mode().IsRegular() {
		return nil // a command of the node's, or something that is made there
	}
	fault := func(why, next string) Errors {
		e := p.Fault("run.command", quote(name), why, "", next)
		e.point(name)
		return Errors{e}
	}
	typed := shellword.Join(name) // in a line for a shell
	shell := strings.HasSuffix(name, ".sh") || strings.HasSuffix(name, ".bash")
	switch {
	case strings.HasSuffix(name, ".ipynb"):
		return fault("it is a notebook, which Python does not run", "jupyter nbconvert --to script "+typed+" makes a script of it")
	case !plain:
		return nil // an interpreter's
	case !strings.Contains(name, "/") && shell:
		return fault("a command without a / is looked for on the PATH, and not in the code directory", "sh "+typed+", or "+shellword.Join("./"+name))
	case !strings.Contains(name, "/"):
		return nil
	case at.Mode()&0o111 == 0 && runtime.GOOS != "windows":
		return fault("it is not executable", "chmod +x "+typed+", or name its interpreter before it")
	case carriageReturn(file):
		return fault("its first line ends with a carriage return, which counts as a part of its interpreter's name",
			"sed -i 's/\\r$//' "+typed+" takes them out of the file")
	}
	return nil
}

// program is the file that a command starts; plain: by itself, and not by an
// interpreter before it.
func program(words []string) (name string, plain bool) {
	for i, w := range words {
		switch {
		case strings.HasSuffix(w, ".ipynb") || i == 0 && !launchers.MatchString(path.Base(w)):
			return w, i == 0
		case strings.HasSuffix(w, ".py") || w == "-m" || w == "-c":
			return "", false
		}
	}
	return "", false
}

// carriageReturn reports whether a file begins with the name of an interpreter in a
// line of Windows's.
func carriageReturn(file string) bool {
	f, err := plainfile.Open(filepath.Clean(file))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head, _ := io.ReadAll(io.LimitReader(f, 256))
	line, _, whole := bytes.Cut(head, []byte("\n"))
	return whole && bytes.HasPrefix(line, []byte("#!")) && bytes.HasSuffix(line, []byte("\r"))
}
