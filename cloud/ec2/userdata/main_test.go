//go:build unix

package userdata

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/agentbuilt"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/wire"
)

// The machines of these tests mostly wait: many may do so at once.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "dlwb-agent-")
	if err != nil {
		panic(err)
	}
	agentDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// shells are those that a machine may have as its sh.
var shells = []string{"dash", "bash", "busybox"}

// inEachShell runs a test once per shell.
func inEachShell(t *testing.T, test func(t *testing.T, shell string)) {
	t.Helper()
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			test(t, shell)
		})
	}
}

// newKey is an ed25519 key: private and public in OpenSSH form.
func newKey(t testing.TB) (private, public string) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(key))
}

func goodBoot(t testing.TB) Boot {
	private, public := newKey(t)
	_, mine := newKey(t)
	return Boot{
		Life: "0123456789ab", Cluster: "charlm", AuthorizedKey: mine, HostKeyPrivate: private, HostKeyPublic: public,
		Lease: Lease{Bootstrap: 30 * time.Minute, Idle: time.Hour, Lifetime: 24 * time.Hour},
	}
}

// document is what cloud-init reads of user-data.
type document struct {
	DeleteKeys  bool              `yaml:"ssh_deletekeys"`
	PasswordOK  *bool             `yaml:"ssh_pwauth"`
	DisableRoot *bool             `yaml:"disable_root"`
	Keys        map[string]string `yaml:"ssh_keys"`
	Authorized  []string          `yaml:"ssh_authorized_keys"`
	Users       []any             `yaml:"users"`
	Boot        []string          `yaml:"bootcmd"`
}

func parse(t testing.TB, text []byte) document {
	t.Helper()
	var d document
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return d
}

// machine is what user-data makes of a computer, in a directory of its own:
// the boot's very program runs there, with other paths and with programs that
// only take note instead of those that would end this computer.
type machine struct {
	t        *testing.T
	root     string
	shell    string
	text     string
	settings string // added to those of the user-data
	env      []string
}

var wholePaths = regexp.MustCompile(`/var/lib/dlwb|/etc/ssh|/etc/systemd/system|/run/systemd/system|/dev/pts|/home\b|/root\b|/sys/bus`)

func newMachine(t *testing.T, shell string, b Boot) *machine {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Fatalf("this test needs %s: apt-get install -y dash bash busybox", shell)
	}
	root, err := os.MkdirTemp("", "dlwb-lease-")
	must(t, err)
	must(t, os.Chmod(root, 0o755)) // another user may have his home in it
	m := &machine{t: t, root: root, shell: filepath.Join(root, "bin/sh")}
	t.Cleanup(m.remove)
	for _, dir := range []string{"bin", "home/ubuntu", "dev/pts", "var/lib", "etc/ssh"} {
		must(t, os.MkdirAll(m.path(dir), 0o755))
	}
	must(t, os.Symlink(path, m.shell))
	for _, name := range []string{"shutdown", "poweroff", "systemctl", "service", "halt", "wall"} {
		m.program(name, `echo "`+name+` $*" >>`+m.path("calls"))
	}
	m.env = []string{"DLWB_TEST_MACHINE=" + root, "PATH=" + m.path("bin") + ":" + os.Getenv("PATH")}
	text, err := Render(b)
	must(t, err)
	m.text = parse(t, text).Boot[0]
	return m
}

// path is where something lies that the machine sees at /name.
func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

func (m *machine) program(name, text string) {
	m.t.Helper()
	must(m.t, testprogram.Write(m.path("bin/"+name), []byte("#!"+m.shell+"\n"+text+"\n"), 0o755))
}

// rewritten gives a text the machine's own paths and a quicker step.
func (m *machine) rewritten(text string) string {
	text = wholePaths.ReplaceAllStringFunc(text, m.path)
	text = strings.ReplaceAll(text, "every=10", "every=1")
	text = strings.ReplaceAll(text, "sleep 60", "sleep 1")
	return strings.ReplaceAll(text, "imds='http://169.254.169.254'", "imds='http://169.254.169.254'\n"+m.settings)
}

// boot runs what cloud-init runs at every boot.
func (m *machine) boot() {
	m.t.Helper()
	cmd := exec.Command(m.shell)
	cmd.Stdin, cmd.Env = strings.NewReader(m.rewritten(m.text)), m.env
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		m.t.Fatalf("the boot's program: %v: %s", err, out)
	}
}

