//go:build unix

package hosts

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// programs makes a directory of programs that stand before a host's own.
func programs(t *testing.T, texts map[string]string) sshdtest.Option {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := testprogram.Write(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return sshdtest.PathFirst(dir)
}

// script writes a script of sh and gives its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := testprogram.Write(path, []byte(text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// smallDisk mounts a disk in memory at a directory; false: only root may.
func smallDisk(t *testing.T, dir, options string) bool {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=0755,"+options, "dlwb-test", dir).CombinedOutput(); err != nil {
		t.Logf("mount: %v: %s", err, out)
		return false
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return true
}

func TestEachHostHasItsOneLineAndNothingIsLeftThere(t *testing.T) {
	w := newWorld(t)
	a := w.start("gpu1")
	w.start("gpu2")
	before := tree(t, a.Home)
	got := w.check("gpu1", "gpu2")
	want(t, got, "ok gpu1: reachable in ", "ok gpu2: reachable in ", " as "+a.User, "Linux", "Python 3.", "GB free", "no GPU",
		"ok gpu1 and gpu2: warning: they are the same machine", "with two homes")
	if n := strings.Count(got, "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, got)
	}
	if after := tree(t, a.Home); after != before {
		t.Errorf("the check left:\n%s", after)
	}
}

func TestWhatStandsInTheWayIsSaidInOneSentenceEach(t *testing.T) {
	w := newWorld(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody speaks
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	down := w.start("down")
	down.Stop()
	stranger := w.start("stranger")
	sshdtest.MakeKey(t, stranger.KeyFile+"2")
	w.write("config", strings.Replace(mustRead(t, w.path("config")), stranger.KeyFile, stranger.KeyFile+"2", 1))
	w.start("bsd", programs(t, map[string]string{"uname": "echo FreeBSD"}))
	full := w.start("full")
	mounted := smallDisk(t, full.Home, "size=50000k")
	w.start("bare", programs(t, map[string]string{"python3": "exit 127"}))
	w.start("hung", programs(t, map[string]string{"nvidia-smi": "exec sleep 60"}))
	w.start("noshell", sshdtest.Shell("/bin/false"))
	w.start("endless", sshdtest.Shell("/bin/sh "+script(t, "exec yes")))
	busy := w.start("busy", programs(t, map[string]string{
		"nvidia-smi": `case $1 in -L) echo "GPU 0: NVIDIA A10G (UUID: GPU-1)"; echo "GPU 1: NVIDIA A10G (UUID: GPU-2)" ;; *) echo "4242, 8192"; echo "4343, 100" ;; esac`,
		"ps":         `case $* in *4242*) echo grace ;; *4343*) id -un ;; esac`,
	}))
	wrong := w.start("user")
	w.write("config", "Host user\n  User nobody-of-this-name\n"+mustRead(t, w.path("config"))+
		fmt.Sprintf("Host silent\n HostName 127.0.0.1\n Port %d\n", silent.Addr().(*net.TCPAddr).Port))
	for _, c := range []struct{ host, line string }{
		{"down", "NO down: " + down.Addr + " can't be reached: connection refused | is it on, and does sshd run there? ssh down"},
		{"silent", "NO silent: no ssh answer from 127.0.0.1"},
		{"nowhere.invalid", "NO nowhere.invalid: nowhere.invalid:22 can't be reached: "},
		{"stranger", "NO stranger: it does not let " + stranger.User + " in (tried: " + stranger.KeyFile + "2) | is the user right? If so: ssh-copy-id -p "},
		{"user", "NO user: it does not let nobody-of-this-name in (tried: " + wrong.KeyFile + ")"},
		{"bsd", "NO bsd: it runs FreeBSD on FreeBSD; a node needs Linux on x86-64 or arm64"},
		{"full", "NO full: its disk is full: 51 MB are free in "},
		{"bare", "ok bare: warning: no python3 was found there | install it"},
		{"hung", "NO hung: nvidia-smi there does not answer"},
		{"noshell", "NO noshell: it lets us in, and the shell there does not answer"},
		{"endless", "NO endless: it lets us in, and the shell there does not answer: it said more than 262 kB, and not what it was asked | "},
		{"busy", "ok busy: warning: others work on its GPUs: grace (pid 4242, 8 GiB) |"},
		{"busy", "ok busy: warning: processes of your own user " + busy.User + " work on its GPUs: pid 4343 (100 MiB) |"},
		{"busy", "2 × NVIDIA A10G"},
	} {
		t.Run(c.host, func(t *testing.T) {
			t.Parallel()
			if c.host == "full" && !mounted {
				t.Skip("NOT RUN: only root can mount a small disk")
			}
			p := New(w.options)
			want(t, lines(p.Check(w.ctx(), spec(c.host))), c.line)
		})
	}
}

func TestHostsThatAreOneAreFound(t *testing.T) {
	w := newWorld(t)
	a := w.start("gpu1")
	w.host("alias", a)
	want(t, w.check("gpu1", "alias"), "NO gpu1 and alias: they are the same host, "+a.Addr)
	r := []report{
		{machine: machine{Entry: "x", HostName: "x"}, facts: hostclaim.Facts{Machine: "id1 boot1 x", Name: "x", Inode: 2, Disk: "/dev/sda1", Home: "/root"}},
		{machine: machine{Entry: "y", HostName: "y"}, facts: hostclaim.Facts{Machine: "id1 boot1 x", Name: "x", Inode: 2, Disk: "/dev/sda1", Home: "/root"}},
		{machine: machine{Entry: "z", HostName: "z"}, facts: hostclaim.Facts{Machine: "id1 boot2 z", Name: "z", Inode: 2, Disk: "/dev/sda1", Home: "/root"}}, // a copy
		{machine: machine{Entry: "n1", HostName: "n1"}, facts: hostclaim.Facts{Machine: "id3 boot3 n1", Name: "n1", Inode: 7, Disk: "nas:/home", Home: "/home/ada"}},
		{machine: machine{Entry: "n2", HostName: "n2"}, facts: hostclaim.Facts{Machine: "id4 boot4 n2", Name: "n2", Inode: 7, Disk: "nas:/home", Home: "/home/ada"}},
		{machine: machine{Entry: "down", HostName: "down"}},
		{machine: machine{Entry: "down2", HostName: "down2"}},
	}
	got := lines(cloud.Preflight{Findings: twins(r)})
	want(t, got, "NO x and y: they are two names of one machine (x)")
	if n := strings.Count(got, "\n"); n != 1 {
		t.Errorf("%d findings, want 1:\n%s", n, got)
	}
	shared := lines(cloud.Preflight{Findings: oneHome(r)})
	want(t, shared, "n1 and n2: they seem to share one home directory (nas:/home)")
	if n := strings.Count(shared, "\n"); n != 1 || strings.Contains(shared, "NO ") {
		t.Errorf("%d findings, want one that is no fault:\n%s", n, shared)
	}
}

func TestClockThatIsOffIsTold(t *testing.T) {
	now := time.Now().Truncate(time.Second) // a node tells whole seconds
	for _, c := range []struct {
		there time.Duration
		want  string
	}{
		{0, ""}, {5 * time.Second, ""}, {-5 * time.Second, ""},
		{90 * time.Second, "1m30s ahead of"}, {-time.Hour, "1h behind"},
	} {
		r := report{facts: hostclaim.Facts{Now: now.Add(c.there).Unix()}}
		got := lines(cloud.Preflight{Findings: r.clock(now, now)})
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %s", c.there, got)
		}
	}
}

func TestManyHostsBehindOneJumpHostLogInThereOnce(t *testing.T) {
	w := newWorld(t)
	outer := w.start("outer", sshdtest.Config("MaxStartups 1"))
	inner := w.start("inner", sshdtest.Config("MaxSessions 1"))
	behind := w.start("behind")
	host, port, _ := net.SplitHostPort(behind.Addr)
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("gpu%d", i))
	}
	w.add("config", fmt.Sprintf("Host gpu*\n ProxyJump outer,inner\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n UserKnownHostsFile %s\n IdentitiesOnly yes\n",
		host, port, behind.User, behind.KeyFile, w.path("known_hosts")))
	before := strings.Count(outer.Log()+inner.Log(), "Accepted publickey")
	got := w.check(names...)
	if n := strings.Count(got, "reachable in"); n != 12 || !strings.Contains(got, "through inner") {
		t.Errorf("%d of 12 were reached:\n%s", n, got)
	}
	if n := strings.Count(outer.Log()+inner.Log(), "Accepted publickey") - before; n != 2 {
		t.Errorf("%d logins on the two jump hosts, want 2", n)
	}
	inner.Stop()
	want(t, w.check("gpu1"), "NO gpu1: the jump host inner (", "on the way: the jump host could not reach "+inner.Addr)
	outer.Stop()
	want(t, w.check("gpu1"), "NO gpu1: the jump host outer (", "connection refused")
}

