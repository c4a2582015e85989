//go:build linux

// Package loginrig runs a real OpenSSH server for tests whose users have the login
// shells, startup files, homes and file systems that a test asks for. Server,
// users and mounts live in namespaces of their own and go with the test: the users
// of this machine, its /etc and its /home stay as they are. It needs root.
package loginrig

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testport"
)

// User is one account of the server.
type User struct {
	Name  string
	Shell string // its login shell; empty: /bin/sh
	// Files are written into its home, by name: what a shell runs first.
	Files map[string]string
	// Home are the options of a tmpfs that is its home ("noexec", "size=300k");
	// empty: its home can do everything. With "ro" it is one that can't be written.
	Home string
	// Config are lines of sshd_config that hold for this user.
	Config []string
}

// Options are what holds for the whole server.
type Options struct {
	Config []string // lines of sshd_config
	NoSFTP bool     // the server has no sftp subsystem
	// Setup is a text for sh that root runs in the namespaces before the server
	// starts: it may mount, and write below /etc, which are its own.
	Setup string
}

// Rig is a running server.
type Rig struct {
	Addr    string // 127.0.0.1:port
	HostKey string // in authorized_keys form
	KeyFile string // a private key with which each user may log in

	t   testing.TB
	dir string
	pid int // the first process of the namespaces, as seen from outside
}

const firstUID = 62000

// Start starts a server with these users, which ends with the test.
func Start(t testing.TB, o Options, users ...User) *Rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: only root can make users and file systems of a test's own")
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: no namespaces can be made here: %s", bytes.TrimSpace(out))
	}
	// The name of the test's own directory may hold what mount takes for an option.
	dir, err := os.MkdirTemp("", "logins")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	r := &Rig{t: t, dir: dir}
	r.KeyFile = filepath.Join(r.dir, "client_key")
	r.write("authorized_keys", sshdtest.MakeKey(t, r.KeyFile)+"\n")
	r.HostKey = sshdtest.MakeKey(t, filepath.Join(r.dir, "host_key"))
	for _, u := range users {
		for name, text := range u.Files {
			r.write(filepath.Join("homes", u.Name, name), text)
		}
	}
	for range 5 { // somebody else may take the port
		r.Addr = testport.Addr(t)
		r.write("sshd_config", r.config(o, users))
		if r.start(setup(o, users)) {
			return r
		}
	}
	t.Fatalf("sshd did not start; it said:\n%s", r.Log())
	return nil
}

// Need leaves a test out where a program is not installed.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: %s is not installed; internal/tools/need.sh installs what the tests need", program)
		}
	}
}