// crash ends whatever the machine runs, without a warning.
func (m *machine) crash() {
	for range 3 {
		for _, pid := range m.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (m *machine) remove() {
	m.crash()
	if m.t.Failed() {
		m.t.Logf("calls: %s\nlog: %s\nused: %s", m.read("calls"), m.read("var/lib/dlwb/log"), m.read("var/lib/dlwb/used"))
	}
	_ = os.RemoveAll(m.root)
}

// processes are those of the machine that are alive.
func (m *machine) processes() []int {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(m.t, err)
	var found []int
	for _, dir := range dirs {
		environ, _ := os.ReadFile(dir + "/environ")
		if slices.Contains(strings.Split(string(environ), "\x00"), "DLWB_TEST_MACHINE="+m.root) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			found = append(found, pid)
		}
	}
	return found
}

func (m *machine) read(name string) string {
	text, _ := os.ReadFile(m.path(name))
	return string(text)
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	must(m.t, os.MkdirAll(filepath.Dir(m.path(name)), 0o755))
	must(m.t, os.WriteFile(m.path(name), []byte(text), 0o644))
}

// sh runs a line on the machine.
func (m *machine) sh(line string) (string, error) {
	cmd := exec.Command(m.shell, "-c", line)
	cmd.Env, cmd.Dir = m.env, m.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// launch starts a run as dlwb does, with dlwb's own agent.
func (m *machine) launch(id, program string) {
	m.t.Helper()
	agent, err := agent()
	must(m.t, err)
	for _, stub := range []string{"rank", "stop"} {
		m.write("home/ubuntu/.dlwb/bin/"+stub, "exec "+agent+" "+stub+` "$@"`+"\n")
	}
	cmd := exec.Command(agent, "serve", "A", "B")
	cmd.Env = append(slices.Clone(m.env), "HOME="+m.path("home/ubuntu"), "DLWB_CGROUP=no")
	in, err := cmd.StdinPipe()
	must(m.t, err)
	out, err := cmd.StdoutPipe()
	must(m.t, err)
	must(m.t, cmd.Start())
	defer func() { _, _ = in.Close(), cmd.Wait() }()
	from := bufio.NewReader(out)
	_, err = wire.AwaitHello(from, wire.Hello("A", "B"))
	must(m.t, err)
	session, err := wire.Dial(struct {
		io.Reader
		io.WriteCloser
	}{from, in})
	must(m.t, err)
	defer func() { _ = session.Close() }()
	call, err := session.Call(context.Background(), wire.Launch, wire.LaunchRequest{
		RunID: id, Node: "node0", Dir: ".", Grace: 2000, Patience: 1000, Segment: 64 << 20, Keep: 64,
		Procs: []wire.LaunchProc{{Name: "rank-0", Log: "rank-0.log", Env: [][]byte{[]byte("RANK=0")},
			Argv: [][]byte{[]byte("sh"), []byte("~/.dlwb/bin/rank"), []byte("-"), []byte("sh"), []byte("-c"), []byte(program)}}},
	})
	must(m.t, err)
	var answer wire.LaunchAnswer
	must(m.t, call.Recv(&answer))
}

// agentDir holds dlwb's agent for all machines: one that is written while others
// start programs is busy.
var agentDir string

// agent gives its path.
var agent = sync.OnceValues(func() (string, error) { return agentbuilt.Path(agentDir) })

// patience is for how long anything is waited for at least: other tests have the
// machine, too.
const patience = time.Minute

// within waits until something is so.
func within(t *testing.T, limit time.Duration, what string, so func() bool) {
	t.Helper()
	limit = max(limit, patience)
	for end := time.Now().Add(limit); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// off waits for the power-off and returns how long that took.
func (m *machine) off(limit time.Duration) time.Duration {
	m.t.Helper()
	began := time.Now()
	within(m.t, limit, "the machine shuts itself down", func() bool { return strings.Contains(m.read("calls"), "shutdown -h now") })
	return time.Since(began)
}

// state is a value of lease.state.
func (m *machine) state(key string) string {
	for _, field := range strings.Fields(m.read("var/lib/dlwb/lease.state")) {
		if k, v, _ := strings.Cut(field, "="); k == key {
			return v
		}
	}
	return ""
}

// stays checks that the machine is up for a while. What has happened when this test
// was late itself is no matter.
func (m *machine) stays(d time.Duration) {
	m.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !strings.Contains(m.read("calls"), "shutdown") {
			continue
		}
		if is, err := os.Stat(m.path("calls")); err == nil && is.ModTime().Before(end) {
			m.t.Fatalf("the machine was shut down: %s", m.read("var/lib/dlwb/log"))
		}
	}
}
