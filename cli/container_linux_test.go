package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/podrig"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// boxed says from inside of the container what a rank finds there.
const boxed = `
import os, sys, time
assert not os.path.exists("/usr/bin/podman"), "this is no container"
assert open("/etc/dlwb/one").read() == "1", "this is another image"
assert os.getuid() == os.stat(os.environ["DLWB_RESULTS"]).st_uid, "another user"
assert os.path.abspath(__file__).startswith(os.path.expanduser("~/dlwb/")), __file__
rank, shared = os.environ["RANK"], "/dev/shm/" + os.environ["DLWB_RUN"]
open(shared + rank, "w").close()
os.remove(shared + rank)
open(os.path.join(os.environ["DLWB_RESULTS"], "of" + rank), "w").write(sys.version)
for step in range(1, int(sys.argv[1]) + 1):
    print("step %d loss: %.4f" % (step, 1 / step), flush=True)
    time.sleep(0.1)
`

// inBox is a bed whose ranks run in an image that a real podman builds.
func inBox(t *testing.T, steps int) *bed {
	t.Helper()
	// A program called docker elsewhere on the PATH is another one.
	t.Setenv("PATH", podrig.Wrapped(t, podrig.Images(t), "")+":/usr/sbin:/usr/bin:/sbin:/bin")
	b := newBedAlone(t)
	b.write("train.py", boxed)
	b.write("one", "1")
	b.write("Dockerfile", "FROM "+podrig.PythonImage+"\nCOPY one /etc/dlwb/one\n")
	b.write("dlwb.yaml", fmt.Sprintf("name: bed\nmachines: {count: 2}\nenvironment: {docker: Dockerfile}\nrun: {engine: plain, command: train.py %d}\n", steps))
	if r := b.run("up", "--json"); r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := b.run("sync", "--json"); r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return b
}

// containers are those that there are, a line each.
func (b *bed) containers() string {
	c := exec.Command("podman", "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Status}} {{.Command}}")
	c.Env = b.env
	out, _ := c.Output()
	return strings.TrimSpace(string(out))
}

// noRank holds that no rank's container is left. What dlwb asks of an image besides may
// be cut off with it: that goes with the cluster.
func (b *bed) noRank() {
	b.t.Helper()
	for began := time.Now(); strings.Contains(b.containers(), "train.py"); time.Sleep(500 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute {
			b.t.Fatalf("containers of ranks are left: %s", b.containers())
		}
	}
}

// noContainer holds that none is left: the receipt of a cluster says it.
func (b *bed) noContainer() {
	b.t.Helper()
	if left := b.containers(); left != "" {
		b.t.Errorf("containers are left: %s", left)
	}
}

func TestAContainerIsBuiltRunsBringsItsResultsHomeAndGoes(t *testing.T) {
	b := inBox(t, 5)
	r := b.run("run", "--json")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	run := b.runs()[0]
	for rank := range 2 {
		home := filepath.Join(b.home, "state", "runs", run.ID, "results", fmt.Sprintf("node%d", rank), fmt.Sprintf("of%d", rank))
		if text, err := os.ReadFile(home); err != nil || !strings.HasPrefix(string(text), "3.") {
			t.Errorf("the results of rank %d: %q, %v", rank, text, err)
		}
	}
	b.noRank()
	if r = b.run("run", "--json"); r.code != 0 || !strings.Contains(r.stdout, "Dockerfile did not change since it was set up") {
		t.Errorf("unchanged: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.write("one", "2") // the image is another one now, and the script finds that
	if r = b.run("run", "--json"); r.code == 0 || !strings.Contains(r.stdout, "this is another image") {
		t.Errorf("after a change: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.nothingIsLeft()
	b.noContainer()
}

func TestAContainerOfARunThatIsStoppedIsGone(t *testing.T) {
	b := inBox(t, 6000)
	c := b.start("run", "--json")
	c.awaitStep(3)
	if r := b.run("stop", "--json"); r.code != 0 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	c.end()
	b.noRank()
	b.nothingIsLeft()
	b.noContainer()
}

func TestAContainerThatNeverBeganGoesWithItsCluster(t *testing.T) {
	b := inBox(t, 5)
	// podman is killed between what it makes and what it starts: of dlwb's questions to
	// the image, that for the packages; and nobody else's container is touched.
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Fatal(err)
	}
	whole := podman + ".whole"
	if err := os.Rename(podman, whole); err != nil {
		t.Fatal(err)
	}
	cut := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in run*' -') shift; %[1]s create \"$@\" && kill -9 $$ ;; esac\nexec %[1]s \"$@\"\n", whole)
	if err := testprogram.Write(podman, []byte(cut), 0o755); err != nil {
		t.Fatal(err)
	}
	other := exec.Command(whole, "create", "--label", "dlwb=/elsewhere/dlwb/bed/container", podrig.PythonImage, "true")
	other.Env = b.env
	id, err := other.Output()
	if err != nil {
		t.Fatal(err)
	}
	if r := b.run("run", "--json"); r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.noRank()
	if got := strings.Count(b.containers(), " Created "); got != 3 {
		t.Errorf("%d containers were made and never began, of two nodes and of somebody else:\n%s", got, b.containers())
	}
	b.nothingIsLeft()
	if got := b.containers(); got != strings.TrimSpace(string(id))+" Created true" {
		t.Errorf("left, or gone with them: %s", got)
	}
}

func TestAContainerWhoseDlwbIsKilledEndsWithItsCluster(t *testing.T) {
	b := inBox(t, 6000)
	c := b.start("run", "--json")
	c.awaitStep(3)
	c.signal(syscall.SIGKILL)
	c.end()
	if got := b.pids("train.py"); len(got) == 0 {
		t.Error("the training ended with dlwb")
	}
	b.nothingIsLeft()
	b.noContainer()
}

func TestAContainerWhoseRankIsKilledIsNamedAndTheOtherEnds(t *testing.T) {
	b := inBox(t, 6000)
	c := b.start("run", "--json")
	c.awaitStep(3)
	b.soon("rank 1 trains too", func() bool { // one that is killed before it has begun is no rank yet
		logs, _ := filepath.Glob(filepath.Join(b.home, "state", "runs", "*", "rank-1.log"))
		text, _ := os.ReadFile(strings.Join(logs, ""))
		return strings.Contains(string(text), "step 3 ")
	})
	began := time.Now()
	killed := 0
	for _, pid := range b.pids("train.py") {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		text := "\x00" + string(env)
		if strings.Contains(text, "\x00RANK=1\x00") && strings.Contains(text, "\x00DLWB_CONTAINER=1\x00") {
			killed++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if killed == 0 {
		t.Fatal("no rank 1 is in a container")
	}
	ended := c.await("the end", func(e printedEvent) bool { return e["event"] == "run_ended" })
	if took := time.Since(began); took > 30*time.Second || !strings.Contains(fmt.Sprint(ended), "rank 1") {
		t.Errorf("after %v: %v", took, ended)
	}
	if code := c.end(); code == 0 {
		t.Error("exit code 0")
	}
	b.noRank()
	b.nothingIsLeft()
	b.noContainer()
}
