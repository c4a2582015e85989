//go:build unix

package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// oddFiles are things that are no regular file, by their names.
func oddFiles(t *testing.T) map[string]string {
	t.Helper()
	dir, err := os.MkdirTemp("", "odd") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return map[string]string{"a fifo": fifo, "a socket": socket, "an endless device": "/dev/zero", "a directory": dir}
}

func TestNoFileThatIsNoneHoldsDlwbUp(t *testing.T) {
	odd := oddFiles(t)
	link := func(t *testing.T, b *bed, name, to string) {
		t.Helper()
		path := filepath.Join(b.dir, name)
		_ = os.Remove(path)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what string
		set  func(t *testing.T, b *bed, odd string) (args []string)
		fine bool // it need not fail
	}{
		{"profile", func(t *testing.T, b *bed, odd string) []string {
			return []string{"plan", odd, "--trust=0000000000000000"}
		}, false},
		{"profile behind a link", func(t *testing.T, b *bed, odd string) []string {
			link(t, b, "dlwb.yaml", odd)
			return []string{"plan", "--trust=0000000000000000"}
		}, false},
		{"requirements", func(t *testing.T, b *bed, odd string) []string {
			link(t, b, "requirements.txt", odd)
			b.write("dlwb.yaml", "name: bed\nprovider: local\nrun: {engine: plain, command: train.py}\nenvironment: {venv: requirements.txt}\n")
			return []string{"up", "--plain", "--trust=0000000000000000"}
		}, false},
		{"ignore file", func(t *testing.T, b *bed, odd string) []string {
			link(t, b, ".dlwbignore", odd)
			return []string{"plan", "--trust=0000000000000000"}
		}, true},
		{"ssh configuration", func(t *testing.T, b *bed, odd string) []string {
			b.env = append(b.env, "DLWB_SSH_CONFIG="+odd)
			return []string{"plan"}
		}, false},
		{"known hosts", func(t *testing.T, b *bed, odd string) []string {
			b.sshConfig(t, "UserKnownHostsFile "+odd)
			return []string{"plan"}
		}, false},
		{"key", func(t *testing.T, b *bed, odd string) []string {
			b.sshConfig(t, "IdentityFile "+odd)
			return []string{"plan"}
		}, true},
		{"log", func(t *testing.T, b *bed, odd string) []string {
			b.env = append(b.env, "DLWB_LOG="+odd)
			return []string{"ls"}
		}, true},
	} {
		for kind, path := range odd {
			t.Run(c.what+" is "+kind, func(t *testing.T) {
				b, _ := wedgedBed(t)
				b.stranger = true
				args := c.set(t, b, path)
				if args[len(args)-1] == "plan" {
					b.stranger = false
				}
				if e := b.timed(longest, args...); e.code == 0 && !c.fine {
					t.Errorf("it succeeded:\n%s", e.said)
				}
			})
		}
	}
}

// sshConfig puts a line in front of the bed's ssh configuration.
func (b *bed) sshConfig(t *testing.T, line string) {
	t.Helper()
	path := filepath.Join(b.home, "ssh_config")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte("Host *\n "+line+"\n"+string(text)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMetricsReadsAFifoAndCtrlCEndsIt(t *testing.T) {
	b, _ := wedgedBed(t)
	odd := oddFiles(t)
	if e := b.timed(longest, "metrics", odd["a directory"]); e.code != 0 || strings.Count(e.said, "no regular file") != 1 {
		t.Errorf("a directory of them: exit %d: %s", e.code, e.said)
	}
	for _, kind := range []string{"a socket", "an endless device"} {
		if e := b.timed(longest, "metrics", odd[kind]); e.code == 0 || !strings.Contains(e.said, "no regular file") {
			t.Errorf("%s: exit %d: %s", kind, e.code, e.said)
		}
	}
	if e := b.interrupted("metrics", odd["a fifo"]); e.code != ExitInterrupt || e.took > atOnce {
		t.Errorf("a fifo that nobody writes to: exit %d after %v: %s", e.code, e.took, e.said)
	}
	go func() {
		_ = os.WriteFile(odd["a fifo"], []byte("step 1 loss: 2.5\nstep 2 loss: 1.5\n"), 0)
	}()
	if e := b.timed(longest, "metrics", odd["a fifo"]); e.code != 0 || !strings.Contains(e.said, "loss") {
		t.Errorf("a fifo: exit %d: %s", e.code, e.said)
	}
}
