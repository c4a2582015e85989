package boot

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// rotate is the least that a machine must have so that its host key can be
// changed.
const rotate = `write_files:
- path: /var/lib/dlwb/rotate
  permissions: '0755'
  content: |
    next=/etc/ssh/dlwb_next_ed25519_key
    case $1 in
    prepare)
        [ -f $next ] || ssh-keygen -q -t ed25519 -N '' -C '' -f $next </dev/null
        cat $next.pub
        ;;
    activate)
        mv -f $next /etc/ssh/ssh_host_ed25519_key
        mv -f $next.pub /etc/ssh/ssh_host_ed25519_key.pub
        systemctl restart ssh || systemctl restart sshd
        ;;
    esac
`

func TestAMachineShowsTheHostKeyOfItsUserDataAndLetsInTheKeyPair(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	m := launch(t, r, "")
	n := m.connect(t)
	if got := sh(t, n, `echo "$USER $(id -un) $(id -u) $(sudo -n id -u) $(cd && pwd) $HOME"`); got != "ubuntu ubuntu 1000 0 "+
		filepath.Join(r.opt.Dir, "nodes", m.instance.ID, "node0", "home")+" "+filepath.Join(r.opt.Dir, "nodes", m.instance.ID, "node0", "home") {
		t.Errorf("said %q", got)
	}
	if err := m.openAt(t, m.private).Connect(t.Context()); err != nil {
		t.Errorf("at the private address: %v", err)
	}
	stranger := describe(t, r, "")
	stranger.addr, stranger.hostKey = m.addr, m.hostKey
	var auth *remote.AuthError
	if err := stranger.open(t).Connect(t.Context()); !errors.As(err, &auth) {
		t.Errorf("another key: %v", err)
	}
	if time.Since(r.Answering(m.instance.ID)) > time.Minute {
		t.Error("nobody noted when it began to answer")
	}
}

func TestUserDataIsCarriedOutInTheOrderOfCloudInit(t *testing.T) {
	t.Parallel()
	m := launch(t, newRig(t, Options{}), `
bootcmd:
- echo "early $(id -u) $(ls /var/lib/dlwb)"
- [ sh, -c, 'echo "it''s early" >/var/lib/dlwb/early' ]
write_files:
- path: /var/lib/dlwb/settings
  content: |
    home=/home/ubuntu
- path: /var/lib/dlwb/settings
  encoding: b64
  append: true
  content: ZGlyPS92YXIvbGliL2Rsd2IK
- path: /somewhere/else
  content: never
runcmd:
- echo "late $(cat /var/lib/dlwb/early)"
- . /var/lib/dlwb/settings; ls -d "$home/.ssh"; ls -d "$dir"; echo done
packages: [nothing]
`)
	m.connect(t)
	id := m.instance.ID
	eventually(t, "runcmd is through", func() bool { return strings.Contains(m.rig.Console(id), "done\n") })
	dir, home := m.rig.Dir(id), filepath.Join(m.rig.opt.Dir, "nodes", id, "node0", "home")
	want := fmt.Sprintf("cloud-config: packages is not obeyed in this rig\nearly 0 \n"+
		"write_files: /somewhere/else is not a place that a machine of this rig has\n"+
		"late it's early\n%s/.ssh\n%s/lib\ndone\n", home, dir)
	if got := m.rig.Console(id); got != want {
		t.Errorf("the console is\n%s\nwant\n%s", got, want)
	}
	if _, err := os.Lstat("/somewhere"); err == nil {
		t.Error("a file was written outside")
	}
	if mode, err := os.Stat(filepath.Join(dir, "lib", "settings")); err != nil || mode.Mode().Perm() != 0o644 {
		t.Errorf("the settings: %v %v", mode, err)
	}
}

// The paths of a whole machine work in commands over ssh too, and mean the
// machine's own directories: also in a shell's argument, and by sudo.
func TestCommandsSeeTheMachinesOwnDirectories(t *testing.T) {
	t.Parallel()
	m := launch(t, newRig(t, Options{}), "write_files:\n- {path: /var/lib/dlwb/hello, content: 'echo \"hello $* from $(id -un)\"'}\n")
	n := m.connect(t)
	for line, want := range map[string]string{
		`sh /var/lib/dlwb/hello you and me`:                    "hello you and me from ubuntu",
		`sudo -n sh /var/lib/dlwb/hello`:                       "hello  from root",
		remote.AsRoot(`sh /var/lib/dlwb/hello`):                "hello  from root",
		`sh -c 'cat /var/lib/dlwb/hello' | wc -l | tr -d ' '`:  "0",
		`sudo -n -u ubuntu A='b  c' sh -c 'echo "$A $HOME"'`:   "b  c " + filepath.Join(m.rig.opt.Dir, "nodes", m.instance.ID, "node0", "home"),
		`getent passwd ubuntu | cut -d: -f3`:                   "1000",
		`sh -c 'echo $#' sh 'a b' "" '*' `:                     "3",
		`su ubuntu -c 'id -u'; runuser -u root -- sh -c id -u`: "1000\nuid=0(root) gid=0(root) groups=0(root)",
	} {
		if got := sh(t, n, line); got != want {
			t.Errorf("%s\nsaid %q, want %q", line, got, want)
		}
	}
}

