package remote

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/loginrig"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testprogram"
)

func TestAHomeThatCannotHoldTheAgentIsLeftForAnotherPlace(t *testing.T) {
	t.Parallel()
	homes := map[string]string{"noexec": "noexec", "readonly": "ro", "full": "size=100k"}
	var users []loginrig.User
	for name, options := range homes {
		users = append(users, loginrig.User{Name: name, Home: options})
	}
	r := loginrig.Start(t, loginrig.Options{Setup: "mount -t tmpfs -o mode=1777 tmpfs /var/tmp"}, users...)
	for name := range homes {
		t.Run(name, func(t *testing.T) {
			n := loginNode(t, r, name)
			servesWell(t, n)
			if found := agentsIn(t, r, name); len(found) != 1 || !strings.Contains(found[0], "/var/tmp/dlwb-") {
				t.Errorf("agents: %v", found)
			}
			m := loginNode(t, r, name) // it is found there
			servesWell(t, m)
			if err := m.Uninstall(loginContext(t)); err != nil {
				t.Error(err)
			}
			_ = m.Close()
			leavesNothing(t, r, n)
			if found := agentsIn(t, r, name); len(found) > 0 {
				t.Errorf("after uninstall: %v", found)
			}
		})
	}
}

func TestWhereNoPlaceCanHoldTheAgentThatIsSaidOfEach(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"noexec": "noexec", "full": "size=100k"} {
		t.Run(name, func(t *testing.T) {
			setup := ""
			for _, dir := range []string{"/var/tmp", "/dev/shm", "/tmp"} {
				setup += fmt.Sprintf("mount -t tmpfs -o mode=1777,%s tmpfs %s\n", options, dir)
			}
			r := loginrig.Start(t, loginrig.Options{Setup: setup}, loginrig.User{Name: name, Home: options})
			n := loginNode(t, r, name)
			mustSay(t, fails(t, n), name, "~/.dlwb/bin", "/var/tmp/dlwb-UID", "/dev/shm/dlwb-UID", "/tmp/dlwb-UID",
				map[string]string{"noexec": "not executed there", "full": "No space left"}[name])
			leavesNothing(t, r, n)
			if found := agentsIn(t, r, name); len(found) > 0 {
				t.Errorf("left there: %v", found)
			}
		})
	}
}

func TestAServerThatAllowsLittleIsEnough(t *testing.T) {
	t.Parallel()
	least := []string{"MaxSessions 1", "AllowTcpForwarding no", "PermitTTY no", "X11Forwarding no", "AllowAgentForwarding no"}
	r := loginrig.Start(t, loginrig.Options{NoSFTP: true}, loginrig.User{Name: "least", Config: least})
	n := loginNode(t, r, "least")
	var all sync.WaitGroup
	for range 12 { // at a time, over the one session
		all.Go(func() { servesWell(t, n) })
	}
	all.Wait()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { _ = l.Close() }()
	conn, err := n.DialContext(loginContext(t), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	leavesNothing(t, r, n)
}

// between is a wire between dlwb and a server, which sees what is sent.
type between struct {
	net.Listener
	rate   int          // bytes a second; 0: as fast as it goes
	sent   atomic.Int64 // to the server
	at     int64        // when so many were sent
	do     func()       // this is done, once
	doOnce sync.Once
	mu     sync.Mutex
	open   []net.Conn
}

// cut ends what goes over the wire now.
func (b *between) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.open {
		_ = c.Close()
	}
}

// wireTo puts b before a server; b is not changed any more.
func wireTo(t *testing.T, addr string, b *between) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	b.Listener = l
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", addr)
			if err != nil {
				_ = c.Close()
				continue
			}
			b.mu.Lock()
			b.open = append(b.open, c, s)
			b.mu.Unlock()
			go b.carry(c, s, false)
			go b.carry(s, c, true)
		}
	}()
}

