//go:build linux

// Package podrig runs a container for tests: by the real podman and runc, with a
// root file system made of this machine's busybox, without an engine, an image or
// a network. It needs root.
package podrig

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// Start starts a container that lives as long as the test and gives its name.
// From then on `podman` of the test's environment means the test's own containers.
// The container's root is the directory root, for looking at it from outside.
func Start(t testing.TB) (name, root string) {
	t.Helper()
	need(t)
	// podman's own sockets have long names: a short directory.
	dir, err := os.MkdirTemp("", "pod")
	check(t, err)
	t.Cleanup(func() { check(t, removeAll(dir)) })
	root = filepath.Join(dir, "rootfs")
	fill(t, root)
	configure(t, dir)
	name = "dlwb-" + filepath.Base(dir)
	dismiss := guard(t, name, dir)
	t.Cleanup(func() {
		podman(t, "rm", "--force", "--time", "0", "--ignore", name)
		dismiss()
	})
	podman(t, "run", "--detach", "--name", name, "--network", "none", "--cgroupns", "host",
		// More than this machine may give is an error.
		"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000",
		"--rootfs", root, "/bin/sh", "-c", `trap "exit 0" TERM; while :; do sleep 1; done`)
	return name, root
}

// PythonImage is the name of an image with this machine's Python and busybox.
const PythonImage = "localhost/dlwb-python:1"

// Images gives podman a storage of the test's own with PythonImage in it: from then
// on `podman` of the test's environment, and of env, means that. To make it takes as
// much of a processor as fifty other tests: make test-podman does.
func Images(t testing.TB) (env []string) {
	t.Helper()
	if os.Getenv("DLWB_RIGS") == "" {
		t.Skip("NOT RUN: an image of a real podman, as make test-podman makes it")
	}
	need(t)
	dir, err := os.MkdirTemp("", "pod")
	check(t, err)
	t.Cleanup(func() { check(t, removeAll(dir)) })
	root := filepath.Join(dir, "rootfs")
	fill(t, root)
	fillPython(t, root)
	configure(t, dir)
	t.Cleanup(func() { removeContainers(t) })
	tar := filepath.Join(dir, "root.tar")
	out, err := exec.Command("tar", "-C", root, "-cf", tar, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	podman(t, "import", "--change", "ENV PATH=/usr/bin:/bin", tar, PythonImage)
	check(t, os.RemoveAll(root))
	check(t, os.Remove(tar))
	for _, name := range []string{"CONTAINERS_STORAGE_CONF", "CONTAINERS_CONF"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

// Wrapped writes a podman that has the storage of [Images] wherever it is called, as on
// a node, whose environment does not name it, and does more, lines of sh, before it
// begins. It returns the directory that holds it.
func Wrapped(t testing.TB, env []string, more string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := "#!/bin/sh\nexport " + strings.Join(env, " ") + "\n" + more + "\nexec /usr/bin/podman \"$@\"\n"
	check(t, testprogram.Write(filepath.Join(dir, "podman"), []byte(text), 0o755))
	return dir
}

// fillPython adds the Python of this system and what it is linked against.
func fillPython(t testing.TB, root string) {
	t.Helper()
	const python = "/usr/bin/python3"
	lib, err := exec.Command(python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").Output()
	if err != nil {
		leaveOut(t, "there is no %s: apt-get install python3", python)
	}
	stdlib := strings.TrimSpace(string(lib))
	copyFile(t, python, filepath.Join(root, python))
	check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, stdlib)), 0o755))
	if out, err := exec.Command("cp", "-r", stdlib, filepath.Join(root, stdlib)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	modules, _ := filepath.Glob(stdlib + "/lib-dynload/*.so")
	libraries, _ := exec.Command("ldd", append([]string{python}, modules...)...).Output()
	for _, path := range regexp.MustCompile(`(?:=> |^\s+)(/\S+)`).FindAllStringSubmatch(string(libraries), -1) {
		if to := filepath.Join(root, path[1]); !exists(to) {
			copyFile(t, path[1], to)
		}
	}
	for _, loader := range regexp.MustCompile(`\s(/lib\S*/ld-\S+)`).FindAllStringSubmatch(string(libraries), -1) {
		if to := filepath.Join(root, loader[1]); !exists(to) {
			copyFile(t, loader[1], to)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// removeContainers removes all containers. One that podman's own clean-up removes at the
// same time is an error to it, and is looked for again.
func removeContainers(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		c := exec.Command("podman", "rm", "--force", "--time", "0", "--all")
		c.Dir = "/"
		out, err := c.CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("podman rm --all: %v: %s", err, out)
		}
	}
}

// removeAll removes a directory in which podman's own clean-up, which the end of a
// container starts, may still write a file.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = os.RemoveAll(dir) {
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// guard ends the container when the test dies without cleaning up.
func guard(t testing.TB, name, dir string) (dismiss func()) {
	t.Helper()
	c := exec.Command("setsid", "sh", "-c", `read line || { podman rm --force --time 0 --ignore "$1"; rm -rf "$2"; }`, "sh", name, dir)
	in, err := c.StdinPipe()
	check(t, err)
	check(t, c.Start())
	return func() {
		_, _ = io.WriteString(in, "done\n")
		_ = c.Wait()
	}
}

func need(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		leaveOut(t, "the container of this test needs root")
	}
	for _, program := range []string{"podman", "runc", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			leaveOut(t, "%s is not installed; make test-podman installs it on Debian and Ubuntu", program)
		}
	}
}

