package boot

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud/local"
	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/remote"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
)

// TestMain lets the test binary play the dlwb binary: machines are processes
// of their own here too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch rest := os.Args[2:]; os.Args[1] {
		case local.NodeCommand:
			os.Exit(local.NodeMain(rest))
		case local.PeerSSHCommand:
			os.Exit(local.PeerSSHMain(rest))
		case local.SMICommand:
			os.Exit(local.SimulatedSMIMain(rest))
		case rigCommand:
			os.Exit(rigMain())
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every node takes a second to end
	goleak.VerifyTestMain(m)
}

// rigCommand makes the test binary start a rig with a machine, say where it is,
// and wait to be killed.
const rigCommand = "__rig"

func rigMain() int {
	r, err := New(Options{Exe: os.Args[0]})
	if err == nil {
		_, err = r.Boot(&fakeaws.Instance{ID: "i-1"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(r.opt.Dir, "i-1")
	select {}
}

// newRig makes a rig that is closed with the test; it is an error when
// something of it is left then.
func newRig(t *testing.T, o Options) *Rig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Exe = exe
	r, err := New(o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("NOT RUN: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(r.opt.Dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", r.opt.Dir, err)
		}
	})
	return r
}

// keyPair makes a key: the path of the private one and the public one.
func keyPair(t *testing.T) (path, private, public string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private = string(pem.EncodeToMemory(block))
	path = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, private, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// machine is an instance and what its owner knows of it.
type machine struct {
	rig      *Rig
	instance fakeaws.Instance
	keyFile  string
	hostKey  string
	addr     string
	private  string
	user     string        // empty: the image's own
	off      chan struct{} // closed when it has powered itself off
}

var launched atomic.Int64

// describe makes an instance that is not booted yet. extra is added to its
// cloud-config.
func describe(t *testing.T, r *Rig, extra string) *machine {
	t.Helper()
	keyFile, _, public := keyPair(t)
	_, hostPrivate, hostPublic := keyPair(t)
	m := &machine{rig: r, keyFile: keyFile, hostKey: hostPublic, off: make(chan struct{})}
	off := sync.OnceFunc(func() { close(m.off) }) // a lease that is not heard says it again
	m.instance = fakeaws.Instance{
		ID: fmt.Sprintf("i-%017x", launched.Add(1)), Region: "us-east-1", Type: "g5.xlarge", PublicKey: public,
		UserData: []byte("#cloud-config\nssh_keys:\n  ed25519_private: |\n    " +
			strings.ReplaceAll(strings.TrimSpace(hostPrivate), "\n", "\n    ") +
			"\n  ed25519_public: " + hostPublic + "\n" + extra),
		PowerOff: off,
	}
	return m
}

func (m *machine) boot(t *testing.T) *machine {
	t.Helper()
	started, err := m.rig.Boot(&m.instance)
	if err != nil {
		t.Fatal(err)
	}
	m.instance.Boots++
	m.addr, m.private = m.rig.sshAt(started.PublicIP), m.rig.sshAt(started.PrivateIP)
	return m
}

func (r *Rig) sshAt(ip string) string { return fmt.Sprintf("%s:%d", ip, r.SSHPort()) }

func launch(t *testing.T, r *Rig, extra string) *machine {
	t.Helper()
	return describe(t, r, extra).boot(t)
}

// open is the machine as dlwb reaches it.
func (m *machine) open(t *testing.T) *remote.Node {
	t.Helper()
	return m.openAt(t, m.addr)
}

func (m *machine) openAt(t *testing.T, addr string) *remote.Node {
	n := remote.Open(remote.Target{Name: "node0", Addr: addr, User: m.login(), HostKey: m.hostKey, KeyFile: m.keyFile})
	t.Cleanup(func() { n.Close() })
	return n
}

func (m *machine) login() string { return cmp.Or(m.user, "ubuntu") }

// connect waits until ssh answers.
func (m *machine) connect(t *testing.T) *remote.Node {
	t.Helper()
	n := m.open(t)
	eventually(t, "ssh answers", func() bool { return n.Connect(t.Context()) == nil })
	return n
}

// sh runs a command that must succeed and returns its output, trimmed.
func sh(t *testing.T, n *remote.Node, line string) string {
	t.Helper()
	got, err := n.Exec(t.Context(), remote.Cmd{Line: line})
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("%s: %v, exit %d\n%s%s", line, err, got.ExitCode, got.Stdout, got.Stderr)
	}
	return strings.TrimSpace(string(got.Stdout))
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 60 s still not: %s", what)
		}
	}
}

func refused(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		conn.Close()
	}
	return err != nil
}