func (r *Rig) config(o Options, users []User) string {
	_, port, _ := net.SplitHostPort(r.Addr)
	lines := append(slices.Clone(o.Config),
		"ListenAddress 127.0.0.1", "Port "+port,
		"HostKey /etc/dlwb-rig/host_key", "AuthorizedKeysFile /etc/dlwb-rig/authorized_keys",
		"PidFile none", "UsePAM no", "StrictModes no", "LogLevel INFO",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"MaxStartups 100", "UseDNS no",
	)
	if !o.NoSFTP {
		lines = append(lines, "Subsystem sftp internal-sftp")
	}
	for _, u := range users {
		if len(u.Config) > 0 {
			lines = append(append(lines, "Match User "+u.Name), u.Config...)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// setup is what the first process of the namespaces runs. /etc is an overlay in
// memory, /home a file system of its own. $1 is the directory of the rig.
func setup(o Options, users []User) string {
	var b strings.Builder
	b.WriteString(`set -e
rig=$1
mkdir -p "$rig/up"
mount -t tmpfs -o mode=755 tmpfs "$rig/up"
mkdir "$rig/up/etc" "$rig/up/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$rig/up/etc,workdir=$rig/up/work" /etc
mount -t tmpfs -o mode=755 tmpfs /home
mkdir -p /etc/dlwb-rig /run/sshd
cp "$rig/sshd_config" "$rig/host_key" "$rig/authorized_keys" /etc/dlwb-rig
chmod 644 /etc/dlwb-rig/authorized_keys
`)
	for i, u := range users {
		uid, home, shell := firstUID+i, "/home/"+u.Name, u.Shell
		if shell == "" {
			shell = "/bin/sh"
		}
		fmt.Fprintf(&b, "echo '%s:x:%d:%d::%s:%s' >>/etc/passwd\n", u.Name, uid, uid, home, shell)
		fmt.Fprintf(&b, "echo '%s:*:19000:0:99999:7:::' >>/etc/shadow\nmkdir %s\n", u.Name, home)
		if options := strings.TrimPrefix(strings.TrimPrefix(u.Home, "ro"), ","); u.Home != "" {
			fmt.Fprintf(&b, "mount -t tmpfs -o '%s' tmpfs %s\n", join("mode=755", options), home)
		}
		fmt.Fprintf(&b, "[ ! -d \"$rig/homes/%[1]s\" ] || cp -r \"$rig/homes/%[1]s/.\" %[2]s\nchown -R %[3]d:%[3]d %[2]s\n", u.Name, home, uid)
		if strings.HasPrefix(u.Home, "ro") {
			fmt.Fprintf(&b, "mount -o remount,ro %s\n", home)
		}
	}
	b.WriteString(o.Setup + "\nset +e\n/usr/sbin/sshd -D -e -f /etc/dlwb-rig/sshd_config\n")
	return b.String()
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + "," + b
}

// start runs the server and waits until it answers. False: it ended.
func (r *Rig) start(text string) bool {
	r.t.Helper()
	r.write("setup.sh", text)
	log, err := os.OpenFile(filepath.Join(r.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(r.t, err)
	defer func() { _ = log.Close() }()
	// The namespaces end with the first process in them, and that with unshare,
	// which dies with this program.
	c := exec.Command("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
		"sh", filepath.Join(r.dir, "setup.sh"), r.dir)
	c.Stdout, c.Stderr, c.Env = log, log, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began, ended := make(chan error, 1), make(chan struct{})
	go runHere(c, began, ended)
	check(r.t, <-began)
	// What answers on the port may be another test's until it is this one's own.
	_, port, _ := net.SplitHostPort(r.Addr)
	listens := "Server listening on 127.0.0.1 port " + port
	for deadline := time.Now().Add(40 * time.Second); !strings.Contains(r.Log(), listens) || !r.answers(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-ended:
			return false
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("sshd does not answer on %s; it said:\n%s", r.Addr, r.Log())
		}
	}
	r.pid = childOf(c.Process.Pid)
	r.t.Cleanup(func() {
		_ = syscall.Kill(r.pid, syscall.SIGKILL)
		<-ended
		if r.t.Failed() {
			r.t.Logf("sshd said:\n%s", r.Log())
		}
	})
	return true
}

// runHere runs a command from a thread that lives as long: the kernel sends the
// signal of a parent's death when the thread dies that started the child.
func runHere(c *exec.Cmd, began chan<- error, ended chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.Start()
	began <- err
	if err == nil {
		_ = c.Wait()
	}
	close(ended)
}

func (r *Rig) answers() bool {
	conn, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	banner := make([]byte, 4)
	n, _ := conn.Read(banner)
	return string(banner[:n]) == "SSH-"
}

func childOf(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	child, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return child
}

// Log is what the server has said.
func (r *Rig) Log() string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "log"))
	return string(text)
}

// Path is where a path of the rig is found from outside its namespaces.
func (r *Rig) Path(path ...string) string {
	return filepath.Join(append([]string{fmt.Sprintf("/proc/%d/root", r.pid)}, path...)...)
}

// PID is the first process of the namespaces, for nsenter.
func (r *Rig) PID() string { return strconv.Itoa(r.pid) }

// Home is a user's home as it is found from outside.
func (r *Rig) Home(user string) string { return r.Path("/home", user) }

// Do runs a line of sh as root inside the namespaces.
func (r *Rig) Do(line string) string {
	r.t.Helper()
	c := exec.Command("nsenter", "-t", strconv.Itoa(r.pid), "-m", "-p", "sh", "-c", line)
	c.Dir = "/"
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s in the rig: %v: %s", line, err, out)
	}
	return string(out)
}

// Process is one that runs in the rig.
type Process struct {
	PID  int // outside
	User string
	Args string
}

// Processes are all that run in the rig as one of its users, the server's own
// process for a connection apart.
func (r *Rig) Processes() []Process {
	all, err := filepath.Glob("/proc/[0-9]*")
	check(r.t, err)
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", r.pid))
	check(r.t, err)
	var found []Process
	for _, dir := range all {
		p := Process{}
		p.PID, _ = strconv.Atoi(filepath.Base(dir))
		if space, _ := os.Readlink(dir + "/ns/pid"); space != own {
			continue
		}
		info, err := os.Stat(dir)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid < firstUID {
			continue
		}
		args, _ := os.ReadFile(dir + "/cmdline")
		p.Args = string(bytes.TrimSpace(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
		if p.Args != "" && !strings.HasPrefix(p.Args, "sshd: ") { // "" has ended
			p.User = r.user(int(info.Sys().(*syscall.Stat_t).Uid))
			found = append(found, p)
		}
	}
	return found
}

func (r *Rig) user(uid int) string {
	text, _ := os.ReadFile(r.Path("/etc/passwd"))
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == strconv.Itoa(uid) {
			return f[0]
		}
	}
	return ""
}

func (r *Rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	check(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(r.t, os.WriteFile(path, []byte(text), 0o600))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
