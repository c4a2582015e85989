//go:build unix

// Package sshdtest runs a real OpenSSH server for tests: on loopback, as the
// current user, with a host key, an authorized_keys file and a home directory
// of its own. Nothing of the user's own ssh files is read or written.
package sshdtest

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/testport"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// NoSSHD is the environment variable that allows tests to be skipped where
// there is no sshd.
const NoSSHD = "DLWB_TEST_NO_SSHD"

// Server is a running sshd.
type Server struct {
	Addr    string // 127.0.0.1:port
	User    string
	HostKey string // in authorized_keys form
	KeyFile string // a private key that it accepts
	Home    string // HOME and working directory of sessions and of sftp

	t    testing.TB
	dir  string
	opts options
	// pid is the listener's, 0 while it is stopped. A reader that dlwb left
	// behind may still ask for it when the test is over.
	pid atomic.Int64
	// ended is closed when the listener has ended.
	ended chan struct{}
}

type options struct {
	shell  string
	path   string
	plain  bool
	config []string
}

// Option changes what Start makes.
type Option func(*options)

// Shell runs commands as "shell -c COMMAND" instead of by the user's shell.
// It may have arguments: "busybox sh".
func Shell(line string) Option { return func(o *options) { o.shell = line } }

// PathFirst puts a directory in front of the sessions' PATH.
func PathFirst(dir string) Option { return func(o *options) { o.path = dir } }

// Config adds a line to sshd_config.
func Config(line string) Option {
	return func(o *options) { o.config = append(o.config, line) }
}

// Plain runs commands without the wrapper that sets the working directory:
// sshd delivers no signals to a wrapped (forced) command. HOME is still the
// temporary one, but sessions and sftp begin in the user's real home.
func Plain() Option { return func(o *options) { o.plain = true } }

// Start starts an sshd, which ends with the test. Without sshd on this machine
// the test fails, unless the environment variable DLWB_TEST_NO_SSHD is set.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	program := find(t)
	me, err := user.Current()
	check(t, err)
	s := &Server{t: t, User: me.Username, dir: t.TempDir()}
	for _, o := range opts {
		o(&s.opts)
	}
	// t.TempDir would fail the test when a session still writes to its home.
	s.Home, err = os.MkdirTemp("", "dlwb-home-")
	check(t, err)
	t.Cleanup(func() { removeHome(s.Home) })
	s.KeyFile = filepath.Join(s.dir, "client_key")
	clientKey := MakeKey(t, s.KeyFile)
	s.HostKey = MakeKey(t, filepath.Join(s.dir, "host_key"))
	write(t, filepath.Join(s.dir, "authorized_keys"), clientKey+"\n", 0o600)
	t.Cleanup(s.Stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("sshd said:\n%s", s.Log())
		}
	})
	for range 5 {
		s.Addr = testport.Addr(t) // free while the server is stopped, too
		s.configure()
		if s.start(program) {
			return s
		}
	}
	t.Fatalf("sshd did not start; it said:\n%s", s.Log())
	return nil
}

// removeHome removes a home when nobody works there any more: what is about to end
// may still write a file.
func removeHome(home string) {
	for deadline := time.Now().Add(10 * time.Second); inUse(home) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	_ = os.RemoveAll(home)
}

// inUse reports whether a process works in a directory, as far as /proc tells.
func inUse(dir string) bool {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	return slices.ContainsFunc(links, func(link string) bool {
		to, err := os.Readlink(link)
		return err == nil && (to == dir || strings.HasPrefix(to, dir+"/"))
	})
}

func find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "sshd"} {
		if path, err := exec.LookPath(name); err == nil {
			path, err = filepath.Abs(path)
			check(t, err)
			return path
		}
	}
	if os.Getenv(NoSSHD) != "" {
		t.Skipf("there is no sshd here, and %s is set", NoSSHD)
	}
	t.Fatalf("this test needs OpenSSH's sshd: apt-get install -y openssh-server (or set %s=1 to skip it)", NoSSHD)
	return ""
}

