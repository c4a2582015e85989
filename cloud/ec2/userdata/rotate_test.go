//go:build unix

package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sshKeys gives a machine the host keys of an image and that of user-data.
func (m *machine) sshKeys(b Boot) {
	for _, name := range []string{"ssh_host_rsa_key", "ssh_host_rsa_key.pub", "ssh_host_ecdsa_key", "ssh_host_ed25519_key-cert.pub", "sshd_config"} {
		m.write("etc/ssh/"+name, "of the image\n")
	}
	m.write("etc/ssh/ssh_host_ed25519_key", b.HostKeyPrivate)
	m.write("etc/ssh/ssh_host_ed25519_key.pub", b.HostKeyPublic)
}

func (m *machine) rotate(t *testing.T, word string) string {
	t.Helper()
	out, err := m.sh("sh var/lib/dlwb/rotate " + word)
	if err != nil {
		t.Fatalf("%s: %v: %s", word, err, out)
	}
	return out
}

// files are the names in /etc/ssh.
func (m *machine) sshFiles() string {
	names, err := filepath.Glob(m.path("etc/ssh/*"))
	must(m.t, err)
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return strings.Join(names, " ")
}

func TestAHostKeyOfItsOwnTakesThePlaceOfTheOneThatWasGiven(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Fatal("this test needs ssh-keygen: apt-get install -y openssh-client")
	}
	inEachShell(t, func(t *testing.T, shell string) {
		b := goodBoot(t)
		m := newMachine(t, shell, b)
		m.sshKeys(b)
		m.boot()
		if out, err := m.sh("sh var/lib/dlwb/rotate activate"); err == nil {
			t.Errorf("activated nothing: %q", out)
		}
		key := m.rotate(t, "prepare")
		if again := m.rotate(t, "prepare"); again != key || strings.Count(key, "\n") != 1 || !strings.HasPrefix(key, "ssh-ed25519 ") {
			t.Errorf("prepared %q, then %q", key, again)
		}
		if m.read("etc/ssh/ssh_host_ed25519_key") != b.HostKeyPrivate || strings.Contains(m.read("calls"), "restart") {
			t.Error("prepare has changed the key in use")
		}
		for range 2 {
			m.rotate(t, "activate")
			if got := m.sshFiles(); got != "ssh_host_ed25519_key ssh_host_ed25519_key.pub sshd_config" {
				t.Errorf("left %s", got)
			}
			if m.read("etc/ssh/ssh_host_ed25519_key.pub") != key {
				t.Error("another key is in use")
			}
		}
		// The private half is the one of that public half, and nobody's else.
		out, err := exec.Command("ssh-keygen", "-y", "-f", m.path("etc/ssh/ssh_host_ed25519_key")).Output()
		if err != nil || strings.Fields(string(out))[1] != strings.Fields(key)[1] {
			t.Errorf("%v: the private half belongs to %s", err, out)
		}
		if info, err := os.Stat(m.path("etc/ssh/ssh_host_ed25519_key")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %v (%v)", info.Mode(), err)
		}
		if got := m.read("calls"); !strings.Contains(got, "systemctl restart ssh\n") {
			t.Errorf("sshd was not restarted: %q", got)
		}
	})
}

func TestARotationThatWasCutOffIsFinished(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		b := goodBoot(t)
		m := newMachine(t, shell, b)
		m.sshKeys(b)
		m.boot()
		m.write("etc/ssh/dlwb_next_ed25519_key", "half a key") // cut off in prepare
		m.write("etc/ssh/dlwb_next_ed25519_key.new", "half a key")
		key := m.rotate(t, "prepare")
		must(t, os.Rename(m.path("etc/ssh/dlwb_next_ed25519_key"), m.path("etc/ssh/ssh_host_ed25519_key"))) // and in activate
		m.rotate(t, "activate")
		if m.read("etc/ssh/ssh_host_ed25519_key.pub") != key || m.sshFiles() != "ssh_host_ed25519_key ssh_host_ed25519_key.pub sshd_config" {
			t.Errorf("left %s", m.sshFiles())
		}
	})
}

func TestARestartThatFailsIsToldAndTriedByOtherWays(t *testing.T) {
	m := newMachine(t, "dash", goodBoot(t))
	m.sshKeys(goodBoot(t))
	m.boot()
	m.rotate(t, "prepare")
	m.program("systemctl", "exit 5")
	m.rotate(t, "activate")
	if got := m.read("calls"); !strings.Contains(got, "service ssh restart") {
		t.Errorf("called %q", got)
	}
	m.program("service", "exit 1")
	if out, err := m.sh("sh var/lib/dlwb/rotate activate"); err == nil || !strings.Contains(out, "can't restart sshd") {
		t.Errorf("%v: %q", err, out)
	}
}
