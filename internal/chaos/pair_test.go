//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/testbed"
)

// pair is two hosts that train together, for one cell after the other.
type pair struct {
	*lab
	bed   *testbed.Bed
	hosts [2]int
	dice  *rand.Rand
}

// trainer prints a step every tenth of a second until it is told to end, and
// writes a checkpoint that grows. What it starts first is hard to end: a
// grandchild in a session of its own, which ignores every signal that can be
// ignored.
const trainer = `
import os, signal, time
rank = os.environ["RANK"]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        while True:
            time.sleep(1000)
    os._exit(0)
os.wait()
step = 0
open("checkpoint", "wb").close()
while not os.path.exists("end"):
    step += 1
    with open("checkpoint", "ab") as f:
        f.write(b"x" * 9000)
    print(f"rank {rank} step {step} loss: {4 / step:.4f}", "x" * 500, flush=True)
    time.sleep(0.1)
`

// shimSMI is an nvidia-smi that hangs from its start when it is told to.
const shimSMI = `#!/bin/sh
[ ! -e /etc/smi-hangs ] || exec sleep 100000
exec /usr/local/bin/nvidia-smi.real "$@"
`

// newPair makes a laptop with two hosts, each with a disk and a GPU's driver
// that can be spoilt.
func newPair(t *testing.T, bed *testbed.Bed, number int, first int, dice *rand.Rand) *pair {
	t.Helper()
	p := &pair{bed: bed, hosts: [2]int{first, first + 1}, dice: dice}
	names := []string{testbed.Name(first), testbed.Name(first + 1)}
	p.lab = newLab(t, fmt.Sprintf("pair%d", number), bed.SSHConfig(), names, trainer, "")
	for node := range p.hosts {
		p.ownDisk(node)
		p.reboot(node)
		p.must(node, "mv /usr/local/bin/nvidia-smi /usr/local/bin/nvidia-smi.real")
		p.put(node, "/usr/local/bin/nvidia-smi", shimSMI)
	}
	return p
}

// hangSMI has a host's nvidia-smi hang: the one that answers again and again, and
// all that are started from now on.
func (p *pair) hangSMI(node int) {
	p.t.Helper()
	p.must(node, "touch /etc/smi-hangs")
	eventually(p.t, soon, func() error {
		for _, line := range p.processes(node) {
			if strings.Contains(line, "nvidia-smi.real") {
				_, err := p.bed.Run(p.hosts[node], "kill -STOP "+strings.Fields(line)[1])
				return err
			}
			if strings.Contains(line, "sleep 100000") {
				return nil
			}
		}
		return fmt.Errorf("no nvidia-smi runs on node%d", node)
	})
}

// must runs a line as root on a host.
func (p *pair) must(node int, line string) string {
	p.t.Helper()
	out, err := p.bed.Run(p.hosts[node], line)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *pair) put(node int, path, text string) {
	p.t.Helper()
	p.must(node, fmt.Sprintf("cat >%s <<'END'\n%sEND\nchmod 755 %s", path, text, path))
}

func (p *pair) do(what string, node int) {
	p.t.Helper()
	if err := p.bed.Do(what, testbed.Name(p.hosts[node])); err != nil {
		p.t.Fatal(err)
	}
}

// disk is where a host's homes are.
func (p *pair) disk(node int) string { return filepath.Dir(p.bed.Home(p.hosts[node])) }

// diskRoom is what a host's disk holds, when it is not full.
const diskRoom = "4g"

// ownDisk puts the homes of a host on a disk of their own. It can be made so
// small that it is full, which takes no memory, as filling it would.
func (p *pair) ownDisk(node int) {
	p.t.Helper()
	dir := p.disk(node)
	kept := p.t.TempDir()
	p.shell("cp -a " + dir + "/. " + kept + "/")
	if err := syscall.Mount("home", dir, "tmpfs", 0, "mode=755,size="+diskRoom); err != nil {
		p.t.Skipf("NOT RUN: a disk can't be mounted here: %v", err)
	}
	p.t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	p.shell("cp -a " + kept + "/. " + dir + "/")
}

