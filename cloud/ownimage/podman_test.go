//go:build linux

package ownimage

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/podrig"
)

// podmanShop is a shop whose podman is the real one, with a storage of its own, and for
// which the registry is one without TLS.
func podmanShop(t *testing.T) *shop {
	t.Helper()
	env := podrig.Images(t)
	s := newShop(t)
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	at := filepath.Join(t.TempDir(), "registries.conf")
	write(t, at, "[[registry]]\nlocation = \""+s.ecr.Host+"\"\ninsecure = true\n")
	t.Setenv("CONTAINERS_REGISTRIES_CONF", at)
	t.Setenv("BUILDAH_ISOLATION", "chroot") // a RUN without cgroups of its own
	t.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
	return s
}

// get asks the registry as somebody with the newest token.
func (s *shop) get(path, kind string, into any) {
	s.t.Helper()
	ask, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.ecr.Host+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	ask.SetBasicAuth("AWS", s.ecr.Password())
	ask.Header.Set("Accept", kind)
	reply, err := http.DefaultClient.Do(ask)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	if err := json.NewDecoder(reply.Body).Decode(into); err != nil || reply.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v", path, reply.Status, err)
	}
}

const manifestKind = "application/vnd.docker.distribution.manifest.v2+json"

// The real podman builds a Dockerfile and pushes it to a real registry that asks for ECR's
// password; the digest is that of what the registry has, in the form that every service
// takes; the image can be pulled by it and runs.
func TestAnImageIsBuiltByARealPodmanAndPushedToARealRegistry(t *testing.T) {
	s := podmanShop(t)
	s.file("Dockerfile", "FROM scratch\nCOPY bin /bin/\nCOPY . /app/\nENV FROM_IMAGE=yes\n")
	s.file(".dockerignore", "train.py\n")
	s.code.Empty = []string{"out/ckpt"}
	busybox, err := os.ReadFile("/usr/bin/busybox")
	if err != nil {
		t.Skip("NOT RUN: there is no busybox: ", err)
	}
	s.file("bin/busybox", string(busybox))
	if err := os.Chmod(filepath.Join(s.code.Dir, "bin/busybox"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := s.must()
	if b.Digest != s.ecr.Tags("team/train")[b.Tag] || b.Digest == "" {
		t.Fatalf("%+v; the registry has %v", b, s.ecr.Tags("team/train"))
	}
	var manifest struct {
		MediaType string
		Config    struct{ Digest string }
	}
	s.get("/v2/team/train/manifests/"+b.Digest, manifestKind, &manifest)
	var config struct {
		Architecture, OS string
		Config           struct{ Env []string }
	}
	s.get("/v2/team/train/blobs/"+manifest.Config.Digest, "*/*", &config)
	if manifest.MediaType != manifestKind || config.Architecture != "amd64" || config.OS != "linux" || !strings.Contains(strings.Join(config.Config.Env, " "), "FROM_IMAGE=yes") {
		t.Errorf("pushed is %+v with %+v", manifest, config)
	}
	all := strings.Join(s.lines, "\n")
	for _, want := range []string{"podman build --platform linux/amd64", "COPY . /app/", "podman push", "Writing manifest"} {
		if !strings.Contains(all, want) {
			t.Errorf("told is not %q:\n%s", want, all)
		}
	}
	if again := s.must(); again != b || len(s.ecr.Pushes()) != 1 || len(s.lines) > 0 {
		t.Errorf("made again: %+v, %q", again, s.lines)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), roomName+"*")); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	s.looksInside(b)
}

// looksInside mounts an image by its digest and looks what is in it.
func (s *shop) looksInside(b Built) {
	s.t.Helper()
	podman := func(args ...string) string {
		c := exec.Command("podman", args...)
		c.Dir, c.Stderr = "/", os.Stderr
		out, err := c.Output()
		if err != nil {
			s.t.Fatalf("podman %q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	podman("rmi", "--force", b.Address+":"+b.Tag)
	podman("pull", "--quiet", "--creds", "AWS:"+s.ecr.Password(), b.Name())
	at := podman("image", "mount", b.Name())
	defer podman("image", "unmount", b.Name())
	for name, want := range map[string]bool{"bin/busybox": true, "app/requirements.txt": true, "app/src/a.py": true, "app/out/ckpt": true, "app/train.py": false} {
		info, err := os.Stat(filepath.Join(at, name))
		if (err == nil) != want || name == "bin/busybox" && info.Mode().Perm() != 0o755 {
			s.t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// The words of the real podman are understood: a base that can't be had, a file that is
// not there, a RUN that fails, a push that ECR denies, a token that is too old.
func TestAnImageIsBuiltByARealPodmanOrWhyNotIsSaid(t *testing.T) {
	s := podmanShop(t)
	for text, want := range map[string]string{
		"FROM " + s.ecr.Host + "/team/none:1\n":   "that it begins from, is not there",
		"FROM 127.0.0.1:1/none:1\n":               "can't be reached from this machine",
		"FROM unknown-short-name\n":               "does not say its registry",
		"FROM scratch\nCOPY nowhere /\n":          "copies a file that is not in the code",
		"FROM scratch\nRUN [\"/nothing-here\"]\n": "podman build failed",
	} {
		s.file("Dockerfile", text)
		if e := s.fails(); !strings.Contains(e.Why, want) || e.Next == "" || len(e.Lines) == 0 {
			t.Errorf("%q: %q, %q, %q", text, e.Why, e.Next, e.Lines)
		}
	}
	s.file("Dockerfile", "FROM scratch\nCOPY src /app/\n")
	s.ecr.Deny = func(method, _ string) (int, string) {
		if method == http.MethodPost {
			return 403, "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: ecr:InitiateLayerUpload"
		}
		return 0, ""
	}
	if e := s.fails(); !strings.Contains(e.Why, "may not push to repository team/train") {
		t.Errorf("%q, %q", e.Why, e.Lines)
	}
	first := true
	s.ecr.Deny = func(method, _ string) (int, string) {
		if method == http.MethodPost && first {
			first = false
			s.ecr.Expire()
			return 403, "Your authorization token has expired. Reauthenticate and try again."
		}
		return 0, ""
	}
	if b := s.must(); b.Digest == "" || !strings.Contains(strings.Join(s.lines, "\n"), "another is asked for") {
		t.Errorf("%+v, %q", b, s.lines)
	}
}

// A build of the real podman that is given up ends with what it runs.
func TestAnImageIsBuiltByARealPodmanUntilItIsGivenUp(t *testing.T) {
	s := podmanShop(t)
	s.file("Dockerfile", "FROM "+podrig.PythonImage+"\nRUN echo begun; exec sleep 4321\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { _, err := s.make(ctx); ended <- err }()
	await(t, "the sleep", func() bool { return running("sleep 4321") })
	cancel()
	if err := <-ended; !errors.Is(err, ctx.Err()) {
		t.Errorf("it ends with %v", err)
	}
	await(t, "its end", func() bool { return !running("sleep 4321") && !running("podman build --platform") })
	s.file("Dockerfile", "FROM scratch\nCOPY src /app/\n")
	s.must() // and the storage is as it was
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// running reports whether a program with these words runs.
func running(words string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, at := range all {
		text, _ := os.ReadFile(at)
		if strings.Contains(strings.ReplaceAll(string(text), "\x00", " "), words) {
			return true
		}
	}
	return false
}
