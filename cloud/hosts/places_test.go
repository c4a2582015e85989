//go:build linux

package hosts

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// apart is a host whose directories for everybody are its own.
type apart struct {
	*sshdtest.Server
	root string // as the test sees the host's root
}

// everybodys are the directories that everybody may write to.
var everybodys = []string{"/dev/shm", "/tmp", "/var/tmp"}

// startApart starts a host with directories of its own, each a disk in memory
// with options of mount ("" for none), and mounts its home directory anew with
// options, too. Only root can.
func (w *world) startApart(alias, home string, dirs map[string]string) apart {
	w.Helper()
	if os.Getuid() != 0 {
		w.Skip("NOT RUN: only root can give a host directories of its own")
	}
	shell := filepath.Join(w.T.TempDir(), "shell")
	s := w.start(alias, sshdtest.Shell(shell))
	var b strings.Builder
	fmt.Fprintf(&b, "set -e\nkeep=$(mktemp -d /run/dlwb-test-XXXXXX)\nmount --bind '%[1]s' $keep\n", s.Home)
	for _, dir := range everybodys {
		fmt.Fprintf(&b, "mount -t tmpfs -o mode=1777 dlwb-test %s\n", dir)
	}
	fmt.Fprintf(&b, "mkdir -p '%[1]s'\nmount --bind $keep '%[1]s'\numount $keep\nrmdir $keep\n", s.Home)
	for dir, options := range dirs {
		fmt.Fprintf(&b, "mount -o remount,%s %s\n", options, dir)
	}
	if home != "" {
		fmt.Fprintf(&b, "mount -o remount,bind,%s '%s'\n", home, s.Home)
	}
	b.WriteString("echo ready\nexec sleep 3600\n")
	cmd := exec.CommandContext(w.T.Context(), "unshare", "--mount", "sh", "-c", b.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		_ = cmd.Wait()
		w.Skip("NOT RUN: no directories of a host's own can be mounted here")
	}
	text := fmt.Sprintf("#!/bin/sh\nexec nsenter -t %d -m --wd=\"$HOME\" /bin/sh \"$@\"\n", cmd.Process.Pid)
	if err := testprogram.Write(shell, []byte(text), 0o755); err != nil {
		w.Fatal(err)
	}
	return apart{s, fmt.Sprintf("/proc/%d/root", cmd.Process.Pid)}
}

// files are all files of a host that dlwb could have left somewhere.
func (a apart) files(t *testing.T) string {
	t.Helper()
	all := ""
	for _, dir := range append(everybodys, a.Home) {
		all += tree(t, a.root+dir)
	}
	return all
}