func (p *pair) shell(line string) {
	p.t.Helper()
	if out, err := command("sh", "-c", line).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// resize gives a host's disk a size.
func (p *pair) resize(node int, room string) {
	p.t.Helper()
	if err := syscall.Mount("home", p.disk(node), "tmpfs", syscall.MS_REMOUNT, "mode=755,size="+room); err != nil {
		p.t.Fatal(err)
	}
}

// fill leaves no room on a host's disk.
func (p *pair) fill(node int) {
	p.t.Helper()
	var st syscall.Statfs_t
	for range 20 { // it may be growing just now
		if err := syscall.Statfs(p.disk(node), &st); err != nil {
			p.t.Fatal(err)
		}
		used := int64(st.Blocks-st.Bfree) * st.Bsize
		if syscall.Mount("home", p.disk(node), "tmpfs", syscall.MS_REMOUNT, "mode=755,size="+strconv.FormatInt(used, 10)) == nil {
			return
		}
	}
	p.t.Fatal("the disk can't be made full")
}

// reboot boots a host, dead or alive. All hosts have one kernel: what tells
// one boot from another is set beside it.
func (p *pair) reboot(node int) {
	p.t.Helper()
	p.do("reboot", node)
	p.must(node, "cat /proc/sys/kernel/random/uuid >/run/boot_id && mount --bind /run/boot_id /proc/sys/kernel/random/boot_id")
}

// serve starts a host's sshd again, after rst.
func (p *pair) serve(node int) {
	p.t.Helper()
	if err := p.bed.Serve(p.hosts[node]); err != nil {
		p.t.Fatal(err)
	}
}

// processes are what the user of a host runs, besides the sessions of ssh.
func (p *pair) processes(node int) (found []string) {
	p.t.Helper()
	for _, line := range strings.Split(p.must(node, "ps -ww -eo user:20=,pid=,ppid=,stat=,args="), "\n") {
		f := strings.Fields(line)
		if len(f) > 4 && f[0] == testbed.User && !strings.HasPrefix(f[4], "sshd") && !strings.HasPrefix(f[3], "Z") {
			found = append(found, line)
		}
	}
	return found
}

// trains reports whether a rank is alive on a host.
func (p *pair) trains(node int) bool { return p.rankPID(node) > 0 }

// rankPID is the process of a host's rank, as it was started: its children have
// the same command line.
func (p *pair) rankPID(node int) int {
	lines := p.processes(node)
	for _, line := range lines {
		f := strings.Fields(line)
		if !strings.Contains(line, "python") || !strings.Contains(line, "train.py") || strings.Contains(line, "rank ") {
			continue
		}
		if pid, err := strconv.Atoi(f[1]); err == nil && f[2] != "1" {
			return pid
		}
	}
	return 0
}

// noneLeft holds that nothing of dlwb and of the training runs on the hosts.
func (p *pair) noneLeft(what string) {
	p.t.Helper()
	_ = p.command("keeper", "stop").Run() // what it holds for the next command is dlwb's too
	for node := range p.hosts {
		eventually(p.t, soon, func() error {
			if left := p.processes(node); len(left) > 0 {
				return fmt.Errorf("after %s %d processes are left on node%d:\n%s", what, len(left), node, strings.Join(left, "\n"))
			}
			return nil
		})
	}
}

// tellEnd lets the ranks end by themselves.
func (p *pair) tellEnd() {
	p.t.Helper()
	for node := range p.hosts {
		if err := os.WriteFile(p.code(node)+"/end", nil, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pair) code(node int) string { return p.bed.Home(p.hosts[node]) + "/dlwb/" + p.name + "/code" }

// fresh takes back what a former cell has left for its ranks.
func (p *pair) fresh() {
	for node := range p.hosts {
		_ = os.Remove(p.code(node) + "/end")
	}
}

// whole compares what is stored of each log with what its rank has printed.
func (p *pair) whole(run any) {
	p.t.Helper()
	for rank := range p.hosts {
		stored, err := os.ReadFile(p.storedLog(run, rank))
		if err != nil {
			p.t.Error(err)
			continue
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(stored), "\n"), "\n") {
			if want := fmt.Sprintf("rank %d step %d loss:", rank, i+1); !strings.HasPrefix(line, want) {
				p.t.Errorf("line %d of the log of rank %d is %.60q", i+1, rank, line)
				break
			}
		}
	}
}
