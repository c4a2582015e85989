package cli

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// wheelOf is a package with one empty module.
func wheelOf(t *testing.T, name string) []byte {
	t.Helper()
	var text bytes.Buffer
	z := zip.NewWriter(&text)
	info := name + "-1.0.dist-info/"
	for _, file := range [][2]string{
		{name + ".py", ""},
		{info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", ""},
	} {
		w, err := z.Create(file[0])
		if err == nil {
			_, err = w.Write([]byte(file[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestNodesBehindOneLineFetchAPackageOnce(t *testing.T) {
	b := newBed(t)
	text := wheelOf(t, "dlwbwheel")
	var fetched atomic.Int32
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") {
			fetched.Add(1)
			_, _ = w.Write(text)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<a href="/dlwbwheel-1.0-py3-none-any.whl">dlwbwheel-1.0-py3-none-any.whl</a>`))
	}))
	t.Cleanup(index.Close)
	b.write("requirements.txt", "--index-url "+index.URL+"/simple/\ndlwbwheel\n")
	b.profile("import dlwbwheel", "environment: {venv: requirements.txt}\n")
	r := b.run("run", "--json")
	if r.code != 0 || fetched.Load() != 1 {
		t.Fatalf("exit code %d; the wheel was fetched %d times\n%s%s", r.code, fetched.Load(), r.stdout, r.stderr)
	}
	got := false
	for _, e := range r.all("step_progress") {
		said, _ := e["text"].(string)
		got = got || strings.HasPrefix(said, fmt.Sprintf("getting 1 wheel, %d B from node", len(text)))
	}
	if !got {
		t.Errorf("nobody got a wheel from another node\n%s", r.stdout)
	}
	for node := range 2 {
		if left, _ := filepath.Glob(filepath.Join(b.nodeHome(node), "dlwb/bed/.wheels*")); len(left) > 0 {
			t.Errorf("%q is left", left)
		}
	}
}