func TestLookingLeavesNothingAnywhere(t *testing.T) {
	for name, dirs := range map[string]map[string]string{
		"all as usual":            nil,
		"memory is not executed":  {"/dev/shm": "noexec"},
		"memory is full":          {"/dev/shm": "size=64k"},
		"memory can't be written": {"/dev/shm": "ro"},
		"two are not executed":    {"/dev/shm": "noexec", "/tmp": "noexec"},
		"only the home executes":  {"/dev/shm": "noexec", "/tmp": "noexec", "/var/tmp": "noexec"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.startApart("gpu1", "", dirs)
			before := a.files(t)
			want(t, w.check("gpu1"), "ok gpu1: reachable in")
			if after := a.files(t); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

func TestAHostWithNoPlaceForAProgramIsToldInOneSentence(t *testing.T) {
	w := newWorld(t)
	none := "noexec"
	a := w.startApart("gpu1", "noexec", map[string]string{"/dev/shm": none, "/tmp": none, "/var/tmp": none})
	before := a.files(t)
	want(t, w.check("gpu1"), "NO gpu1: a program of dlwb's can be executed in none of its directories: /dev/shm (it is not executed there",
		"| free some space in one of them, or have one mounted without noexec: ssh gpu1 df -h /tmp")
	if _, err := w.up("aa", "gpu1"); err == nil || !strings.Contains(err.Error(), "it can't be taken: a program of dlwb's can be executed in none") {
		t.Errorf("got %v", err)
	}
	if after := a.files(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestAHomeThatCantBeWrittenIsToldBeforeAnythingIsTaken(t *testing.T) {
	w := newWorld(t)
	a := w.startApart("gpu1", "ro", nil)
	w.start("gpu2")
	want(t, w.check("gpu1"), "NO gpu1: "+a.Home+" can't be written there | ssh gpu1 ls -ld "+a.Home)
	if _, err := w.up("aa", "gpu1", "gpu2"); err == nil || !strings.Contains(err.Error(), "the disk is read-only") {
		t.Errorf("got %v", err)
	}
	want(t, w.check("gpu2"), "ok gpu2: reachable in")
}

func TestAClusterLivesOnAHostWhoseHomeExecutesNothing(t *testing.T) {
	w := newWorld(t)
	a := w.startApart("gpu1", "noexec", nil)
	before := a.files(t)
	work(t, w, w.mustUp("aa", "gpu1"))
	if left := tree(t, a.root+"/var/tmp"); !strings.Contains(left, "/agent-") {
		t.Errorf("there is no agent outside of the home: %s", left)
	}
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
	if after := a.files(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// As on machines that are hardened by the benchmarks of CIS.
func TestAClusterLivesOnAHostWhoseHomeAloneExecutes(t *testing.T) {
	w := newWorld(t)
	none := "noexec"
	a := w.startApart("gpu1", "", map[string]string{"/dev/shm": none, "/tmp": none, "/var/tmp": none})
	before := a.files(t)
	work(t, w, w.mustUp("aa", "gpu1"))
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
	if after := a.files(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestAFullDiskOrQuotaIsToldWhenAHostIsTaken(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	if !smallDisk(t, s.Home, "nr_inodes=2") {
		t.Skip("NOT RUN: only root can mount a small disk")
	}
	want(t, w.check("gpu1"), "NO gpu1: its disk is full: only 1 more files fit in "+s.Home)
	if _, err := w.up("aa", "gpu1"); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v", err)
	}
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
	if left := tree(t, s.Home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

func TestTheLoginShellDoesNotMatter(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "tcsh", "busybox sh", "noisy"} {
		t.Run(shell, func(t *testing.T) {
			w := newWorld(t)
			line := shell
			if shell == "noisy" {
				line = "/bin/sh " + script(t, `echo "Welcome! dlwb-none"; printf '\n\001dlwb-host x \n'; echo "quota: 3" >&2; set -x; eval "$2"`)
			} else if _, err := exec.LookPath(strings.Fields(shell)[0]); err != nil {
				t.Skip("NOT RUN: it is not installed")
			}
			s := w.start("gpu1", sshdtest.Shell(line), sshdtest.Config("MaxSessions 1"))
			for _, rc := range []string{".zshenv", ".cshrc", ".config/fish/config.fish"} {
				path := filepath.Join(s.Home, rc)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("echo 'Welcome to the cluster!'\numask 0777\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(s.Home, ".local/share/fish"), 0o755); err != nil { // fish's own
				t.Fatal(err)
			}
			before := tree(t, s.Home)
			want(t, w.check("gpu1"), "ok gpu1: reachable in")
			w.mustUp("aa", "gpu1")
			if receipt, err := w.down("aa"); err != nil || !receipt.Proven() || !strings.Contains(receipt.Resources[0].Proof, "given back") {
				t.Errorf("%+v %v", receipt, err)
			}
			if after := tree(t, s.Home); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

func TestMachinesForWhichThereIsNoAgentAreTold(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ system, processor, line string }{
		{"Darwin", "arm64", "it runs Darwin on arm64; a node needs Linux on x86-64 or arm64 | leave it out"},
		{"Linux", "riscv64", "it runs Linux on riscv64; a node needs Linux on x86-64 or arm64 | leave it out"},
		{"Linux", "armv7l", "it runs Linux on armv7l; a node needs Linux on x86-64 or arm64 | leave it out"},
	} {
		host := strings.ToLower(c.system + c.processor)
		s := w.start(host, programs(t, map[string]string{"uname": `case $1 in -s) echo ` + c.system + ` ;; -m) echo ` + c.processor + ` ;; esac`}))
		want(t, w.check(host), "NO "+host+": "+c.line)
		if _, err := w.up(host, host); err == nil || !strings.Contains(err.Error(), "a node needs Linux on x86-64 or arm64") {
			t.Errorf("got %v", err)
		}
		if left := tree(t, s.Home); left != "" {
			t.Errorf("left:\n%s", left)
		}
	}
}

func TestAHostThatAnswersNonsenseIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	for _, answer := range []string{
		`printf "\n\001dlwb-host $w \n\277\377\377\377"`,
		`printf "\n\001dlwb-host $w \n\300"`,
		`printf "\n\001dlwb-host $w \n"; head -c 200000 /dev/zero`,
		`printf "\n\001dlwb-none $w Linux x86_64 gzip\n"`,
		`printf "\n\001dlwb-none $w \n"`,
		`printf "\n\001dlwb-cant $w write\n"`,
	} {
		liar := `w=$(printf "%s" "$2" | sed "s/.* host \([A-Z0-9]*\) \([A-Z0-9]*\).*/\1\2/"); ` + answer
		host := fmt.Sprintf("liar%d", len(w.asked))
		w.asked = append(w.asked, host)
		w.start(host, sshdtest.Shell("/bin/sh "+script(t, liar)))
		if got := w.check(host); !strings.HasPrefix(got, "NO "+host) {
			t.Errorf("%s: %s", answer, got)
		}
		if _, err := w.up(host, host); err == nil {
			t.Errorf("%s: it was taken", answer)
		}
	}
}
