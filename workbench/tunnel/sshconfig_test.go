package tunnel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/sshkeys"
)

func TestEveryHostOfTheSSHConfigSaysWhatLaterLinesCouldChange(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "my key %h")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := NewSSH(dir, nil)
	err := w.Write("demo", cloud.Cluster{Nodes: []cloud.Node{
		{Addr: "10.0.0.5:2222", User: "ada", HostKey: "ssh-ed25519 AAAA", NextHostKey: "ssh-ed25519 BBBB",
			Keys: sshkeys.Keys{Files: []string{key, "/nowhere/id"}, Agent: "SSH_AUTH_SOCK"}},
		{Addr: "[fd00::1]:22", User: "grace", HostKey: "ssh-ed25519 CCCC",
			Jumps: []cloud.Jump{{Addr: "outer:22", User: "u", HostKey: "ssh-ed25519 DDDD"}, {Addr: "inner:22", User: "u", HostKey: "ssh-ed25519 EEEE"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	read := func(kind string) string {
		t.Helper()
		text, err := os.ReadFile(w.file("demo", kind))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	conf, only, known := read("conf"), read("only"), read("hosts")
	for _, want := range []string{
		"Host demo-0 demo.node0\n    HostName 10.0.0.5\n    Port 2222\n    User ada\n", "HostName fd00::1\n", "IdentitiesOnly no", "IdentitiesOnly no",
		`IdentityFile "` + filepath.ToSlash(dir) + `/my key %%h"`, "ProxyJump none", "ProxyJump demo-1-jump1", "ProxyJump demo-1-jump0", "IdentityAgent none",
	} {
		if !strings.Contains(conf, want) {
			t.Errorf("%q is not in:\n%s", want, conf)
		}
	}
	hosts := strings.Count(conf, "Host ")
	for _, every := range []string{"StrictHostKeyChecking yes", "ForwardAgent no", "UpdateHostKeys no", "HostKeyAlias dlwb-demo-", "GlobalKnownHostsFile ", "ProxyJump "} {
		if n := strings.Count(conf, every); n != hosts || hosts != 4 {
			t.Errorf("%s: %d times for %d hosts", every, n, hosts)
		}
	}
	if strings.Contains(conf, "Host node") || strings.Contains(conf, "/nowhere") || !strings.Contains(only, "Host node1 demo-1 demo.node1\n") {
		t.Errorf("shared:\n%s\nonly:\n%s", conf, only)
	}
	if want := "dlwb-demo-0 ssh-ed25519 AAAA\ndlwb-demo-0 ssh-ed25519 BBBB\n"; !strings.HasPrefix(known, want) || strings.Count(known, "\n") != 5 {
		t.Errorf("the host keys:\n%s", known)
	}
}

func TestMachineWithoutAnAddressIsLeftOutOfTheSSHConfig(t *testing.T) {
	w := NewSSH(t.TempDir(), nil)
	nodes := []cloud.Node{{User: "u", HostKey: "k"}, {Addr: "10.0.0.1:22", User: "u", HostKey: "k"}, {Addr: "10.0.0.2:22", User: "a\nProxyCommand x", HostKey: "k"},
		{Addr: "10.0.0.3:22", HostKey: "k"}, {Addr: "10.0.0.4:22", User: "u", HostKey: "k", Jumps: []cloud.Jump{{}}}, {Addr: "10.0.0.5:22", User: "u"}}
	if err := w.Write("demo", cloud.Cluster{Nodes: nodes}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(w.file("demo", "conf"))
	if err != nil || strings.Count(string(text), "Host ") != 1 || !strings.Contains(string(text), "Host demo-1 ") || strings.Contains(string(text), "ProxyCommand") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestIncludeLineGoesThroughALinkAndMakesWhatIsMissing(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	w := NewSSH(filepath.Join(home, "state dir"), nil)
	in, err := w.AddInclude()
	if err != nil || !in.Added || in.There {
		t.Fatalf("%+v, %v", in, err)
	}
	path := filepath.Join(home, ".ssh", "config")
	text, err := os.ReadFile(path)
	if err != nil || string(text) != in.Line+"\n" || !strings.Contains(in.Line, `state dir/ssh/*.conf"`) {
		t.Errorf("%q, %v", text, err)
	}
	// A file that is kept elsewhere stays there.
	dot := filepath.Join(home, "dotfiles")
	if err := os.WriteFile(dot, []byte("Host x\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dot, path); err != nil {
		t.Skipf("NOT RUN: no symbolic links here: %v", err)
	}
	for i := range 2 {
		if in, err = w.AddInclude(); err != nil || in.Added != (i == 0) || in.There != (i == 1) {
			t.Errorf("time %d: %+v, %v", i, in, err)
		}
	}
	text, _ = os.ReadFile(dot)
	info, err := os.Lstat(path)
	if string(text) != in.Line+"\nHost x\n" || err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%q, %v, %v", text, info, err)
	}
	if info, err := os.Stat(dot); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	// A link that leads nowhere is not replaced.
	if err := os.Remove(dot); err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInclude(); err == nil {
		t.Error("a link that leads nowhere was written over")
	}
}
