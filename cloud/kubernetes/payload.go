package kubernetes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed" // the launcher
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

//go:embed launch.sh
var launchSh string

//go:embed launch.py
var launchPy string

// mostPayload is how much a ConfigMap takes: the API server's own bound is 1 MiB
// for all of it.
const mostPayload = 1000 << 10

// nodeWork is what one replica runs.
type nodeWork struct {
	Procs []proc `json:"procs"`
}

// proc is one process that the launcher starts.
type proc struct {
	Ranks []int    `json:"ranks"`
	Env   []string `json:"env"`
	Argv  []string `json:"argv"`
	// Launcher says that it starts the ranks, and has a log of its own.
	Launcher bool `json:"launcher,omitempty"`
}

// payload packs the code and what each replica runs.
func payload(code cloud.Code, withCode bool, nodes []nodeWork) ([]byte, error) {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	p := packer{w: tar.NewWriter(zip), sizes: map[string]int64{}}
	p.text("launch.py", launchPy)
	for i, n := range nodes {
		text, err := json.Marshal(n)
		if err != nil {
			return nil, err
		}
		p.text(fmt.Sprintf("node/%d.json", i), string(text))
		p.text(fmt.Sprintf("node/%d.sh", i), scriptOf(n))
	}
	if withCode {
		err = p.code(code, &b)
	}
	if err = errors.Join(err, p.err, p.w.Close(), zip.Close()); err != nil {
		return nil, err
	}
	if b.Len() > mostPayload {
		return nil, p.tooMuch(int64(b.Len()))
	}
	return b.Bytes(), nil
}

// scriptOf is sh that a replica of one rank reads: its variables, and its words
// as the arguments.
func scriptOf(n nodeWork) string {
	var b strings.Builder
	if len(n.Procs) != 1 || len(n.Procs[0].Ranks) != 1 {
		return "several=yes\n"
	}
	for _, pair := range n.Procs[0].Env {
		key, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&b, "export %s=%s\n", key, shellword.Quote(value))
	}
	fmt.Fprintf(&b, "several=no\nset -- %s\n", shellword.Join(n.Procs[0].Argv...))
	return b.String()
}

type packer struct {
	w     *tar.Writer
	sizes map[string]int64
	err   error
}

func (p *packer) text(name, text string) {
	p.err = errors.Join(p.err, p.header(name, 0o644, int64(len(text))))
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

func (p *packer) header(name string, mode, size int64) error {
	return p.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size, Format: tar.FormatPAX})
}

// code packs the files of a directory, and stops where it is plain that there is
// no room.
func (p *packer) code(code cloud.Code, packed *bytes.Buffer) error {
	root, err := os.OpenRoot(code.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, path := range code.Paths {
		if err := p.file(root, path); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
		if packed.Len() > 64<<20 {
			break
		}
	}
	for _, path := range slices.Sorted(maps.Keys(code.Links)) {
		if err := p.w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "code/" + path, Linkname: code.Links[path], Mode: 0o777, Format: tar.FormatPAX}); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
	}
	return nil
}

func (p *packer) file(root *os.Root, path string) error {
	f, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	p.sizes[path] = info.Size()
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := p.header("code/"+path, mode, info.Size()); err != nil {
		return err
	}
	_, err = io.CopyN(p.w, f, info.Size()) // one that grows meanwhile is cut, one that shrinks is an error
	return err
}

// tooMuchError says that the code does not fit.
type tooMuchError struct{ text string }

func (e tooMuchError) Error() string { return e.text }

// Advice says what to do.
func (tooMuchError) Advice() string {
	return "leave out what is no code (code.exclude, .dlwbignore), or have it in the image or on a volume and name the directory in machines.workdir"
}

func (p *packer) tooMuch(size int64) error {
	paths := make([]string, 0, len(p.sizes))
	for path := range p.sizes {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int {
		if p.sizes[a] != p.sizes[b] {
			return int(min(max(p.sizes[b]-p.sizes[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	for i, path := range paths[:min(3, len(paths))] {
		paths[i] = path + " (" + units.Bytes(p.sizes[path]) + ")"
	}
	return tooMuchError{fmt.Sprintf("the code is %s when packed, and a ConfigMap takes %s; the largest files are %s",
		units.Bytes(size), units.Bytes(mostPayload), strings.Join(paths[:min(3, len(paths))], ", "))}
}
