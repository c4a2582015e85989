package inputs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// store serves objects as S3 does, and counts what was asked for.
type store struct {
	mu      sync.Mutex
	objects map[string][]byte
	cut     int // after so many bytes of each answer the connection is lost; 0: never
	refuse  int // this status for every object; 0: none
	asked   map[string]int
	ranges  int
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	s.mu.Lock()
	s.asked[name]++
	if r.Header.Get("Range") != "" {
		s.ranges++
	}
	text, cut, refuse := s.objects[name], s.cut, s.refuse
	s.mu.Unlock()
	if refuse != 0 || r.URL.Query().Get("X-Amz-Signature") != "secret" {
		w.WriteHeader(max(refuse, http.StatusForbidden))
		fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>`)
		return
	}
	w.Header().Set("ETag", etagOf(text))
	if cut > 0 {
		w = &cutter{w, cut}
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}

func etagOf(text []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(text)) }

// gathered is the script on a node of its own.
type gathered struct {
	t    *testing.T
	home string
	s    *store
	url  string
}

func newGathered(t *testing.T) *gathered {
	g := &gathered{t: t, home: t.TempDir(), s: &store{objects: map[string][]byte{}, asked: map[string]int{}}}
	web := httptest.NewServer(g.s)
	t.Cleanup(web.Close)
	g.url = web.URL
	return g
}

// put puts an object. Its time is made of its size.
func (g *gathered) put(name string, text []byte) { g.s.objects[name] = text }

func (g *gathered) run(most int64) (got stamp, said string, err error) {
	g.t.Helper()
	w := wanted{Address: "s3://lab/set", Dir: "in/train", Stamp: "in/.stamps/train.json", Most: most}
	sum := sha256.New()
	for name, text := range g.s.objects {
		f := wantedFile{name, int64(len(text)), etagOf(text), 1_700_000_000 + int64(len(text)), g.url + (&url.URL{Path: "/" + name}).EscapedPath() + "?X-Amz-Signature=secret"}
		w.Files = append(w.Files, f)
	}
	names, err := json.Marshal(g.s.objects) // its keys are sorted
	if err != nil {
		g.t.Fatal(err)
	}
	_, _ = sum.Write(names)
	w.Digest = fmt.Sprintf("%x", sum.Sum(nil))
	text, err := json.Marshal(w)
	if err != nil {
		g.t.Fatal(err)
	}
	script := strings.Replace(objectsScript, "time.sleep(min(1 << tries, 20))", "time.sleep(0)", 1)
	cmd := exec.Command("python3", "-c", fmt.Sprintf("import sys; exec(compile(sys.stdin.buffer.read(%d), 'objects.py', 'exec'))", len(script)))
	cmd.Env = append(os.Environ(), "HOME="+g.home, "no_proxy=*")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(script+string(text)), &errs
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if strings.Contains(errs.String()+string(out), "secret") {
		g.t.Errorf("a signed address is told:\n%s%s", errs.String(), out)
	}
	return got, errs.String(), err
}

// check holds what is there against the store.
func (g *gathered) check() {
	g.t.Helper()
	n := 0
	_ = filepath.WalkDir(g.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(filepath.Join(g.home, "in", "train"), path)
		switch text, _ := os.ReadFile(path); {
		case rel == filepath.Join("..", ".stamps", "train.json"):
			if strings.Contains(string(text), "secret") {
				g.t.Error("a signed address is on the disk")
			}
		case !bytes.Equal(text, g.s.objects[filepath.ToSlash(rel)]):
			g.t.Errorf("%s is not what the store has, or is left", rel)
		default:
			n++
		}
		return nil
	})
	if n != len(g.s.objects) {
		g.t.Errorf("%d files are there, and the store has %d", n, len(g.s.objects))
	}
}

func TestASetOfObjectsIsFetchedOnceAndThenWhatChanged(t *testing.T) {
	g := newGathered(t)
	for i := range 20 {
		g.put(fmt.Sprintf("deep/%d/a b+ü.bin", i), content(1000+i))
	}
	g.put("empty", nil)
	g.put("large", content(3<<20))
	got, said, err := g.run(0)
	if err != nil || got.Files != 22 || got.Unchanged || got.File != "" || got.URL != "s3://lab/set" {
		t.Fatalf("%+v %v\n%s", got, err, said)
	}
	g.check()
	clear(g.s.asked)
	if got, said, err = g.run(0); err != nil || !got.Unchanged || len(g.s.asked) > 0 {
		t.Errorf("again: %+v %v, asked for %v\n%s", got, err, g.s.asked, said)
	}
	g.put("deep/3/a b+ü.bin", content(77))
	delete(g.s.objects, "deep/4/a b+ü.bin")
	if got, said, err = g.run(0); err != nil || got.Unchanged || len(g.s.asked) != 1 {
		t.Errorf("one changed: %+v %v, asked for %v\n%s", got, err, g.s.asked, said)
	}
	g.check()
	clear(g.s.asked)
	// A training has written to one of them.
	if err := os.WriteFile(filepath.Join(g.home, "in", "train", "large"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, said, err = g.run(0); err != nil || len(g.s.asked) != 1 {
		t.Errorf("one damaged: %+v %v, asked for %v\n%s", got, err, g.s.asked, said)
	}
	g.check()
}

func TestASetOfObjectsGoesOnAfterCuts(t *testing.T) {
	g := newGathered(t)
	for i := range 3 {
		g.put(fmt.Sprint("shard-", i), content(1<<20+i))
	}
	g.s.cut = 300 << 10
	got, said, err := g.run(0)
	if err != nil || got.Files != 3 || g.s.ranges < 9 {
		t.Errorf("%+v %v, %d parts asked for\n%s", got, err, g.s.ranges, said)
	}
	g.check()
}

func TestASetOfObjectsThatCouldNotBeFetchedIsGoneOnWith(t *testing.T) {
	g := newGathered(t)
	for i := range 3 {
		g.put(fmt.Sprint("shard-", i), content(1<<20+i))
	}
	g.s.refuse = http.StatusForbidden
	exit := new(exec.ExitError)
	if _, said, err := g.run(0); !errors.As(err, &exit) || !strings.Contains(said, "S3 answered 403 AccessDenied for s3://lab/set/shard-") || strings.Contains(said, "Traceback") {
		t.Errorf("%v\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(g.home, "in", "train")); err == nil {
		t.Error("half of a set is there")
	}
	g.s.refuse = 0
	if _, said, err := g.run(0); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	g.check()
}

func TestASetOfObjectsIsBound(t *testing.T) {
	g := newGathered(t)
	g.put("large", content(1<<20))
	exit := new(exec.ExitError)
	if _, said, err := g.run(1 << 19); !errors.As(err, &exit) || !strings.Contains(said, "data of the profile allows 524288 bytes (most)") || len(g.s.asked) > 0 {
		t.Errorf("%v\n%s", err, said)
	}
}
