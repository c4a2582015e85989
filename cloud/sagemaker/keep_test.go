//go:build unix

package sagemaker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A disk that is full leaves no half of a file among the results.
func TestHalfAFileIsNoResult(t *testing.T) {
	script := `import errno, os, shutil, sys
sys.path.insert(0, os.getcwd())
import launch
code, to = sys.argv[1:]
os.makedirs(os.path.join(code, "out"))
with open(os.path.join(code, "out/model"), "w") as f:
    f.write("12345")
def other(*_): raise OSError(errno.EXDEV, "another disk")
def full(here, there, **_):
    with open(there, "w") as f: f.write("12")
    raise OSError(errno.ENOSPC, "no space left")
os.rename = other
move = shutil.move
shutil.move = lambda here, there: move(here, there, copy_function=full)
launch.keep(["out"], {}, code, to)
print(os.listdir(os.path.join(to, "out")))
`
	c := exec.Command("python3", "-c", script, t.TempDir(), t.TempDir())
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "out/model is not kept") || !strings.HasSuffix(strings.TrimSpace(string(out)), "[]") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A bucket may hold what nobody of ours has put there. Whatever its objects are called,
// the rest comes home, and one of which nothing comes is said to be so.
func TestWhateverAnObjectIsCalledTheOthersComeHome(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		if strings.HasSuffix(r.URL.Path, "silent.bin") {
			w.(http.Flusher).Flush()
			<-over
			return
		}
		_, _ = w.Write([]byte("12345"))
	}))
	defer server.Close()
	defer close(over)
	for key, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(key, value)
	}
	d, err := New().doors.Open(t.Context(), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	into, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	left, room := 0, int64(1000)
	for _, key := range []string{"job/output/", "job/output/sub/", "job/output/../up", "job/output//abs", "job/output/sub/a.txt"} {
		skipped, err := d.bring(t.Context(), "b", key, "job/output/", into, &room)
		if left += len(skipped); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "output/sub/a.txt")); err != nil || string(text) != "12345" || left != 2 {
		t.Errorf("%q, %v; %d are told as left out", text, err, left)
	}
	limit := silentLimit
	silentLimit = 100 * time.Millisecond
	defer func() { silentLimit = limit }()
	if _, err := d.bring(t.Context(), "b", "job/output/silent.bin", "job/output/", into, &room); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing of it came for") {
		t.Errorf("of what is silent: %v", err)
	}
}

// A bucket may hold more than the disk here. What is too large is said to be left, and
// nothing of it stays; what is small comes behind it. An object that went away meanwhile
// is no bucket that is not there.
func TestAnObjectThatIsTooLargeIsLeftInS3(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "gone.bin") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"))
			return
		}
		size := 5
		if strings.HasSuffix(r.URL.Path, "large.bin") {
			size = 5000
		}
		_, _ = w.Write([]byte(strings.Repeat("x", size)))
	}))
	defer server.Close()
	for key, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(key, value)
	}
	d, err := New().doors.Open(t.Context(), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	into, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	room := int64(12)
	var left []string
	for _, key := range []string{"o/large.bin", "o/a", "o/b", "o/c"} {
		some, err := d.bring(t.Context(), "b", key, "o/", into, &room)
		if left = append(left, some...); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if len(left) != 2 || !strings.HasPrefix(left[0], "o/large.bin: ") || !strings.HasPrefix(left[1], "o/c: ") || room != 2 {
		t.Errorf("left is %q, with room for %d", left, room)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "output")); err != nil || len(files) != 2 {
		t.Errorf("%v: here are %v", err, files)
	}
	if _, err := d.bring(t.Context(), "b", "o/gone.bin", "o/", into, &room); err == nil || !strings.Contains(err.Error(), "o/gone.bin: S3 has no such object any more") {
		t.Errorf("of one that went away: %v", err)
	}
}
