package inputs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fetching runs the script as a node does, in a home of its own.
type fetching struct {
	t    *testing.T
	home string
}

func (f fetching) run(url, sum string, most int64, lines ...string) (got stamp, said string, err error) {
	script := fetchScript
	for i := 0; i+1 < len(lines); i += 2 {
		if !strings.Contains(script, lines[i]) {
			f.t.Fatalf("the script has no %q", lines[i])
		}
		script = strings.ReplaceAll(script, lines[i], lines[i+1])
	}
	cmd := exec.Command("python3", "-", url, "in/train", "in/.stamps/train.json", "f.bin", sum, strconv.FormatInt(most, 10))
	cmd.Env = append(os.Environ(), "HOME="+f.home, "no_proxy=*")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(script), &errs
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	return got, errs.String(), err
}

func (f fetching) file() ([]byte, error) {
	return os.ReadFile(filepath.Join(f.home, "in", "train", "f.bin"))
}

// left are the files below the home, but for stamps.
func (f fetching) left() (names []string) {
	_ = filepath.WalkDir(f.home, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, filepath.Base(path))
		}
		return nil
	})
	return names
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	return b
}

// cutting serves a file and loses the connection after so many bytes of each answer.
type cutting struct {
	whole  []byte
	cut    int // 0: never
	ranges atomic.Int32
	asked  atomic.Int32
	etag   atomic.Value
}

