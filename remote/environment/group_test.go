package environment

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// index is a package index of the files in a directory. It counts how often
// each was fetched.
type index struct {
	dir  string
	url  string
	hold chan struct{} // no file is given before it is closed; nil: at once
	seen chan struct{} // closed when the first file is asked for

	mu    sync.Mutex
	asked sync.Once
	got   map[string]int
}

func newIndex(t *testing.T, dir string, hold chan struct{}) *index {
	t.Helper()
	x := &index{dir: dir, hold: hold, seen: make(chan struct{}), got: map[string]int{}}
	s := httptest.NewServer(x)
	t.Cleanup(s.Close)
	x.url = s.URL + "/simple/"
	return x
}

// ServeHTTP gives a project's page, or a file.
func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if strings.HasPrefix(r.URL.Path, "/files/") {
		x.asked.Do(func() { close(x.seen) })
		if x.hold != nil {
			<-x.hold
		}
		x.mu.Lock()
		x.got[name]++
		x.mu.Unlock()
		http.ServeFile(w, r, filepath.Join(x.dir, name))
		return
	}
	files, _ := filepath.Glob(filepath.Join(x.dir, name+"-*"))
	if len(files) == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for _, f := range files {
		_, _ = fmt.Fprintf(w, "<a href=\"/files/%[1]s\">%[1]s</a>\n", filepath.Base(f))
	}
}

// counts is how often each file was fetched, and forgets it.
func (x *index) counts() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	text := fmt.Sprint(x.got)
	x.got = map[string]int{}
	return strings.TrimSuffix(strings.TrimPrefix(text, "map["), "]")
}

// crew is nodes whose environments are made at once.
type crew struct {
	t     *testing.T
	nodes []*local
	told  tellings

	copied      atomic.Int32
	copyFail    error
	copyNothing bool // an empty directory is what comes
}

// tellings are what the nodes say.
type tellings struct {
	mu   sync.Mutex
	said []string
}

func (s *tellings) tell(node int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf("node%d: %s", node, text))
}

func (s *tellings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, "\n")
}

func newCrew(t *testing.T, count int, indexURL string) *crew {
	t.Helper()
	c := &crew{t: t}
	base := bare(t)
	for range count {
		l := newLocal(t, base)
		l.env = append(l.env, "PIP_INDEX_URL="+indexURL)
		c.nodes = append(c.nodes, l)
	}
	return c
}

func (c *crew) copy(_ context.Context, from Dir, to []Dir, most int64) []error {
	errs := make([]error, len(to))
	for i, d := range to {
		c.copied.Add(1)
		if errs[i] = c.copyFail; errs[i] == nil {
			source := os.DirFS(filepath.Join(c.nodes[from.Node].home, from.Path))
			if c.copyNothing {
				source = os.DirFS(c.t.TempDir())
			}
			errs[i] = os.CopyFS(filepath.Join(c.nodes[d.Node].home, d.Path), source)
		}
	}
	return errs
}

func (c *crew) group() *Group {
	names := make([]string, len(c.nodes))
	for i := range names {
		names[i] = fmt.Sprintf("node%d", i)
	}
	return NewGroup(names, c.copy)
}

func (c *crew) preparer(g *Group, i int, spec Spec) preparer {
	spec.Group, spec.Node = g, i
	return preparer{run: c.nodes[i], spec: spec, limit: 10 * time.Minute, progress: func(text string) { c.told.tell(i, text) }}
}

// prepare makes all environments; each must come up.
func (c *crew) prepare(spec Spec) []Result {
	c.t.Helper()
	g := c.group()
	results, errs := make([]Result, len(c.nodes)), make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i, l := range c.nodes {
		l.trips = 0
		all.Go(func() { results[i], errs[i] = c.preparer(g, i, spec).prepare(c.t.Context()) })
	}
	all.Wait()
	g.Close(c.t.Context())
	for i, err := range errs {
		if err != nil {
			c.nodes[i].explain(err)
			c.t.Fatalf("node%d: %v\n%s", i, err, &c.told)
		}
	}
	for _, l := range c.nodes {
		if left, _ := filepath.Glob(filepath.Join(l.home, "dlwb/c/.wheels*")); len(left) > 0 {
			c.t.Errorf("%q is left", left)
		}
	}
	return results
}

