//go:build unix

package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/hosts/options"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/sshkeys"
)

// own is the spec of hosts of which the first has something of its own.
func own(o options.HostOption, hosts ...string) cloud.Spec {
	s := spec(hosts...)
	s.Own.(*options.Machines).HostOptions = map[string]options.HostOption{hosts[0]: o}
	return s
}

func TestWhatAHostHasOfItsOwnIsCheckedThere(t *testing.T) {
	w := newWorld(t)
	fourGPUs := map[string]string{
		"nvidia-smi": `case $1 in -L) for i in 0 1 2 3; do echo "GPU $i: NVIDIA A10G (UUID: GPU-a$i)"; done ;; *) echo "4242, 8192, GPU-a2"; echo "4343, 1, GPU-a0" ;; esac`,
		"ps":         `case $* in *4242*) echo grace ;; *4343*) echo eve ;; esac`,
	}
	w.start("gpu", programs(t, fourGPUs))
	w.start("plain")
	w.start("full")
	free := t.TempDir()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	mounted := smallDisk(t, data, "nr_inodes=2")
	for _, c := range []struct {
		name, host string
		options.HostOption
		lines []string
	}{
		{"GPUs of it", "gpu", options.HostOption{GPUs: []int{1, 2}}, []string{"2 of 4 × NVIDIA A10G", "warning: others work on its GPUs: grace (pid 4242, 8 GiB) |"}},
		{"a free GPU of it", "gpu", options.HostOption{GPUs: []int{3}}, []string{"1 of 4 × NVIDIA A10G"}},
		{"all of it", "gpu", options.HostOption{}, []string{"grace (pid 4242, 8 GiB), eve (pid 4343, 1 MiB)"}},
		{"GPUs that it does not have", "gpu", options.HostOption{GPUs: []int{0, 4, 7}}, []string{"NO gpu: the profile names GPU 4, 7, and its GPUs are 0, 1, 2, 3 |"}},
		{"a GPU of none", "plain", options.HostOption{GPUs: []int{0}}, []string{"NO plain: the profile names GPU 0, and it has no GPU |"}},
		{"a directory", "plain", options.HostOption{Dir: free}, []string{"ok plain: reachable"}},
		{"no directory", "plain", options.HostOption{Dir: free + "/none"}, []string{"NO plain: " + free + "/none, where the profile wants its code, is no directory there"}},
		{"a directory without inodes", "full", options.HostOption{Dir: data}, []string{"NO full: its disk is full: only 1 more files fit in " + data}},
		{"no interpreter", "plain", options.HostOption{Python: "/opt/none/python"}, []string{"NO plain: /opt/none/python, which the profile gives as its Python, does not run there"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.HostOption.Dir == data && !mounted {
				t.Skip("NOT RUN: only root can mount a small disk")
			}
			p := New(w.options)
			got := lines(p.Check(w.ctx(), own(c.HostOption, c.host)))
			want(t, got, c.lines...)
			if c.name == "a free GPU of it" && strings.Contains(got, "others work") {
				t.Errorf("those on its other GPUs are told:\n%s", got)
			}
		})
	}
}