func TestTheHostKeyIsRotatedAndOpenConnectionsStay(t *testing.T) {
	t.Parallel()
	m := launch(t, newRig(t, Options{}), rotate)
	n := m.connect(t)
	key, err := n.NewHostKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := n.NewHostKey(t.Context()); err != nil || again != key {
		t.Errorf("asked again: %q, %v; before: %q", again, err, key)
	}
	if err := m.open(t).Connect(t.Context()); err != nil {
		t.Errorf("before it is used: %v", err)
	}
	if err := n.UseNewHostKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	var changed *remote.HostKeyError
	if err := m.open(t).Connect(t.Context()); !errors.As(err, &changed) {
		t.Errorf("by the old key: %v", err)
	}
	m.hostKey = key
	if err := m.open(t).Connect(t.Context()); err != nil {
		t.Errorf("by the new key: %v", err)
	}
	if got := sh(t, n, "echo still here"); got != "still here" {
		t.Errorf("the first connection said %q", got)
	}
}

func TestAStoppedMachineRefusesAndComesBackElsewhereWithItsFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	m := launch(t, r, rotate+`runcmd:
- echo once >>/home/ubuntu/boots
bootcmd:
- for h in /home/*; do echo always >>$h/boots; done
`)
	n := m.connect(t)
	key, err := n.NewHostKey(t.Context())
	if err == nil {
		err = n.UseNewHostKey(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "runcmd is through", func() bool { return strings.HasSuffix(sh(t, n, "cat boots"), "once") })
	process := sh(t, n, `echo saved >file; setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!`)
	before := m.addr
	r.Halt(m.instance.ID, true)
	if _, err := os.Stat("/proc/" + process); err == nil {
		t.Error("a process outlived the power-off")
	}
	if !refused(m.addr) || !refused(m.private) || !r.Answering(m.instance.ID).IsZero() {
		t.Error("a stopped machine takes connections")
	}
	private := m.private
	m.hostKey = key
	if m.boot(t); m.addr == before || m.private != private {
		t.Errorf("the addresses were %s, %s and are %s, %s", before, private, m.addr, m.private)
	}
	if got := sh(t, m.connect(t), "cat file boots"); got != "saved\nalways\nonce\nalways" {
		t.Errorf("the files say %q", got)
	}
}

func TestAMachinePowersItselfOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for _, line := range []string{"sudo shutdown -h now", "sudo poweroff", "sudo systemctl poweroff"} {
		m := launch(t, r, "")
		n := m.connect(t)
		if got, err := n.Exec(t.Context(), remote.Cmd{Line: "poweroff"}); err == nil && got.ExitCode == 0 {
			t.Error("whoever logs in may power off")
		}
		sh(t, n, "sudo shutdown -h +1 soon; sudo shutdown -c; "+line)
		select {
		case <-m.off:
		case <-time.After(time.Minute):
			t.Errorf("%s: nobody was told", line)
		}
		r.Halt(m.instance.ID, false)
		r.Remove(m.instance.ID)
		for _, dir := range []string{r.Dir(m.instance.ID), filepath.Join(r.opt.Dir, "nodes", m.instance.ID)} {
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
		if !strings.Contains(r.Console(m.instance.ID), "powered off by itself") {
			t.Errorf("the console is lost: %q", r.Console(m.instance.ID))
		}
	}
}

