//go:build linux

package slurmrig

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/overlay"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// A lab that is set up in another way: no accounting, nobody sees the jobs of others, the
// user is not root, and sbatch is the site's own script with a banner of its own.
func TestJobsOfASlurmThatIsSetUpInAnotherWay(t *testing.T) {
	if os.Getenv("DLWB_RIGS") == "" {
		t.Skip("NOT RUN: it takes minutes, and needs a Slurm: make test-slurm installs and runs it")
	}
	script(t) // first: it says what is missing
	built := overlay.Build(t, nil)
	slow := filepath.Join(t.TempDir(), "slow")
	prolog := slow + "-prolog"
	if err := testprogram.Write(prolog, []byte("#!/bin/sh\n[ ! -e "+slow+" ] || sleep 10\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	base := Up(t, "-n", "2", "-g", "2", "-x", "PrivateData=jobs,usage", "-x", "WaitTime=2", "-x", "Prolog="+prolog)
	program := filepath.Join(base, "dlwb") // the directory of the test is closed to others
	must(t, "install", "-m", "755", built, program)
	for _, story := range []struct {
		name string
		play func(t *testing.T, d *desk)
	}{
		{"what a wrapped sbatch prints", wrapped},
		{"an sbatch that names no job", unnamed},
		{"the jobs of others are hidden", hidden},
		{"cancelled, and nobody keeps accounts", unaccounted},
		{"ranks in an image", imaged},
		{"a site that ends what ends late", uneven},
		{"a site where jobs begin slowly", func(t *testing.T, d *desk) { slowly(t, d, slow) }},
	} {
		t.Run(story.name, func(t *testing.T) {
			d := newDesk(t, base, program)
			d.becomes("nobody")
			story.play(t, d)
		})
	}
	t.Run("a login node that lets dlwb in by a connection of ssh's only", func(t *testing.T) { keptLogin(t, newDesk(t, base, program)) })
}

// A rank that goes on after another has ended is not ended for it, whatever the site does
// with the tasks of a step.
func uneven(t *testing.T, d *desk) {
	d.write("train.py", `import os, time
for step in range(1, 9): # four times as long as the site waits
    if os.environ["RANK"] == "0": break
    print("step", step, flush=True)
    time.sleep(1)
`)
	d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py")
	out, err := d.try("run", "--json")
	if word, cause, _ := verdict(t, out); err != nil || word != "succeeded" || !strings.HasSuffix(d.stored(1), "step 8\n") {
		t.Errorf("%v, %s: %s\n%s", err, word, cause, d.stored(1))
	}
	d.clean()
}

// A job that is put back into the queue, and runs again before dlwb has looked, has not
// come to an end by the signal that ended its last life.
func slowly(t *testing.T, d *desk, slow string) {
	d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py 0.1 "+d.until())
	wait := d.started()
	d.await("it is where it stays", time.Minute, func() bool { return strings.Contains(d.stored(0), "step 10/40") })
	if err := os.WriteFile(slow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(slow) }()
	must(t, "kill", "-STOP", strconv.Itoa(d.dlwb))
	id := strconv.Itoa(lastJob())
	must(t, "scontrol", "requeue", id)
	d.await("it waits again", time.Minute, func() bool { return len(jobs("PENDING")) == 1 })
	d.beginsAgain(id)
	d.await("it runs again", 4*time.Minute, func() bool { return len(jobs("RUNNING")) == 1 })
	must(t, "kill", "-CONT", strconv.Itoa(d.dlwb))
	d.letGo()
	if word, cause, _ := verdict(t, wait()); word != "succeeded" || !strings.Contains(cause, "began it again 1 time") {
		t.Errorf("%s: %s", word, cause)
	}
	d.clean()
}

// Where a login needs what only a person has, a person logs in once, and dlwb goes by
// the connection that ssh keeps. No login is tried besides.
func keptLogin(t *testing.T, d *desk) {
	server := sshdtest.Start(t, sshdtest.Shell("env SLURM_CONF="+os.Getenv("SLURM_CONF")+" "+loginShell()))
	conf, known, socket := filepath.Join(d.at, "ssh_config"), filepath.Join(d.at, "known_hosts"), filepath.Join(d.at, "master")
	host, port, _ := strings.Cut(server.Addr, ":")
	for path, text := range map[string]string{known: fmt.Sprintf("[%s]:%s %s\n", host, port, strings.TrimSpace(server.HostKey)),
		conf: fmt.Sprintf("Host tiger\n HostName %s\n Port %s\n User %s\n IdentityFile none\n IdentitiesOnly yes\n UserKnownHostsFile %s\n ControlMaster auto\n ControlPath %s\n", host, port, server.User, known, socket)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(d.env, "DLWB_SSH_CONFIG="+conf, "SSH_AUTH_SOCK=")
	d.profile("slurm", "count: 2, partition: gpu, login: 'ssh:tiger'", "engine: plain, command: train.py 0.1 "+d.until())
	if out, err := d.try("run", "--plain"); err == nil || !strings.Contains(out, "Permission denied") || !strings.Contains(out, "a connection that your own ssh keeps open") {
		t.Errorf("without a connection: %v\n%s", err, out)
	}
	must(t, "ssh", "-F", conf, "-i", server.KeyFile, "-o", "ControlMaster=yes", "-o", "LogLevel=ERROR", "-fN", "tiger")
	t.Cleanup(func() { _ = exec.Command("ssh", "-F", conf, "-O", "exit", "tiger").Run() })
	logins := func() int { return strings.Count(server.Log(), "Accepted publickey ") }
	d.await("the login is in the server's log", time.Minute, func() bool { return logins() > 0 })
	before := logins()
	if out := d.must("offers", "--provider", "slurm", "--login", "ssh:tiger"); !strings.Contains(out, "a100") {
		t.Errorf("%s", out)
	}
	wait := d.started()
	if out := d.must("exec", "jobs", "--", "uname", "-n"); !strings.Contains(out, "node1 | n2") {
		t.Errorf("exec says\n%s", out)
	}
	d.letGo()
	if word, cause, _ := verdict(t, wait()); word != "succeeded" {
		t.Errorf("%s: %s", word, cause)
	}
	if out := d.must("down", "jobs", "--plain"); !strings.Contains(out, "everything is gone") || !strings.Contains(out, "tiger:"+server.Home) {
		t.Errorf("%s", out)
	}
	if after := logins(); before != 1 || after != 1 {
		t.Errorf("there were %d logins, and then %d", before, after)
	}
}

// becomes gives a desk to another user.
func (d *desk) becomes(name string) {
	d.t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		d.t.Fatal(err)
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if errUID != nil || errGID != nil {
		d.t.Fatal(errUID, errGID)
	}
	d.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	must(d.t, "chown", "-R", u.Uid+":"+u.Gid, d.at)
}

// wraps puts a site's own script in front of sbatch: LINE runs it as "$real".
func (d *desk) wraps(line string) {
	d.t.Helper()
	real, err := exec.LookPath("sbatch")
	if err == nil {
		err = os.MkdirAll(filepath.Join(d.at, "site"), 0o755)
	}
	if err == nil {
		err = testprogram.Write(filepath.Join(d.at, "site", "sbatch"), []byte("#!/bin/sh\nreal="+real+"\n"+line+"\n"), 0o755)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.env = append(d.env, "PATH="+filepath.Join(d.at, "site")+":"+os.Getenv("PATH"))
}

// A banner before the number, and GPUs as this site wants them asked for.
func wrapped(t *testing.T, d *desk) {
	d.wraps(`case "$*" in *--gres*) echo "sbatch: error: use --gpus-per-node here" >&2; exit 1 ;; esac
grep -q '^#SBATCH --gres' "${SCRIPT:-/dev/null}" && exit 1
echo "*** Tiger: 3 hours of your 500 are used ***"; "$real" "$@"; c=$?; echo "*** see you ***"; exit $c`)
	d.profile("slurm", "count: 2, partition: gpu, gpus: 1, sbatch: ['--gpus-per-node=a100:1', --nice=5]", "engine: plain, command: train.py 0.02")
	if out := d.must("run", "--plain"); !strings.Contains(out, "every rank ended with code 0") {
		t.Errorf("%s", out)
	}
	if log := d.stored(1); !strings.Contains(log, "rank 1 of 2 on n2 GPUs 0\n") || !strings.HasSuffix(log, "rank 1 is through\n") {
		t.Errorf("the log of rank 1 is %q", log)
	}
	d.clean()
	d.profile("slurm", "count: 1, partition: gpu, sbatch: [--output=/tmp/x]", "engine: plain, command: train.py 0.02")
	if out, err := d.try("run", "--plain"); err == nil || !strings.Contains(out, "--output is dlwb's own") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The job is in the queue, and what sbatch has printed does not say so: it is found by
// its name, and there is one.
func unnamed(t *testing.T, d *desk) {
	d.wraps(`case "$*" in *--test-only*) exec "$real" "$@" ;; esac
"$real" "$@" >/dev/null; echo "*** your job is on its way ***"`)
	d.profile("slurm", "count: 1, partition: gpu", "engine: plain, command: train.py 0.02")
	before := lastJob()
	if out := d.must("run", "--plain"); !strings.Contains(out, "every rank ended with code 0") {
		t.Errorf("%s", out)
	}
	if handed := jobsSince(before); handed != 1 {
		t.Errorf("%d jobs were handed in", handed)
	}
	d.clean()
}

// Who can't see the others is told no place among them.
func hidden(t *testing.T, d *desk) {
	var ids []string
	for range 2 {
		ids = append(ids, strings.TrimSpace(must(t, "sbatch", "--parsable", "--partition=gpu", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 300")))
	}
	cancel := func() { _ = exec.Command("scancel", ids...).Run() }
	t.Cleanup(cancel)
	d.await("the nodes are taken", time.Minute, func() bool { return strings.Contains(must(t, "squeue", "-h", "-o", "%T", "-j", ids[0]), "RUNNING") })
	d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py 0.02")
	d.must("run", "--plain", "--detach")
	said, wait := d.attached()
	d.await("why it waits is told", 90*time.Second, func() bool {
		return strings.Contains(said(), "(Priority") || strings.Contains(said(), "(Resources")
	})
	cancel()
	if err := wait(); err != nil || !strings.Contains(said(), "every rank ended with code 0") || strings.Contains(said(), "place ") {
		t.Errorf("%v\n%s", err, said())
	}
	d.clean()
}

// What stands in for apptainer here runs the program and says what it was given.
func imaged(t *testing.T, d *desk) {
	d.wraps(`exec "$real" "$@"`)
	if err := testprogram.Write(filepath.Join(d.at, "site", "apptainer"), []byte("#!/bin/sh\necho \"apptainer $1 $2 $3 in $(pwd)\"; shift 3; exec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.profile("slurm", "count: 1, partition: gpu, gpus: 1, image: '~/none.sif'", "engine: plain, command: train.py 0.02")
	if out, err := d.try("run", "--plain"); err == nil || !strings.Contains(out, "there is no image ~/none.sif") {
		t.Errorf("%v\n%s", err, out)
	}
	d.must("down", "--all", "--plain")
	if err := os.WriteFile(filepath.Join(d.home, "it.sif"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.profile("slurm", "count: 1, partition: gpu, gpus: 1, image: '~/it.sif'", "engine: plain, command: train.py 0.02")
	if out := d.must("run", "--plain"); !strings.Contains(out, "every rank ended with code 0") {
		t.Errorf("%s", out)
	}
	if log := d.stored(0); !strings.HasPrefix(log, "apptainer exec --nv "+d.home+"/it.sif in "+d.home+"/dlwb/jobs/") || !strings.HasSuffix(log, "rank 0 is through\n") {
		t.Errorf("the log is %q", log)
	}
	d.clean()
}

func unaccounted(t *testing.T, d *desk) {
	d.profile("slurm", "count: 2, partition: gpu", "engine: plain, command: train.py 0.1 "+d.until())
	wait := d.started()
	must(t, "scancel", append([]string{"--partition=gpu"}, jobs("RUNNING")...)...)
	if word, cause, _ := verdict(t, wait()); word != "stopped" || !strings.Contains(cause, "was cancelled by somebody with scancel, not by dlwb") {
		t.Errorf("scancel: %s, %s", word, cause)
	}
	d.clean()
}