func (c *cutting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked.Add(1)
	if r.Header.Get("Range") != "" {
		c.ranges.Add(1)
	}
	if etag, _ := c.etag.Load().(string); etag != "" {
		w.Header().Set("ETag", etag)
	}
	if c.cut > 0 {
		w = &cutter{w, c.cut}
	}
	http.ServeContent(w, r, "f.bin", time.Time{}, bytes.NewReader(c.whole))
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.left <= 0 {
		panic(http.ErrAbortHandler)
	}
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	c.left -= n
	if c.left <= 0 {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func TestAFetchGoesOnAfterCutsWithoutReadingAgain(t *testing.T) {
	whole := content(1 << 20)
	sum := sha256.Sum256(whole)
	for name, etag := range map[string]string{"with a sign": `"v1"`, "with none": "", "with a weak one": `W/"v1"`} {
		c := &cutting{whole: whole, cut: 300 << 10}
		c.etag.Store(etag)
		s := httptest.NewServer(c)
		f := fetching{t, t.TempDir()}
		got, said, err := f.run(s.URL, hex.EncodeToString(sum[:]), 0, "time.sleep(", "time.sleep(0*")
		b, readErr := f.file()
		if signed := etag == `"v1"`; signed {
			if err != nil || readErr != nil || !bytes.Equal(b, whole) || got.Bytes != 1<<20 || got.SHA256 != hex.EncodeToString(sum[:]) || c.ranges.Load() != 3 {
				t.Errorf("%s: %v, %v, %+v, %d parts asked for\n%s", name, err, readErr, got, c.ranges.Load(), said)
			}
			if strings.Contains(strings.Join(f.left(), " "), "part") {
				t.Errorf("%s: left are %v", name, f.left())
			}
		} else if err == nil || c.ranges.Load() != 0 || c.asked.Load() > 10 || readErr == nil {
			t.Errorf("%s: %v, %v, asked %d times", name, err, readErr, c.asked.Load())
		}
		s.Close()
	}
}

// The second command goes on where the first was ended; a file that changed meanwhile
// is read from its beginning.
func TestAFetchThatFailedIsGoneOnWithByTheNext(t *testing.T) {
	for _, changes := range []bool{false, true} {
		whole := content(1 << 20)
		c := &cutting{whole: whole, cut: 300 << 10}
		c.etag.Store(`"v1"`)
		s := httptest.NewServer(c)
		f := fetching{t, t.TempDir()}
		if _, said, err := f.run(s.URL, "", 0, "TRIES = 6", "TRIES = 1", "0 if came() > furthest else tries + 1", "1"); err == nil || !strings.Contains(said, "bytes") {
			t.Fatalf("%v\n%s", err, said)
		}
		c.cut = 0
		if changes {
			c.whole = content(1<<20 + 7)[7:]
			c.etag.Store(`"v2"`)
		}
		got, said, err := f.run(s.URL, "", 0)
		if b, readErr := f.file(); err != nil || readErr != nil || !bytes.Equal(b, c.whole) || got.Bytes != 1<<20 || c.ranges.Load() != 1 {
			t.Errorf("changed %v: %v, %v, %+v, %d parts asked for\n%s", changes, err, readErr, got, c.ranges.Load(), said)
		}
		s.Close()
	}
}

func TestAFetchIsBoundByTheProfileAndByTheDisk(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(content(1 << 16)); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		most  int64
		lines []string
		why   string
	}{
		"says too much":      {(&cutting{whole: content(1 << 20)}).ServeHTTP, 1 << 19, nil, "more than the 524288 bytes that data of the profile allows"},
		"says nothing of it": {endless, 3 << 20, nil, "more than the 3 MB that data of the profile allows"},
		"more than the disk": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(int64(1)<<60))
		}, 0, nil, "the disk has "},
		"fills the disk": {endless, 0, []string{"now - told > 2", "got > 1 << 20", "spare = min(", "spare = disk.free + min("}, "the disk has "},
		"another part":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPartialContent) }, 0, nil, "another part"},
		"leads to a file": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, 0, nil, ""},
		"leads to ftp": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "ftp://localhost/x", http.StatusFound)
		}, 0, nil, ""},
		"is cut in its chunks": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(content(1 << 18))
			panic(http.ErrAbortHandler)
		}, 0, []string{"time.sleep(", "time.sleep(0*"}, ""},
		"says nothing": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, []string{"SILENT = 60", "SILENT = 1"}, "timed out"},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		}, 0, []string{"SLOW = (300,", "SLOW = (1,"}, "bytes in 1 seconds"},
	} {
		s := httptest.NewServer(c.serve)
		f := fetching{t, t.TempDir()}
		began := time.Now()
		_, said, err := f.run(s.URL, "", c.most, c.lines...)
		exit := new(exec.ExitError)
		if _, readErr := f.file(); !errors.As(err, &exit) || exit.ExitCode() != 1 || readErr == nil || !strings.Contains(said, c.why) || strings.Contains(said, "Traceback") {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		if left := strings.Join(f.left(), " "); c.why != "" && name != "drips" && strings.Contains(left, "f.bin") {
			t.Errorf("%s: left are %s", name, left)
		}
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("%s: it took %v", name, d)
		}
		s.CloseClientConnections()
		s.Close()
	}
}

// A signed address lets its holder in: nobody else on a node sees it, neither among the
// words of the command nor in what stays.
func TestASignedAddressIsForNobodyElseOnANode(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing: apt-get install python3")
	}
	const secret = "0123'\"abcd"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("X-Amz-Signature") != secret {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("data"))
	}))
	defer web.Close()
	c := Channel{}
	c.Name, c.From = "train", web.URL+"/f.bin?X-Amz-Signature="+url.QueryEscape(secret)
	line, program := Site{Cluster: "demo", Python: func(int) []string { return []string{"python3"} }}.fetching(0, c)
	if strings.Contains(line, "0123") || !strings.Contains(line, "/f.bin?X-Amz-Signature=") {
		t.Errorf("everybody sees %s", line)
	}
	home := t.TempDir()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env, cmd.Stdin = append(os.Environ(), "HOME="+home, "no_proxy=*"), strings.NewReader(program)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "0123") {
		t.Errorf("%s, %v", out, err)
	}
	_ = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		info, statErr := d.Info()
		if errors.Join(err, statErr) != nil || strings.Contains(string(text), "0123") && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is for %v, %v: %s", path, info.Mode(), err, text)
		}
		return nil
	})
}