func TestAServiceRunsAsRootIsStartedAgainAndComesUpAtTheNextBoot(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	m := launch(t, r, `write_files:
- path: /etc/systemd/system/dlwb-lease.service
  content: |
    [Service]
    ExecStart=/bin/sh /var/lib/dlwb/lease run
    Restart=always
    RestartSec=0.05s
- path: /var/lib/dlwb/lease
  content: |
    echo "$1 $(id -u)" >>/var/lib/dlwb/state
    echo $$ >/var/lib/dlwb/pid
    exec sleep 1000
runcmd:
- [systemctl, daemon-reload]
- systemctl enable --now dlwb-lease
`)
	n := m.connect(t)
	state := func(want string) {
		t.Helper()
		eventually(t, "the service says "+want, func() bool {
			got, err := n.Exec(t.Context(), remote.Cmd{Line: "sh -c 'cat /var/lib/dlwb/state'; systemctl is-active dlwb-lease"})
			return err == nil && string(got.Stdout) == want+"active\n"
		})
	}
	state("run 0\n")
	sh(t, n, `sh -c 'kill $(cat /var/lib/dlwb/pid)'`)
	state("run 0\nrun 0\n")
	r.Halt(m.instance.ID, true)
	n = m.boot(t).connect(t)
	state("run 0\nrun 0\nrun 0\n")
	sh(t, n, "sudo systemctl disable --now dlwb-lease; ! systemctl is-active dlwb-lease")
	eventually(t, "the service ends", func() bool {
		got, err := n.Exec(t.Context(), remote.Cmd{Line: `sh -c 'kill -0 $(cat /var/lib/dlwb/pid)'`})
		return err == nil && got.ExitCode != 0
	})
}

func TestAManInTheMiddleTakesConnectionsUntilHeIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	heard := make(chan string, 8)
	r.Intercept("", func(conn net.Conn) {
		_, _ = io.WriteString(conn, "SSH-2.0-middle\r\n")
		if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			heard <- line
		}
	})
	m := launch(t, r, "")
	eventually(t, "somebody answers", func() bool { return !refused(m.addr) })
	if err := m.open(t).Connect(t.Context()); err == nil {
		t.Error("nobody was in the middle")
	}
	select {
	case line := <-heard:
		if !strings.HasPrefix(line, "SSH-2.0-") {
			t.Errorf("the man in the middle heard %q", line)
		}
	case <-time.After(time.Minute):
		t.Error("the man in the middle heard nothing")
	}
	r.Intercept(m.instance.ID, nil)
	if err := m.open(t).Connect(t.Context()); err != nil {
		t.Errorf("when he was gone: %v", err)
	}
}

func TestAMachineAnswersAsLateAsItIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.AnswerAfter("", 700*time.Millisecond)
	began := time.Now()
	m := launch(t, r, "")
	n := m.connect(t)
	if took := time.Since(began); took < 700*time.Millisecond {
		t.Errorf("it answered after %v", took)
	}
	lost := make(chan string, 8)
	n.OnState(func(connected bool, why string) {
		if !connected {
			lost <- why
		}
	})
	r.Cut(m.instance.ID)
	select {
	case <-lost:
	case <-time.After(time.Minute):
		t.Error("the connection was not cut")
	}
	eventually(t, "it is reached again", func() bool { return n.Connect(t.Context()) == nil })
}

func TestTheMetadataTellsOfTheEndOfASpotInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	m := launch(t, r, "write_files:\n- {path: /var/lib/dlwb/settings, content: 'imds=http://169.254.169.254'}\n")
	settings := sh(t, m.connect(t), "sh -c 'cat /var/lib/dlwb/settings'")
	base, ok := strings.CutPrefix(settings, "imds=")
	if !ok || strings.Contains(base, "169.254") {
		t.Fatalf("the settings are %q", settings)
	}
	ask := func(method, path, name, value string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set(name, value)
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, strings.TrimSpace(string(body))
	}
	defer http.DefaultClient.CloseIdleConnections()
	const header, action = "X-aws-ec2-metadata-token", "/latest/meta-data/spot/instance-action"
	code, token := ask("PUT", "/latest/api/token", header+"-ttl-seconds", "60")
	if code != 200 {
		t.Fatalf("the token: %d %s", code, token)
	}
	if code, _ := ask("GET", action, header, "wrong"); code != 401 {
		t.Errorf("without the token: %d", code)
	}
	if code, _ := ask("GET", action, header, token); code != 404 {
		t.Errorf("without a notice: %d", code)
	}
	r.Notice(m.instance.ID, "terminate", time.Date(2026, 11, 21, 6, 2, 0, 0, time.UTC))
	if code, text := ask("GET", action, header, token); code != 200 || text != `{"action":"terminate","time":"2026-11-21T06:02:00Z"}` {
		t.Errorf("the notice: %d %s", code, text)
	}
	r.Notice(m.instance.ID, "", time.Time{})
	if code, _ := ask("GET", action, header, token); code != 404 {
		t.Errorf("a notice that was taken back: %d", code)
	}
}

// On a machine that is busy with other tests they may take longer now and then.
func TestFourMachinesAnswerWithinThreeSeconds(t *testing.T) {
	for tries := 1; ; tries++ {
		took := fourAnswer(t)
		t.Logf("4 machines answered within %v", took)
		if took <= 3*time.Second {
			return
		}
		if tries == 10 {
			t.Fatalf("they took %v, and no less before", took)
		}
	}
}