// fill makes a root file system of busybox and what it is linked against.
func fill(t testing.TB, root string) {
	t.Helper()
	for _, dir := range []string{"bin", "dev", "etc", "proc", "root", "sys", "tmp"} {
		check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	check(t, os.Chmod(filepath.Join(root, "tmp"), 0o1777))
	check(t, os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644))
	busybox, err := exec.LookPath("busybox")
	check(t, err)
	copyFile(t, busybox, filepath.Join(root, "bin/busybox"))
	libraries, _ := exec.Command("ldd", busybox).Output() // a static one has none
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
		copyFile(t, path, filepath.Join(root, path))
	}
	applets, err := exec.Command(busybox, "--list").Output()
	check(t, err)
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			check(t, os.Symlink("busybox", filepath.Join(root, "bin", applet)))
		}
	}
}

// configure gives podman a storage of the test's own, and what runs in a
// container without systemd and with either kind of cgroups.
func configure(t testing.TB, dir string) {
	t.Helper()
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(dir, "graph"), filepath.Join(dir, "run"))
	engine := fmt.Sprintf("[containers]\ncgroupns = \"host\"\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1000:1000\"]\n[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\ntmp_dir = %q\n", filepath.Join(dir, "tmp"))
	for name, text := range map[string]string{"CONTAINERS_STORAGE_CONF": storage, "CONTAINERS_CONF": engine} {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(text), 0o600))
		t.Setenv(name, path)
	}
}

func podman(t testing.TB, args ...string) {
	t.Helper()
	var said bytes.Buffer
	c := exec.Command("podman", args...)
	c.Stdout, c.Stderr, c.Dir = &said, &said, "/"
	if err := c.Run(); err != nil {
		t.Fatalf("podman %s: %v: %s", strings.Join(args, " "), err, said.String())
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	check(t, err)
	check(t, os.MkdirAll(filepath.Dir(to), 0o755))
	check(t, testprogram.Write(to, text, 0o755))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leaveOut leaves a test out, and says why. Where the rigs are asked for
// (DLWB_RIGS), that is a failure.
func leaveOut(t testing.TB, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if os.Getenv("DLWB_RIGS") != "" {
		t.Fatal(why)
	}
	t.Skip("NOT RUN: " + why)
}
