//go:build linux

// Package slurmrig runs a real Slurm for tests: a controller and nodes of this
// machine, each with a host name and processes of its own. It needs root, Debian's
// slurm-wlm and munge, and the script that makes them.
package slurmrig

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// scriptVar names the script; without it, it lies beside the repository.
const scriptVar = "DLWB_SLURMRIG"

// Start starts a Slurm with nodes n1, n2, …, has a job hold all of them, and gives
// the job's id. From then on srun of the test's environment means this Slurm. It
// ends with the test.
func Start(t testing.TB, nodes int) (job string) {
	t.Helper()
	Up(t, "-n", fmt.Sprint(nodes), "-g", "0")
	said := must(t, "salloc", "--nodes", fmt.Sprint(nodes), "--no-shell", "--job-name", "dlwb-test")
	m := regexp.MustCompile(`allocation (\d+)`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("salloc said: %s", said)
	}
	return m[1]
}

// Up starts a Slurm by the script's own options, and gives a directory that its
// nodes share. One of its subdirectories, rig/local, each node has for itself.
func Up(t testing.TB, options ...string) (shared string) {
	t.Helper()
	sh := script(t)
	// munged runs as a user of its own, and the test's own directory is closed to it.
	base, err := os.MkdirTemp("", "slurm")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(base) })
		err = os.Chmod(base, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "rig")
	t.Setenv("SLURMRIG_DIR", dir)
	dismiss := guard(t, sh)
	t.Cleanup(func() {
		down(t, sh)
		dismiss()
	})
	// Tests count the jobs that there were, and Slurm would forget them after a minute.
	// The ranks of a job meet at a port that is made of its number, which is another one
	// for each Slurm of this machine.
	options = append(slices.Clone(options), "-x", "MinJobAge=3600", "-x", fmt.Sprint("FirstJobId=", 1+rand.N(9000)))
	// The script gives each daemon half a minute at most, and its ports may be taken
	// between the look at them and their use: on a busy machine it is tried again.
	for try := 1; ; try++ {
		out, err := command(sh, append([]string{"up", "-p", fmt.Sprint(freePorts(t))}, options...)...).CombinedOutput()
		if err == nil {
			break
		}
		if log, _ := os.ReadFile(filepath.Join(dir, "log", "slurmctld")); try == 3 {
			t.Fatalf("Slurm did not come up: %v: %s\nits controller: %s", err, out, log)
		}
		t.Logf("Slurm did not come up, and is tried again: %v: %s", err, out)
		down(t, sh)
	}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	return base
}

// portsOfRig are how many ports a rig may take, from its first on.
const portsOfRig = 20

// freePorts is the first of so many ports on which nobody listens now: behind those of
// jobs and of internal/testport, before those that a system gives to whoever connects.
func freePorts(t testing.TB) int {
	t.Helper()
	for range 200 {
		first := 30000 + portsOfRig*rand.N(130)
		if allFree(first) {
			return first
		}
	}
	t.Fatalf("nowhere are there %d free ports", portsOfRig)
	return 0
}

func allFree(first int) bool {
	for port := range portsOfRig {
		l, err := net.Listen("tcp", fmt.Sprint(":", first+port))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// down ends the rig. What was killed may still have written a file when its directory
// was removed, which is then not empty: it is removed again.
func down(t testing.TB, sh string) {
	t.Helper()
	for try := 1; ; try++ {
		out, err := command(sh, "down").CombinedOutput()
		if err == nil {
			return
		}
		if try == 10 {
			t.Fatalf("slurmrig.sh down: %v: %s", err, out)
		}
		time.Sleep(time.Second)
	}
}

// Do runs the script on the Slurm that is up: "node n2 off", "ctld kill".
func Do(t testing.TB, args ...string) {
	t.Helper()
	must(t, script(t), args...)
}

// guard ends the rig when the test dies without cleaning up.
func guard(t testing.TB, sh string) (dismiss func()) {
	t.Helper()
	c := exec.Command("setsid", "sh", "-c", `read line || { "$1" down; rm -rf "${SLURMRIG_DIR%/*}"; }`, "sh", sh)
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_, _ = io.WriteString(in, "done\n")
		_ = c.Wait()
	}
}

// Node runs a line of sh on a node, without Slurm.
func Node(t testing.TB, node, line string) string {
	t.Helper()
	return must(t, script(t), "node", node, "sh", line)
}

// script finds the script, and leaves the test out where Slurm can't run.
func script(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		leaveOut(t, "the Slurm of this test needs root")
	}
	for _, program := range []string{"slurmctld", "slurmd", "srun", "munged"} {
		if _, err := exec.LookPath(program); err != nil {
			leaveOut(t, "%s is not installed; make test-slurm installs it on Debian and Ubuntu", program)
		}
	}
	path := os.Getenv(scriptVar)
	for here, _ := os.Getwd(); path == "" && here != filepath.Dir(here); here = filepath.Dir(here) {
		if _, err := os.Stat(filepath.Join(here, "go.mod")); err == nil {
			path = filepath.Join(here, "..", "shared", "slurmrig", "slurmrig.sh")
		}
	}
	if _, err := os.Stat(path); err != nil {
		leaveOut(t, "slurmrig.sh is not beside the repository; set %s to it", scriptVar)
	}
	return path
}

func must(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = "/"
	return c
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