func (b *between) carry(from, to net.Conn, back bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if b.rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(b.rate))
		}
		if !back && b.do != nil && b.sent.Add(int64(n)) >= b.at {
			b.doOnce.Do(b.do)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func TestTheAgentComesOverASlowLink(t *testing.T) {
	t.Parallel()
	r := loginrig.Start(t, loginrig.Options{}, loginrig.User{Name: "slow"})
	w := &between{rate: 20 << 20}
	wireTo(t, r.Addr, w)
	n := Open(Target{Name: "slow", Addr: w.Addr().String(), User: "slow", HostKey: r.HostKey, KeyFile: r.KeyFile})
	t.Cleanup(func() { _ = n.Close() })
	servesWell(t, n)
	leavesNothing(t, r, n)
}

func TestAnAgentsFileThatWasAlteredIsReplaced(t *testing.T) {
	t.Parallel()
	flip := func(at int) func(path string) error {
		return func(path string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[at*len(text)/100] ^= 0x55
			return testprogram.Write(path, text, 0o700)
		}
	}
	cut := func(at int64) func(path string) error {
		return func(path string) error { return os.Truncate(path, at) }
	}
	alterations := map[string]func(path string) error{
		"empty":   cut(0),
		"half":    cut(2_000_000),
		"short":   cut(100),
		"head":    flip(0),
		"quarter": flip(25),
		"middle":  flip(50),
		"end":     flip(99),
		"script":  func(path string) error { return testprogram.Write(path, []byte("echo hello; exit 0\n"), 0o700) },
		"mode":    func(path string) error { return os.Chmod(path, 0o600) },
	}
	var users []loginrig.User
	for name := range alterations {
		users = append(users, loginrig.User{Name: name})
	}
	r := loginrig.Start(t, loginrig.Options{}, users...)
	for name, alter := range alterations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := loginNode(t, r, name)
			servesWell(t, n)
			path := agentsIn(t, r, name)[0]
			right, err := os.ReadFile(path)
			check(t, err)
			_ = n.Close()
			leavesNothing(t, r, n)
			// Who looks at a process in /proc holds its program for a moment longer than
			// the process lives.
			waitUntil(t, "nobody executes it any more", func() bool {
				err = alter(path)
				return !errors.Is(err, syscall.ETXTBSY)
			})
			check(t, err)
			n = loginNode(t, r, name)
			servesWell(t, n)
			if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, right) {
				t.Errorf("it is as it was altered: %v", err)
			}
			leavesNothing(t, r, n)
		})
	}
}

func TestManyMayBringTheAgentAtATime(t *testing.T) {
	t.Parallel()
	r := loginrig.Start(t, loginrig.Options{}, loginrig.User{Name: "many"})
	nodes := make([]*Node, 6)
	var all sync.WaitGroup
	for i := range nodes {
		nodes[i] = loginNode(t, r, "many")
		all.Go(func() { servesWell(t, nodes[i]) })
	}
	all.Wait()
	for _, n := range nodes {
		_ = n.Close()
	}
	leavesNothing(t, r, nodes[0])
	if found := agentsIn(t, r, "many"); len(found) != 1 {
		t.Errorf("agents: %v", found)
	}
}

// signalAll sends a signal to every process of a user.
func signalAll(r *loginrig.Rig, user string, sig syscall.Signal) (reached int) {
	for _, p := range r.Processes() {
		if p.User == user && syscall.Kill(p.PID, sig) == nil {
			reached++
		}
	}
	return reached
}

// What was killed leaves half a file, which whoever comes later removes when an hour
// has passed.
func TestAnAgentThatIsBrokenOffWhileItComesIsBroughtAgain(t *testing.T) {
	t.Parallel()
	var users []loginrig.User
	for i := range sample.Of(t, 4, 7, "moments") {
		users = append(users, loginrig.User{Name: fmt.Sprintf("u%d", i)})
	}
	for name, o := range map[string]loginrig.Options{"killed": {NoSFTP: true}, "killed, with sftp": {}, "cut": {NoSFTP: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := loginrig.Start(t, o, users...)
			var hit atomic.Int64
			t.Run("at", func(t *testing.T) {
				for i, u := range users {
					t.Run(u.Name, func(t *testing.T) {
						t.Parallel()
						w := &between{rate: 2 << 20} // else all of it is with sshd before anything runs
						w.at, w.do = int64(2500+i*1_200_000/(len(users)-1)), func() { hit.Add(int64(signalAll(r, u.Name, syscall.SIGKILL))) }
						if name == "cut" {
							w.do = func() { hit.Add(1); w.cut() }
						}
						wireTo(t, r.Addr, w)
						breaksOff(t, r, u.Name, w)
					})
				}
			})
			if hit.Load() <= int64(len(users)/2) && name != "killed, with sftp" { // sshd itself takes the file
				t.Errorf("only %d times something was broken off", hit.Load())
			}
		})
	}
}

