package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	parts "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/sample"
)

// server is an S3 that nobody here made: gofakes3, or what DLWB_TEST_S3 names (make
// test-moto). It returns a place in it that is empty.
func server(t *testing.T) (address string, seen *requests) {
	t.Helper()
	seen = &requests{}
	next := gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	if at := os.Getenv("DLWB_TEST_S3"); at != "" {
		next = passOn(t, at)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.note(r)
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	for k, v := range map[string]string{"AWS_ENDPOINT_URL_S3": s.URL, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x",
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": filepath.Join(t.TempDir(), "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none")} {
		t.Setenv(k, v)
	}
	bucket := "dlwb-" + strings.ToLower(fmt.Sprintf("%x", rand.Uint64()))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/"+bucket, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := http.DefaultClient.Do(r); err != nil || made.StatusCode != http.StatusOK {
		t.Fatal(made, err)
	}
	return "s3://" + bucket + "/lab", seen
}

// passOn is a server elsewhere on this machine. Signatures are of the address that
// was called, and moto looks at none.
func passOn(t *testing.T, at string) http.Handler {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = u.Scheme, u.Host, ""
		reply, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = reply.Body.Close() }()
		for k, v := range reply.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(reply.StatusCode)
		var b bytes.Buffer
		_, _ = b.ReadFrom(reply.Body)
		_, _ = w.Write(b.Bytes())
	})
}

// requests counts what was asked for.
type requests struct{ puts, parts atomic.Int64 }

func (s *requests) note(r *http.Request) {
	switch {
	case r.Method == http.MethodPut && r.URL.Query().Has("partNumber"):
		s.parts.Add(1)
	case r.Method == http.MethodPut:
		s.puts.Add(1)
	}
}

func open(t *testing.T, address string) *Bucket {
	t.Helper()
	b, err := Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	// In the smallest parts that there are, from the smallest size on.
	b.move = transfermanager.New(b.s3, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold, o.GetObjectType = 5<<20, 5<<20, parts.GetObjectRanges
		o.RequestChecksumCalculation, o.DisableChecksumValidation = b.s3.Options().RequestChecksumCalculation, true
	})
	return b
}

// content is a file of checkpoint n: whoever mixes two of them is found out.
func content(n int, name string, size int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", n, name))
	return bytes.Repeat(sum[:], size/len(sum)+1)[:size]
}

// shape is what a checkpoint of these tests has: one file is sent in parts.
var shape = map[string]int{"model.safetensors": 6<<20 + 5, "optimizer/state.pt": 300_001, "config.json": 90, "empty": 0, "a b/ü+%41.txt": 40}

func write(t testing.TB, n int) map[string]string {
	dir, files := t.TempDir(), map[string]string{}
	for name, size := range shape {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, content(n, name, size), 0o600)); err != nil {
			t.Fatal(err)
		}
		files[name] = at
	}
	return files
}

// is reports why a directory is not checkpoint n, all of it.
func is(dir string, n int) error {
	for name, size := range shape {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, content(n, name, size)) {
			return fmt.Errorf("%s is not that of checkpoint %d: %w", name, n, err)
		}
	}
	return nil
}