// MakeKey writes an ed25519 private key to path and returns the public one in
// authorized_keys form.
func MakeKey(t testing.TB, path string) string {
	t.Helper()
	pub, private, err := ed25519.GenerateKey(nil)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(private, "test")
	check(t, err)
	write(t, path, string(pem.EncodeToMemory(block)), 0o600)
	key, err := ssh.NewPublicKey(pub)
	check(t, err)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// configure writes sshd_config and the wrapper around every command.
func (s *Server) configure() {
	_, port, _ := net.SplitHostPort(s.Addr)
	env := "SetEnv HOME=" + s.Home
	if s.opts.plain && s.opts.path != "" {
		env += " PATH=" + s.opts.path + ":" + os.Getenv("PATH")
	}
	lines := append(s.opts.config,
		"ListenAddress 127.0.0.1", "Port "+port,
		"HostKey "+filepath.Join(s.dir, "host_key"),
		"AuthorizedKeysFile "+filepath.Join(s.dir, "authorized_keys"),
		"PidFile none", "UsePAM no", "StrictModes no", "LogLevel VERBOSE",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin yes", "MaxStartups 100", "PrintMotd no", "UseDNS no",
		"AcceptEnv DLWB_*", "Subsystem sftp "+sftpServer(),
		env,
	)
	if !s.opts.plain {
		wrapper := filepath.Join(s.dir, "wrapper")
		write(s.t, wrapper, s.wrapper(), 0o700)
		lines = append(lines, "ForceCommand exec "+wrapper)
	}
	write(s.t, filepath.Join(s.dir, "sshd_config"), strings.Join(lines, "\n")+"\n", 0o600)
}

// wrapper gives a session the temporary home as its working directory, which
// sshd itself takes from the user database.
func (s *Server) wrapper() string {
	path, shell := "", s.opts.shell
	if s.opts.path != "" {
		path = s.opts.path + ":"
	}
	if shell == "" {
		shell = "${SHELL:-/bin/sh}"
	}
	return fmt.Sprintf(`#!/bin/sh
export HOME='%s' PATH="%s$PATH"
cd "$HOME" || exit 125
case $SSH_ORIGINAL_COMMAND in
*/sftp-server) exec $SSH_ORIGINAL_COMMAND ;;
'') exec %[3]s ;;
*) exec %[3]s -c "$SSH_ORIGINAL_COMMAND" ;;
esac
`, s.Home, path, shell)
}

func sftpServer() string {
	for _, path := range []string{
		"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
		"/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server",
	} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "internal-sftp"
}

// start runs sshd and waits until it answers. False: it ended by itself, which
// is what it does when somebody else took the port.
func (s *Server) start(program string) bool {
	s.t.Helper()
	if os.Geteuid() == 0 {
		check(s.t, os.MkdirAll("/run/sshd", 0o755))
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(s.t, err)
	defer func() { _ = log.Close() }()
	said := len(s.Log())
	cmd := exec.Command(program, "-D", "-e", "-f", filepath.Join(s.dir, "sshd_config"))
	cmd.Stderr = log
	check(s.t, cmd.Start())
	ended := make(chan struct{})
	dismiss := guard(s.t, cmd.Process.Pid)
	go func() {
		_ = cmd.Wait()
		dismiss()
		close(ended)
	}()
	s.pid.Store(int64(cmd.Process.Pid))
	s.ended = ended
	deadline := time.After(40 * time.Second)
	for !s.listens(said) || !s.answers() {
		select {
		case <-ended:
			return false
		case <-deadline:
			s.t.Fatalf("sshd does not answer on %s; it said:\n%s", s.Addr, s.Log())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

// guard ends a process when this one dies without cleaning up, as a test binary
// does that panics or runs out of time.
func guard(t testing.TB, pid int) (dismiss func()) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "read line || kill -KILL $1", "sh", strconv.Itoa(pid))
	stdin, err := cmd.StdinPipe()
	check(t, err)
	check(t, cmd.Start())
	return func() {
		_, _ = io.WriteString(stdin, "done\n")
		_ = cmd.Wait()
	}
}

// listens reports whether the server said after the first bytes of its log that the
// port is its own: what answers there may be another test's.
func (s *Server) listens(after int) bool {
	return strings.Contains(s.Log()[after:], "Server listening on ")
}

func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	banner := make([]byte, 4)
	n, _ := conn.Read(banner)
	return string(banner[:n]) == "SSH-"
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// Log is what sshd has said so far.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.logFile())
	return string(text)
}

// Stop ends the server and all its connections. It may be started again.
func (s *Server) Stop() {
	pid := int(s.pid.Load())
	if pid == 0 {
		return
	}
	children, _ := s.connections()
	signalAll([]int{pid}, syscall.SIGKILL)
	<-s.ended
	signalAll(children, syscall.SIGKILL)
	s.pid.Store(0)
}

// Restart stops the server and starts it on the same port, with the host key
// that is then in its place.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Start()
}

// Start starts a stopped server on the port that it had.
func (s *Server) Start() {
	s.t.Helper()
	if !s.start(find(s.t)) {
		s.t.Fatalf("sshd did not start again on %s; it said:\n%s", s.Addr, s.Log())
	}
}

// ChangeHostKey gives the server another host key and restarts it. It returns
// the new public key; HostKey still is the old one.
func (s *Server) ChangeHostKey() string {
	s.t.Helper()
	key := MakeKey(s.t, filepath.Join(s.dir, "host_key"))
	s.Restart()
	return key
}

// Authorize lets one more key in, given in authorized_keys form.
func (s *Server) Authorize(key string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "authorized_keys"), os.O_WRONLY|os.O_APPEND, 0)
	check(s.t, err)
	_, err = fmt.Fprintln(f, key)
	check(s.t, err)
	check(s.t, f.Close())
}

// KillConnections ends every connection at once, as a crash of its sshd
// process would, and returns how many there were.
func (s *Server) KillConnections() int {
	pids, count := s.connections()
	signalAll(pids, syscall.SIGKILL)
	return count
}

// Freeze stops every connection's sshd: TCP stays up, nothing answers. Thaw
// lets them go on.
func (s *Server) Freeze() {
	pids, _ := s.connections()
	signalAll(pids, syscall.SIGSTOP)
}

// Thaw undoes Freeze.
func (s *Server) Thaw() {
	pids, _ := s.connections()
	signalAll(pids, syscall.SIGCONT)
}

// connections are the processes that serve connections: the listener's
// children, and with privilege separation their children of the same name.
// count is how many connections there are.
func (s *Server) connections() (pids []int, count int) {
	listener := int(s.pid.Load())
	if listener == 0 {
		return nil, 0
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,comm=").Output()
	check(s.t, err)
	children := map[int][]int{} // of sshd processes only
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		var name string
		if _, err := fmt.Sscan(line, &pid, &parent, &name); err == nil && strings.Contains(name, "sshd") {
			children[parent] = append(children[parent], pid)
		}
	}
	// A child may have a smaller number than its parent, once numbers wrap.
	pids = children[listener]
	count = len(pids)
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids, count
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	check(t, testprogram.Write(path, []byte(text), mode))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
