//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// rayPod is a directory that stands for the file system of a pod of Ray.
type rayPod struct {
	*testing.T
	dir string
}

func newRayPod(t *testing.T, withRay bool, driver string) rayPod {
	t.Helper()
	p := rayPod{t, t.TempDir()}
	packed, err := payload(cloud.Code{}, false, []pack.Node{{Procs: []pack.Proc{{Ranks: []int{0}, Argv: []string{"sh", "-c", driver}}}, Tagged: true}}, nil)
	for _, dir := range []string{"given", "work", "bin"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(p.dir, dir), 0o755))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, "given/payload.tar.gz"), packed, 0o600)
	}
	if err == nil && withRay {
		err = testprogram.Write(filepath.Join(p.dir, "bin/ray"), []byte("#!/bin/sh\ntrap 'echo ray ended >>\"$DIR/said\"; exit 7' TERM\necho \"ray $*\" >>\"$DIR/said\"\nwhile :; do sleep 0.1; done\n"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launch starts launch.sh as a part, whose pod has so many seconds.
func (p rayPod) launch(ctx context.Context, part string, more ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", "-c", strings.NewReplacer("/dev/termination-log", p.dir+"/note", "/dlwb/", p.dir+"/").Replace(launchSh), "launch.sh", part)
	c.Env = append([]string{"PATH=" + p.dir + "/bin:" + os.Getenv("PATH"), "DIR=" + p.dir, "DLWB_INDEX=0", "DLWB_FIRST=0", "DLWB_GRACE=30",
		"KUBERAY_GEN_RAY_START_CMD=ray start --head --num-cpus=0 --block"}, more...)
	c.WaitDelay = time.Second // the sleep of a lease has the pipe
	return c
}

func (p rayPod) said() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "said"))
	return string(text)
}

func (p rayPod) until(what string) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.said(), what); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%q does not come: %q", what, p.said())
		}
	}
}

// A pod of Ray starts what KubeRay says, also once more; its lease ends it for good where
// no operator does; without Ray it says so.
func TestAPodOfRayHasItsLease(t *testing.T) {
	p := newRayPod(t, true, "true")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 { // a container that is started again
		_ = os.Remove(filepath.Join(p.dir, "work/late"))
		c := p.launch(ctx, "ray", "DLWB_DEADLINE=1")
		if out, err := c.CombinedOutput(); c.ProcessState.ExitCode() != 0 {
			t.Errorf("%v, %s", err, out)
		}
	}
	if want := "ray start --head --num-cpus=0 --block\nray ended\n"; p.said() != want+want {
		t.Errorf("%q", p.said())
	}
	if note, err := os.ReadFile(p.dir + "/note"); !strings.HasPrefix(string(note), "launcher: deadline") {
		t.Errorf("%q, %v", note, err)
	}
	bare := newRayPod(t, false, "true")
	if _, err := exec.LookPath("ray"); err == nil {
		return
	}
	c := bare.launch(ctx, "ray")
	if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != 125 || !strings.Contains(string(out), "there is no ray in the image") {
		t.Errorf("code %d, %s", c.ProcessState.ExitCode(), out)
	}
}

// When a pod of Ray is ended, its driver hears of it, and ends, before Ray does.
func TestTheDriverHearsOfTheEndOfItsPodBeforeRayEnds(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing: apt-get install python3")
	}
	p := newRayPod(t, true, `trap 'sleep 1; echo driver ended >>"$DIR/said"; exit 0' TERM; echo driver >>"$DIR/said"; while :; do sleep 0.1; done`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pod := p.launch(ctx, "ray")
	if err := pod.Start(); err != nil {
		t.Fatal(err)
	}
	p.until("ray start")
	driver := p.launch(ctx, "driver", "DLWB_HOLD=0")
	over := make(chan error, 1)
	go func() { _, err := driver.CombinedOutput(); over <- err }() // as Ray waits for it
	p.until("driver")
	if err := pod.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = pod.Wait()
	if pod.ProcessState.ExitCode() != 143 || !strings.HasSuffix(p.said(), "driver\ndriver ended\nray ended\n") {
		t.Errorf("code %d, %q", pod.ProcessState.ExitCode(), p.said())
	}
	<-over
}