func breaksOff(t *testing.T, r *loginrig.Rig, user string, w *between) {
	t.Helper()
	n := Open(Target{Name: user, Addr: w.Addr().String(), User: user, HostKey: r.HostKey, KeyFile: r.KeyFile})
	t.Cleanup(func() { _ = n.Close() })
	var lost *LostError
	res, err := n.Exec(loginContext(t), Cmd{Line: "echo yes"})
	if err == nil && string(res.Stdout) != "yes\n" || err != nil && !errors.As(err, &lost) {
		t.Errorf("%q, %v", res.Stdout, err)
	}
	servesWell(t, n)
	r.Do("find /home/" + user + "/.dlwb/bin -name '.agent*' -exec touch -d '2 hours ago' {} +")
	check(t, n.Install(loginContext(t)))
	leavesNothing(t, r, n)
}

func TestAnAgentThatIsKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	r := loginrig.Start(t, loginrig.Options{}, loginrig.User{Name: "dies"})
	n := loginNode(t, r, "dies")
	for range 5 {
		servesWell(t, n)
		began := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			_, err := n.Exec(loginContext(t), Cmd{Line: "echo began; exec sleep 600", Quiet: NoLimit, Stdout: funcWriter(func() { close(began) })})
			ended <- err
		}()
		<-began
		if signalAll(r, "dies", syscall.SIGKILL) == 0 {
			t.Error("nothing was killed")
		}
		var lost *LostError
		if err := <-ended; err != nil && !errors.As(err, &lost) {
			t.Errorf("a command whose agent was killed: %v", err)
		}
		signalAll(r, "dies", syscall.SIGKILL) // the one that was just becoming sleep: whose it was, could not be told then
	}
	leavesNothing(t, r, n)
}

type funcWriter func()

func (f funcWriter) Write(p []byte) (int, error) { f(); return len(p), nil }

func TestAnAgentThatStandsStillIsGivenUp(t *testing.T) {
	t.Parallel()
	r := loginrig.Start(t, loginrig.Options{}, loginrig.User{Name: "still"})
	n := loginNode(t, r, "still")
	n.bounds.Every, n.bounds.Shell = 200*time.Millisecond, 10*time.Second
	servesWell(t, n)
	signalAll(r, "still", syscall.SIGSTOP)
	_, err := n.Exec(loginContext(t), Cmd{Line: "echo yes", Quiet: NoLimit})
	if err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("a command for an agent that stands still: %v", err)
	}
	servesWell(t, n) // by another agent
	signalAll(r, "still", syscall.SIGCONT)
	leavesNothing(t, r, n)
}

func TestAgentsThatNobodyUsesGoAndOthersStay(t *testing.T) {
	t.Parallel()
	r := loginrig.Start(t, loginrig.Options{}, loginrig.User{Name: "versions"})
	n := loginNode(t, r, "versions")
	servesWell(t, n)
	own := filepath.Base(agentsIn(t, r, "versions")[0])
	bin := "/home/versions/.dlwb/bin/"
	r.Do("cd " + bin + " && cp /bin/sleep agent-used && cp /bin/sleep agent-unused && cp /bin/sleep agent-young && echo half >.agent-half && echo half >.agent-younghalf && " +
		"touch -d '30 days ago' agent-used agent-unused && touch -d '2 hours ago' .agent-half && chown versions: * .agent*")
	used := exec.Command("nsenter", "-t", r.PID(), "-m", "-p", "setpriv", "--reuid", "62000", "--regid", "62000", "--clear-groups", bin+"agent-used", "600")
	check(t, used.Start())
	defer func() { _, _ = used.Process.Kill(), used.Wait() }()
	for !slices.ContainsFunc(r.Processes(), func(p loginrig.Process) bool { return strings.Contains(p.Args, "agent-used") }) {
		time.Sleep(10 * time.Millisecond)
	}
	check(t, n.Install(loginContext(t)))
	var left []string
	entries, err := os.ReadDir(filepath.Join(r.Home("versions"), ".dlwb/bin"))
	check(t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), "agent-") {
			left = append(left, e.Name())
		}
	}
	want := []string{".agent-younghalf", own, "." + own + ".whole", "agent-used", "agent-young"}
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}