// have checks that a package is everywhere.
func (c *crew) have(results []Result, name, version string) {
	c.t.Helper()
	for i, r := range results {
		if got := c.nodes[i].python(r, "import "+name+"; print("+name+".version)"); got != version {
			c.t.Errorf("%s on node%d is %q", name, i, got)
		}
	}
}

func TestEachPackageIsFetchedOnceForAllNodes(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	dir := t.TempDir()
	wheel(t, dir, "dlwbone", "1.0")
	wheel(t, dir, "dlwbtwo", "2.0", "dlwbone>=0.5")
	wheel(t, dir, "dlwbthree", "3.0", "dlwbtwo")
	x := newIndex(t, dir, nil)
	c := newCrew(t, 3, x.url)
	spec := Spec{Kind: Venv, Cluster: "c", Content: "--index-url " + x.url + "\ndlwbtwo >= 1 # ours\n"}
	results := c.prepare(spec)
	c.have(results, "dlwbone", "1.0")
	c.have(results, "dlwbtwo", "2.0")
	if got := x.counts(); got != "dlwbone-1.0-py3-none-any.whl:1 dlwbtwo-2.0-py3-none-any.whl:1" {
		t.Errorf("fetched: %s\n%s", got, &c.told)
	}
	contains(t, c.told.String(), "waiting for the wheels from node", "getting 2 wheels, 1.6 kB from node")
	// Nothing has changed: each node is asked once.
	for i, r := range c.prepare(spec) {
		if !r.Skipped || c.nodes[i].trips != 1 {
			t.Errorf("node%d: skipped %v in %d round trips", i, r.Skipped, c.nodes[i].trips)
		}
	}
	// What is installed is not fetched again, although something new needs it.
	spec.Content = "dlwbtwo\ndlwbthree\n"
	c.have(c.prepare(spec), "dlwbthree", "3.0")
	if got := x.counts(); got != "dlwbthree-3.0-py3-none-any.whl:1" {
		t.Errorf("fetched: %s", got)
	}
	// Everything is there already: nobody runs pip.
	spec.Content = "dlwbone\ndlwbtwo\n"
	results = c.prepare(spec)
	if got := x.counts(); got != "" || results[0].Skipped || c.nodes[0].trips != 2 {
		t.Errorf("fetched: %q in %d round trips", got, c.nodes[0].trips)
	}
}

// backend builds a wheel with nothing but the standard library, and counts.
const backend = `import os, zipfile
INFO = "dlwbsrc-1.0.dist-info"
META = {"METADATA": "Metadata-Version: 2.1\nName: dlwbsrc\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
def prepare_metadata_for_build_wheel(directory, settings=None):
    os.mkdir(os.path.join(directory, INFO))
    for name, text in META.items():
        with open(os.path.join(directory, INFO, name), "w") as f:
            f.write(text)
    return INFO
def build_wheel(directory, settings=None, metadata=None):
    with open(os.environ["DLWB_BUILT"], "a") as f:
        f.write("built\n")
    name = "dlwbsrc-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as z:
        z.writestr("dlwbsrc.py", "version = '1.0'\n")
        for entry, text in META.items():
            z.writestr(INFO + "/" + entry, text)
        z.writestr(INFO + "/RECORD", "dlwbsrc.py,,\n")
    return name
`