func TestWhatIsSavedComesBackByteForByte(t *testing.T) {
	address, seen := server(t)
	b := open(t, address)
	files := write(t, 1)
	if s, err := b.Save(t.Context(), "run/ckpt/1", files, map[string]string{"step": "1"}); err != nil || s.Sent != len(shape) || s.Bytes < 6<<20 {
		t.Fatal(s, err)
	}
	if seen.parts.Load() < 2 {
		t.Error("the large file was not sent in parts")
	}
	dir := filepath.Join(t.TempDir(), "back")
	m, err := b.Load(t.Context(), "run/ckpt/1", dir)
	if err = errors.Join(err, is(dir, 1)); err != nil || m.About["step"] != "1" || len(m.Files) != len(shape) {
		t.Errorf("%v %+v", err, m)
	}
	if sets, err := b.Sets(t.Context(), "run/ckpt"); err != nil || !slices.Equal(sets, []string{"run/ckpt/1"}) {
		t.Errorf("%v %v", sets, err)
	}
	sent := seen.puts.Load() + seen.parts.Load()
	if s, err := b.Save(t.Context(), "run/ckpt/1", files, nil); err != nil || s.Sent != 0 || seen.puts.Load()+seen.parts.Load() != sent {
		t.Errorf("unchanged, and sent again: %+v %v", s, err)
	}
	if err := os.WriteFile(files["config.json"], []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Save(t.Context(), "run/ckpt/1", files, nil); err != nil || s.Sent != 1 {
		t.Errorf("one has changed: %+v %v", s, err)
	}
	if err := b.Drop(t.Context(), "run/ckpt/1"); err != nil {
		t.Error(err)
	}
	if sets, err := b.Sets(t.Context(), "run/ckpt"); err != nil || len(sets) != 0 {
		t.Errorf("%v %v", sets, err)
	}
}

// What was damaged, or is missing, in the bucket is not loaded at all.
func TestWhatIsNotAsItsManifestSaysIsNotLoaded(t *testing.T) {
	address, _ := server(t)
	b := open(t, address)
	for what, harm := range map[string]func(name string) error{
		"a file is missing":     func(name string) error { return b.remove(t.Context(), name+"/config.json") },
		"a file is another":     func(name string) error { return put(b, name+"/config.json", content(9, "config.json", 90)) },
		"a file is shorter":     func(name string) error { return put(b, name+"/config.json", nil) },
		"a file is longer":      func(name string) error { return put(b, name+"/config.json", make([]byte, 12<<20)) },
		"no manifest":           func(name string) error { return b.remove(t.Context(), name+ending) },
		"a manifest of nothing": func(name string) error { return put(b, name+ending, []byte("{")) },
		"a file outside": func(name string) error {
			return put(b, name+ending, []byte(`{"version":1,"files":[{"path":"../../outside","size":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`))
		},
	} {
		name := "run/" + strings.ReplaceAll(what, " ", "-")
		if _, err := b.Save(t.Context(), name, write(t, 1), nil); err != nil {
			t.Fatal(err)
		}
		if err := harm(name); err != nil {
			t.Fatal(err)
		}
		at := t.TempDir()
		_, err := b.Load(t.Context(), name, filepath.Join(at, "back"))
		if err == nil {
			t.Errorf("%s: it was loaded", what)
		}
		if what == "a file is longer" && !strings.Contains(err.Error(), "longer than its manifest says") {
			t.Errorf("%s was written to the disk before anybody looked: %v", what, err)
		}
		if left, _ := os.ReadDir(at); len(left) > 0 {
			t.Errorf("%s: %v is left", what, left)
		}
	}
}

func put(b *Bucket, name string, text []byte) error {
	at := filepath.Join(os.TempDir(), fmt.Sprintf("dlwb-put-%d", rand.Uint64()))
	defer func() { _ = os.Remove(at) }()
	if err := os.WriteFile(at, text, 0o600); err != nil {
		return err
	}
	_, err := b.send(context.Background(), name, "x", at)
	return err
}

func TestABucketThatIsNotThereIsNamedWithWhatToDo(t *testing.T) {
	address, _ := server(t)
	_, err := Open(t.Context(), strings.Replace(address, "dlwb-", "none-", 1))
	var p *awsapi.Problem
	if !errors.As(err, &p) || !strings.Contains(p.Cause, "no bucket none-") || !strings.HasPrefix(p.Next, "aws s3 mb s3://none-") {
		t.Errorf("%v", err)
	}
	if _, err := Open(t.Context(), "bucket/prefix"); err == nil || !strings.Contains(err.Error(), "s3://bucket/prefix") {
		t.Error(err)
	}
}

// uploads is what the killed process of the next test does: checkpoint after
// checkpoint, each said when it is saved.
func uploads(t *testing.T, first int) {
	b := open(t, os.Getenv("DLWB_UPLOAD"))
	if err := errors.Join(b.Sweep(t.Context(), "run"), b.SweepSets(t.Context(), "run/ckpt")); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	for n := first; n < first+3; n++ {
		if _, err := b.Save(t.Context(), fmt.Sprintf("run/ckpt/%06d", n), write(t, n), nil); err != nil {
			t.Fatal(err)
		}
		fmt.Println("saved", n)
	}
}

// An uploader is killed at any moment: what is loaded then is a whole checkpoint,
// and never an older one than what was said to be saved.
func TestNoHalfCheckpointIsLoadedWheneverTheUploaderIsKilled(t *testing.T) {
	if first, err := strconv.Atoi(os.Getenv("DLWB_UPLOAD_FIRST")); err == nil {
		uploads(t, first)
		return
	}
	address, _ := server(t)
	b := open(t, address)
	rounds := sample.Of(t, 16, 200, "moments")
	last, first, killed := 0, 1, 0
	span := 600 * time.Millisecond // that an uploader takes here
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		own, err := os.MkdirTemp(t.TempDir(), "") // who is killed removes nothing: 20 MB each time
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(os.Environ(), "DLWB_UPLOAD="+address, "DLWB_UPLOAD_FIRST="+strconv.Itoa(first), "TMPDIR="+own)
		said := &ready{got: make(chan struct{})}
		cmd.Stdout = said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-said.got:
		case <-time.After(60 * time.Second):
		}
		// A moment in the middle: of one that has ended by itself, span was too long.
		began, ended := time.Now(), make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err = <-ended:
			span = time.Since(began)
		case <-time.After(time.Duration(rand.Int64N(int64(span)))):
			_ = cmd.Process.Kill()
			err = <-ended
		}
		_ = os.RemoveAll(own)
		if err != nil && !strings.Contains(said.String(), "FAIL") {
			killed++
		} else if err != nil {
			t.Fatalf("the uploader: %s", said.String())
		}
		for line := range strings.Lines(said.String()) {
			if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "saved "))); err == nil {
				last = max(last, n)
			}
		}
		if last == 0 { // none was as far yet, on a machine this busy
			span *= 2
		}
		first += 3
		sets, err := b.Sets(t.Context(), "run/ckpt")
		if err != nil {
			t.Fatal(err)
		}
		for i, set := range slices.Backward(sets) {
			n, _ := strconv.Atoi(filepath.Base(set))
			if i == len(sets)-1 && n < last {
				t.Fatalf("round %d: the newest is %d, and %d was said to be saved", round, n, last)
			}
			dir := filepath.Join(t.TempDir(), "back")
			if _, err := b.Load(t.Context(), set, dir); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := is(dir, n); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			_ = os.RemoveAll(dir)
			if i < len(sets)-1 { // seen once: the next rounds look at what is new
				if err := b.Drop(t.Context(), set); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("%d of %d uploaders were killed in the middle; %d checkpoints were saved", killed, rounds, last)
	if killed < rounds/2 || last == 0 {
		t.Error("the moments of this test were not in the middle")
	}
	if err := errors.Join(b.Sweep(t.Context(), "run"), b.SweepSets(t.Context(), "run/ckpt")); err != nil {
		t.Error(err)
	}
	if sets, err := b.Sets(t.Context(), "run/ckpt"); err != nil || len(sets) == 0 {
		t.Errorf("a sweep has removed what is whole: %v %v", sets, err)
	}
}

// ready is what a process prints, and when it has begun.
type ready struct {
	text strings.Builder // not embedded: nothing may be read past Write
	got  chan struct{}
	once atomic.Bool
}

// String is what was printed; it is for when the process has ended.
func (r *ready) String() string { return r.text.String() }

// Write takes what is printed.
func (r *ready) Write(p []byte) (int, error) {
	n, err := r.text.Write(p)
	if strings.Contains(r.String(), "ready") && r.once.CompareAndSwap(false, true) {
		close(r.got)
	}
	return n, err
}