// fourAnswer is how long it takes until four machines that are started at once answer.
func fourAnswer(t *testing.T) time.Duration {
	r := newRig(t, Options{GPUs: func(string) int { return 1 }})
	began := time.Now()
	var answer sync.WaitGroup
	for range 4 {
		m := launch(t, r, rotate)
		n := m.open(t)
		answer.Go(func() {
			for t.Context().Err() == nil && time.Since(began) < time.Minute && n.Connect(t.Context()) != nil {
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	answer.Wait()
	took := time.Since(began)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return took
}

// What is said of a machine whose files are going comes too late: a file that was
// written then kept its directory from being removed.
func TestNothingIsWrittenOfAMachineThatIsOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	g := newGuest(r, "i-1", "")
	r.mu.Lock()
	r.guests[g.id] = g
	r.mu.Unlock()
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.poweredOff(g.id)
	r.mu.Lock()
	delete(r.guests, g.id)
	r.mu.Unlock()
	if found, err := os.ReadDir(g.dir); err != nil || len(found) > 0 {
		t.Errorf("written: %v, %v", found, err)
	}
}

func TestAMachineThatIsStillBootingCanBeRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for i := range 6 {
		m := launch(t, r, "bootcmd: ['sleep 600']\n")
		time.Sleep(time.Duration(i) * 40 * time.Millisecond)
		began := time.Now()
		r.Halt(m.instance.ID, false)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("removing it took %v", took)
		}
		if !refused(m.addr) {
			t.Error("it takes connections")
		}
	}
}

func TestAManInTheMiddleMayPassOnWhatHeHears(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	passed := make(chan struct{}, 8)
	m := launch(t, r, "")
	r.Intercept(m.instance.ID, func(conn net.Conn) {
		inner, err := r.Dial(m.instance.ID)
		if err != nil {
			return
		}
		defer inner.Close()
		passed <- struct{}{}
		go func() { _, _ = io.Copy(inner, conn); inner.Close() }()
		_, _ = io.Copy(conn, inner)
	})
	if got := sh(t, m.connect(t), "echo hello"); got != "hello" {
		t.Errorf("it said %q", got)
	}
	if len(passed) == 0 {
		t.Error("nobody was in the middle")
	}
}

// The paths of programs and homes are rewritten where they are words of their
// own, and nowhere else.
func TestUserDataIsRewrittenForItsMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	g := newGuest(r, "i-1", "")
	for text, want := range map[string]string{
		"homes='/home/* /root'":                                  "homes='NODE/home GUEST/root'",
		"cd /home/ubuntu/data":                                   "cd NODE/home/data",
		"ls ~/home/x $d/root /rooted":                            "ls ~/home/x $d/root /rooted",
		"/usr/sbin/shutdown -h now; /bin/sh -c x":                "NODE/bin/shutdown -h now; /bin/sh -c x",
		"cat /etc/ssh/sshd_config /etc/systemd/system/a.service": "cat GUEST/ssh/sshd_config GUEST/systemd/a.service",
		"case $0 in /var/lib/[d]lwb/lease) ;; esac":              "case $0 in /var/lib/[d]lwb/lease) ;; esac",
		"terminals=/dev/pts":                                     "terminals=GUEST/pts",
		"[ -d /run/systemd/system ]":                             "[ -d GUEST/systemd/runs ]",
	} {
		want = strings.NewReplacer("NODE", g.node, "GUEST", g.dir).Replace(want)
		got := g.rewrite(text)
		if got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", text, got, want)
		}
		if again := g.rewrite(got); !strings.Contains(text, "/home") && again != got {
			t.Errorf("twice: %s", again)
		}
	}
}

// A test that is killed must leave neither processes nor files.
func TestTheMachinesEndWhenTheirRigIsKilled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("NOT RUN: there is no /proc to look for the machine's process in")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rig := exec.Command(exe, rigCommand)
	rig.Stderr = os.Stderr
	out, err := rig.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	dir, id, _ := strings.Cut(lines.Text(), " ")
	var serving struct{ PID int }
	eventually(t, "the machine runs", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "nodes", id, "node0", "serving.json"))
		return err == nil && json.Unmarshal(text, &serving) == nil
	})
	if err := rig.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = rig.Wait()
	eventually(t, "its process and its files are gone", func() bool {
		_, err := os.Stat(dir)
		state, running := os.ReadFile(fmt.Sprintf("/proc/%d/stat", serving.PID))
		return os.IsNotExist(err) && (running != nil || strings.Contains(string(state), ") Z "))
	})
}