// source makes a source distribution of a package that has to be built.
func source(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "dlwbsrc-1.0.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(f)
	w := tar.NewWriter(zip)
	for name, text := range map[string]string{
		"PKG-INFO":       "Metadata-Version: 2.1\nName: dlwbsrc\nVersion: 1.0\n",
		"backend.py":     backend,
		"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
	} {
		if err = w.WriteHeader(&tar.Header{Name: "dlwbsrc-1.0/" + name, Mode: 0o644, Size: int64(len(text))}); err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatHasToBeBuiltIsBuiltOnceForAllNodes(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	dir := t.TempDir()
	source(t, dir)
	x := newIndex(t, dir, nil)
	c := newCrew(t, 3, x.url)
	built := filepath.Join(t.TempDir(), "built")
	for _, l := range c.nodes {
		l.env = append(l.env, "DLWB_BUILT="+built)
	}
	c.have(c.prepare(Spec{Kind: Venv, Cluster: "c", Content: "dlwbsrc\n"}), "dlwbsrc", "1.0")
	text, _ := os.ReadFile(built)
	if got := x.counts(); got != "dlwbsrc-1.0.tar.gz:1" || string(text) != "built\n" {
		t.Errorf("fetched: %s; %q\n%s", got, text, &c.told)
	}
}

func TestWhereSharingDoesNotWorkEveryNodeInstallsByItself(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	dir := t.TempDir()
	wheel(t, dir, "dlwbone", "1.0")
	for name, c := range map[string]struct {
		spoil   func(*crew)
		content string
		fetched int
		copied  int32
		says    string
	}{
		"the fetch fails": {spoil: func(c *crew) {
			for _, l := range c.nodes {
				file := filepath.Join(t.TempDir(), "pip.conf")
				write(t, file, "[wheel]\nno-index = true\n")
				l.env = append(l.env, "PIP_CONFIG_FILE="+file)
			}
		}, fetched: 2, says: "it has none to share"},
		"the copy fails":               {spoil: func(c *crew) { c.copyFail = errors.New("no way there") }, fetched: 2, copied: 1, says: "no way there"},
		"what came is too little":      {spoil: func(c *crew) { c.copyNothing = true }, fetched: 2, copied: 1, says: "but from the index"},
		"an option says how to get it": {content: "--pre\ndlwbone\n", fetched: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newIndex(t, dir, nil)
			crew := newCrew(t, 2, x.url)
			if c.spoil != nil {
				c.spoil(crew)
			}
			if c.content == "" {
				c.content = "dlwbone\n"
			}
			crew.have(crew.prepare(Spec{Kind: Venv, Cluster: "c", Content: c.content}), "dlwbone", "1.0")
			want := fmt.Sprintf("dlwbone-1.0-py3-none-any.whl:%d", c.fetched)
			if got := x.counts(); got != want || crew.copied.Load() != c.copied {
				t.Errorf("fetched: %s, want %s; copied to %d nodes, want %d\n%s", got, want, crew.copied.Load(), c.copied, &crew.told)
			}
			contains(t, crew.told.String(), c.says)
		})
	}
}

func TestANodeDoesNotWaitForEverForAnothersWheels(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	dir := t.TempDir()
	wheel(t, dir, "dlwbone", "1.0")
	hold := make(chan struct{})
	slow, quick := newIndex(t, dir, hold), newIndex(t, dir, nil)
	c := newCrew(t, 2, slow.url)
	c.nodes[1].env = append(c.nodes[1].env, "PIP_INDEX_URL="+quick.url)
	g := c.group()
	spec := Spec{Kind: Venv, Cluster: "c", Content: "dlwbone\n"}
	first := make(chan error)
	go func() {
		_, err := c.preparer(g, 0, spec).prepare(t.Context())
		first <- err
	}()
	<-slow.seen
	p := c.preparer(g, 1, spec)
	p.patience = time.Millisecond
	r, err := p.prepare(t.Context())
	close(hold)
	if err := errors.Join(err, <-first); err != nil {
		t.Fatalf("%v\n%s", err, &c.told)
	}
	g.Close(t.Context())
	if got := c.nodes[1].python(r, "import dlwbone; print(dlwbone.version)"); got != "1.0" || c.copied.Load() != 0 {
		t.Errorf("it says %q; %d copies", got, c.copied.Load())
	}
	contains(t, c.told.String(), "node1: waiting for the wheels from node0", "node1: no wheels from node0: they are not here after")
}

func TestOnlyPackagesByTheirNamesAreShared(t *testing.T) {
	for content, want := range map[string]bool{
		"torch>=2.1\nnumpy[extra]~=1.0 ; python_version < '3.9'\n\n# https://a/b\n": true,
		"-i http://a/b\n--extra-index-url=http://c/d\ntorch # see https://e/f\n":    true,
		"six==1.16 \\\n    --hash=sha256:00\n":                                      true,
		"--trusted-host a\ntorch\n":                                                 true,
		"-e .\n":                                                                    false,
		"./mine\n":                                                                  false,
		"deps/mine\n":                                                               false,
		"mine.whl\n":                                                                false,
		"mine @ git+https://a/b\n":                                                  false,
		"git+https://a/b\n":                                                         false,
		"-r other.txt\n":                                                            false,
		"-c limits.txt\ntorch\n":                                                    false,
		"--no-binary :all:\ntorch\n":                                                false,
		"--index-url \\\nhttp://a\n":                                                false,
	} {
		if got := sharable(content); got != want {
			t.Errorf("%q: %v", content, got)
		}
	}
}
