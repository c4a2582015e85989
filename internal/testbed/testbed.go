// Package testbed makes real hosts on this machine: real OpenSSH in namespaces
// of their own, which can be cut off, frozen, killed, booted again and moved
// behind a slow line. Chaos tests and benchmarks run on it; it needs Linux,
// root and the script that makes them.
package testbed

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// scriptVar names the script; without it, it lies beside the repository.
const scriptVar = "DLWB_TESTBED"

// lockPath is locked as long as there are hosts, and names their directory. The
// script's bridge, namespaces and addresses are the machine's, wherever TMPDIR
// points to: so is this.
const lockPath = "/run/dlwb-testbed.lock"

// ErrMissing says that the hosts can't be made here, and why.
var ErrMissing = errors.New("no testbed")

// Bed is a number of hosts that are up. There is one on a machine at a time.
type Bed struct {
	N   int
	dir string // keys, addresses, what the hosts write
	sh  string
	mu  *os.File // locked as long as the hosts are up
}

// Options say what hosts are made.
type Options struct {
	// GPUs is how many a host says it has; 0: it has no nvidia-smi.
	GPUs int
	// Size is how much the hosts may write together, as mount takes it;
	// empty: 8g. It is taken from this machine's memory.
	Size string
}

// script finds the script that makes the hosts.
func script() (string, error) {
	if path := os.Getenv(scriptVar); path != "" {
		return filepath.Abs(path)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for here != filepath.Dir(here) && !exists(filepath.Join(here, "go.mod")) {
		here = filepath.Dir(here)
	}
	path := filepath.Join(here, "..", "shared", "testbed", "testbed.sh")
	if !exists(path) {
		return "", fmt.Errorf("%w: testbed.sh is not beside the repository; set %s to it", ErrMissing, scriptVar)
	}
	return path, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// missing says what the hosts need and this machine has not.
func missing() error {
	switch u, err := user.Current(); {
	case runtime.GOOS != "linux":
		return fmt.Errorf("%w: it needs Linux", ErrMissing)
	case err != nil || u.Uid != "0":
		return fmt.Errorf("%w: it needs root", ErrMissing)
	}
	for _, program := range []string{"bash", "ip", "iptables-legacy", "unshare", "nsenter", "bc", "ssh-keygen", "/usr/sbin/sshd"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: %s is not installed", ErrMissing, program)
		}
	}
	return nil
}

// Up makes n hosts, and waits for another testbed of this machine to go first.
// The error is an ErrMissing where there can be none, as in a container that
// may not make namespaces.
func Up(n int, o Options) (*Bed, error) {
	if err := missing(); err != nil {
		return nil, err
	}
	sh, err := script()
	if err != nil {
		return nil, err
	}
	if out, err := exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: no namespaces can be made here: %s", ErrMissing, strings.TrimSpace(string(out)))
	}
	b := &Bed{N: n, dir: filepath.Join(os.TempDir(), "dlwb-testbed"), sh: sh}
	if err := b.claim(); err != nil {
		return nil, err
	}
	args := []string{"up", strconv.Itoa(n), "--size", "8g"}
	if o.Size != "" {
		args[3] = o.Size
	}
	if args = append(args, "--gpus", strconv.Itoa(o.GPUs)); o.GPUs == 0 {
		args = append(args, "--no-gpu")
	}
	if err := b.Do(args...); err != nil { // it may not mount, or has no tun device
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrMissing, err), b.Down())
	}
	return b, nil
}

// claim waits until there are no other hosts on this machine, and removes what a
// test that was killed has left of them.
func (b *Bed) claim() (err error) {
	if b.mu, err = os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := lock(b.mu); err != nil {
		return err
	}
	left, err := io.ReadAll(b.mu)
	if err != nil {
		return err
	}
	for _, dir := range []string{string(left), b.dir} {
		if filepath.IsAbs(dir) {
			_ = (&Bed{dir: dir, sh: b.sh}).Do("down")
		}
	}
	if err := b.mu.Truncate(0); err != nil {
		return err
	}
	_, err = b.mu.WriteAt([]byte(b.dir), 0)
	return err
}

// Down ends the hosts and all that ran on them.
func (b *Bed) Down() error {
	defer func() { _ = b.mu.Close() }()
	return b.Do("down")
}

// Do runs one command of the script, such as cut, heal, kill, reboot, freeze,
// thaw, rst or wan, with a node's name where it takes one.
func (b *Bed) Do(args ...string) error {
	_, err := b.run(args...)
	return err
}

// Run runs a shell line as root on a host, without ssh.
func (b *Bed) Run(i int, line string) (string, error) {
	return b.run("exec", Name(i), "sh", "-c", line)
}

func (b *Bed) run(args ...string) (string, error) {
	c := exec.Command("bash", append([]string{b.sh}, args...)...)
	c.Dir = "/" // the directory of a test may go away while it runs
	c.Env = append(os.Environ(), "TB_DIR="+b.dir)
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("testbed %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// WAN puts every host a delay (one way) and a rate away, at the addresses that
// WANAddr gives; the nodes reach each other as before.
func (b *Bed) WAN(delay time.Duration, rate string) error {
	return b.Do("wan", delay.String(), rate)
}

// Name is the name of host i, counted from 0: the script counts from 1.
func Name(i int) string { return "node" + strconv.Itoa(i+1) }

// Host is the address of host i, at which the other hosts reach it too.
func Host(i int) string { return fmt.Sprintf("10.77.%d.%d", (i+11)/256, (i+11)%256) }

// Addr is where host i's sshd listens.
func Addr(i int) string { return net.JoinHostPort(Host(i), "22") }

// WANAddr is the same sshd behind the slow line.
func WANAddr(i int) string { return strings.Replace(Addr(i), "10.77.", "10.78.", 1) }

// User is who logs in; he has no privileges. root may, too.
const User = "ubuntu"

// KeyFile is the private key that logs in.
func (b *Bed) KeyFile() string { return filepath.Join(b.dir, "key") }

// SSHConfig is a configuration for ssh -F: node1, node1-wan and so on.
func (b *Bed) SSHConfig() string { return filepath.Join(b.dir, "ssh_config") }

// HostKey is the key that host i's sshd shows, in authorized_keys form.
func (b *Bed) HostKey(i int) (string, error) {
	text, err := os.ReadFile(filepath.Join(b.dir, "hostkeys", strconv.Itoa(i+1)+".pub"))
	return strings.TrimSpace(string(text)), err
}

// Home is a directory of host i's user, as this machine sees it.
func (b *Bed) Home(i int) string {
	return filepath.Join(b.dir, "store", strconv.Itoa(i+1), "home", User)
}

// Serve starts host i's sshd again, after rst has ended it.
func (b *Bed) Serve(i int) error {
	// It joins the host's freezer first, in which the others of the host are.
	line := fmt.Sprintf(`echo $$ >/sys/fs/cgroup/freezer/dlwb-tb/%d/cgroup.procs; exec bash "$0" exec %s /usr/sbin/sshd -E /var/log/sshd.log </dev/null >/dev/null 2>&1`, i+1, Name(i))
	c := exec.Command("bash", "-c", line, b.sh)
	c.Env = append(os.Environ(), "TB_DIR="+b.dir)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("start the sshd of %s: %w: %s", Name(i), err, strings.TrimSpace(string(out)))
	}
	return nil
}