func TestDirectoryOfAHostTakesTheCodeAndIsLeftAsItWas(t *testing.T) {
	for _, shell := range []string{"dash", "bash", "busybox sh"} {
		t.Run(shell, func(t *testing.T) {
			w := newWorld(t)
			s := w.start("gpu1", sshdtest.Shell(shell))
			data := filepath.Join(t.TempDir(), "da ta's")
			if err := os.Mkdir(data, 0o755); err != nil {
				t.Fatal(err)
			}
			before := tree(t, s.Home) + tree(t, data)
			sp := own(options.HostOption{Dir: data, GPUs: []int{2, 0}, Python: "py"}, "gpu1")
			c, err := w.Up(w.ctx(), w.life("a"), sp, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := c.Nodes[0]; fmt.Sprint(n.GPUs) != "[2 0]" || n.Python != "py" {
				t.Errorf("the node: %+v", n)
			}
			// What is put into the cluster's directory lies there.
			if err := os.WriteFile(filepath.Join(s.Home, "dlwb", "demo", "file"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(data, "dlwb-demo", "file")); err != nil {
				t.Error(err)
			}
			if _, err := w.Up(w.ctx(), w.life("a"), sp, nil); err != nil {
				t.Errorf("the second time: %v", err)
			}
			other := own(options.HostOption{Dir: data + "/.."}, "gpu1")
			if _, err := w.Up(w.ctx(), w.life("a"), other, nil); err == nil || !strings.Contains(err.Error(), "took it with the directory") {
				t.Errorf("with another directory: %v", err)
			}
			r, err := w.down("a")
			if err != nil || !r.Proven() || !strings.Contains(r.Resources[0].Proof, data+"/dlwb-demo") {
				t.Errorf("%v %+v", err, r)
			}
			if after := tree(t, s.Home) + tree(t, data); after != before {
				t.Errorf("left:\n%s", after)
			}
		})
	}
}

func TestDirectoryThatIsInUseIsNotTaken(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	data := t.TempDir()
	kept := filepath.Join(data, "dlwb-demo", "somebody's")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, s.Home)
	for dir, why := range map[string]string{data: "dlwb-demo is there already", data + "/none": "is no directory there"} {
		if _, err := w.Up(w.ctx(), w.life("a"), own(options.HostOption{Dir: dir}, "gpu1"), nil); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if after := tree(t, s.Home); after != before {
		t.Errorf("left:\n%s", after)
	}
	if _, err := w.down("a"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what was there before: %v", err)
	}
}

func TestConditionsThatAreNotEvaluatedAreTold(t *testing.T) {
	w := newWorld(t)
	w.start("gpu1")
	w.add("config", "Match exec \"touch "+w.path("ran")+"\"\n  User nobody\nHost *\n  CanonicalizeHostname yes\n  CanonicalDomains lab.example\n")
	want(t, w.check("gpu1"), "ok gpu1: reachable", "ok gpu1: warning: the ssh configuration has conditions that dlwb does not evaluate", w.path("config")+":", ": Match exec", "CanonicalizeHostname yes")
	if _, err := os.Stat(w.path("ran")); err == nil {
		t.Error("the command was run")
	}
	var told []string
	if _, err := w.Up(w.ctx(), w.life("a"), spec("gpu1"), func(_ int, text string) { told = append(told, text) }); err != nil {
		t.Fatal(err)
	}
	want(t, strings.Join(told, "\n"), "Match exec")
	if _, err := w.down("a"); err != nil {
		t.Error(err)
	}
}

func TestPassphraseIsAskedForOnceForAllHosts(t *testing.T) {
	w := newWorld(t)
	a := w.start("gpu1")
	b := w.start("gpu2")
	w.write("config", strings.ReplaceAll(mustRead(t, w.path("config")), b.KeyFile, a.KeyFile))
	b.Authorize(strings.TrimSpace(tool(t, "", "ssh-keygen", "-y", "-f", a.KeyFile)))
	tool(t, "", "ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", a.KeyFile)
	t.Setenv("SSH_AUTH_SOCK", "")
	asked := 0
	sshkeys.AskWith(func(file string, again bool) ([]byte, bool) {
		asked++
		if file != a.KeyFile || again {
			t.Errorf("asked for %s, again %v", file, again)
		}
		return []byte("secret"), true
	})
	defer sshkeys.AskWith(nil)
	if err := w.Meet(w.ctx(), spec("gpu1", "gpu2")); err != nil {
		t.Fatal(err)
	}
	c := w.mustUp("a", "gpu1", "gpu2")
	for _, n := range c.Nodes { // and for all connections later
		node := remote.Open(remote.Target{Name: n.Name, Addr: n.Addr, User: n.User, HostKey: n.HostKey, Keys: n.Keys})
		if err := node.Connect(w.ctx()); err != nil {
			t.Error(err)
		}
		_ = node.Close()
	}
	if _, err := w.down("a"); err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
