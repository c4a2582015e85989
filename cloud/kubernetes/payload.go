package kubernetes

import (
	"bytes"
	_ "embed" // the launcher
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/helpers"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

//go:embed launch.sh
var launchSh string

// keepPy and keepSh write what a replica has written: see there.
//
//go:embed keep.py
var keepPy string

//go:embed keep.sh
var keepSh string

// mostPayload is how much a ConfigMap takes: the API server's own bound is 1 MiB
// for all of it.
const mostPayload = 1000 << 10

// payload packs the code and what each replica runs, by itself or with helpers, and stops
// where it is plain that there is no room.
func payload(code cloud.Code, withCode bool, nodes []pack.Node, keep []string, helped ...helpers.Node) ([]byte, error) {
	var b bytes.Buffer
	a := pack.NewArchive(&b)
	a.Text("launch.py", pack.Launcher)
	a.Text("mpi.sh", mpiSh)
	a.Text("ray.sh", raySh)
	a.Text("keep.py", keepPy)
	a.Text("keep.sh", keepSh)
	a.Text("keep", linesOf(keep))
	a.Text(keptList, "{}\n")
	for i, n := range nodes {
		text, err := json.Marshal(n)
		if err != nil {
			return nil, err
		}
		a.Text(fmt.Sprintf("node/%d.json", i), string(text))
		a.Text(fmt.Sprintf("node/%d.sh", i), scriptOf(n))
	}
	if len(helped) > 0 {
		if err := helpers.Pack(a, helped); err != nil {
			return nil, err
		}
	}
	if withCode {
		a.Code("code/", code, func() bool { return b.Len() > 64<<20 })
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	if b.Len() > mostPayload {
		return nil, tooMuchError{fmt.Sprintf("the code is %s when packed, and a ConfigMap takes %s; the largest files are %s",
			units.Bytes(int64(b.Len())), units.Bytes(mostPayload), a.Largest())}
	}
	return b.Bytes(), nil
}

// linesOf are paths, each a line. One with a line break in it can't be one.
func linesOf(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		if path = strings.TrimSuffix(path, "/"); path != "" && !strings.Contains(path, "\n") {
			b.WriteString(path + "\n")
		}
	}
	return b.String()
}

// scriptOf is sh that a replica of one rank reads: its variables, and its words
// as the arguments. Of what the launcher starts it reads the rest itself.
func scriptOf(n pack.Node) string {
	var b strings.Builder
	if n.Several() {
		return "several=yes\n"
	}
	for _, pair := range n.Procs[0].Env {
		key, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&b, "export %s=%s\n", key, shellword.Quote(value))
	}
	fmt.Fprintf(&b, "several=no\nset -- %s\n", shellword.Join(n.Procs[0].Argv...))
	return b.String()
}

// tooMuchError says that the code does not fit.
type tooMuchError struct{ text string }

func (e tooMuchError) Error() string { return e.text }

// Advice says what to do.
func (tooMuchError) Advice() string {
	return "leave out what is no code (code.exclude, .dlwbignore), or have it in the image or on a volume and name the directory in machines.workdir"
}