func TestKeyWithAPassphraseNeedsTheAgent(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	plain := w.path("plain")
	w.write("plain", mustRead(t, s.KeyFile))
	tool(t, "", "ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", s.KeyFile)
	t.Setenv("SSH_AUTH_SOCK", "")
	want(t, w.check("gpu1"), "NO gpu1: it does not let", "has a passphrase", "| ssh-add "+s.KeyFile)
	socket := w.path("agent")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
	}()
	for i := 0; ; i++ {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			break
		} else if i == 500 {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	tool(t, "SSH_AUTH_SOCK="+socket, "ssh-add", "-q", plain)
	t.Setenv("SSH_AUTH_SOCK", socket)
	want(t, w.check("gpu1"), "ok gpu1: reachable")
}

func TestOnesOwnProcessesOnAGPUMayBeOfTheRunThatGoesOnThere(t *testing.T) {
	r := report{machine: machine{Entry: "gpu", Alias: "gpu"}, claim: hostclaim.Claim{Cluster: "ours"},
		facts: hostclaim.Facts{User: "ada", Users: []hostclaim.GPUUser{{PID: 7, User: "ada", MiB: 1024, Number: -1}}}}
	for cluster, want := range map[string]string{"ours": "pid 7 (1 GiB); a run of this cluster may be among them", "other": "pid 7 (1 GiB)"} {
		found := r.gpus(cluster)
		if len(found) != 1 || !strings.HasSuffix(found[0].Text, want) {
			t.Errorf("%s: %+v, want %s", cluster, found, want)
		}
	}
}
