//go:build linux

package hostsstory

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testbed"
)

// numbered prints lines of all lengths until it is told to end, and keeps a copy.
const numbered = `import os, time
os.makedirs("outputs", exist_ok=True)
own = open("outputs/own.log", "w")
step = 0
while not os.path.exists("finish"):
    step += 1
    line = f"step {step} loss: {1 / step:.6f} " + "x" * (20000 if step % 40 == 0 else step % 300)
    print(line, flush=True)
    own.write(line + "\n")
    own.flush()
    time.sleep(0.01)
`

// wire is the network between the laptop and one host, while a run goes on there.
type wire struct {
	t    *testing.T
	bed  *testbed.Bed
	host int
	l    *laptop
	run  *said
	id   string
}

// rule adds rules of the host's firewall, for packets from the laptop and to it.
func (w *wire) rule(args string) {
	w.t.Helper()
	in := "iptables-legacy -w -I INPUT -i eth0 -p tcp " + args
	out := "iptables-legacy -w -I OUTPUT -o eth0 -p tcp " + strings.NewReplacer("--sport", "--dport", " -s ", " -d ").Replace(args)
	if text, err := w.bed.Run(w.host, in+" && "+out); err != nil {
		w.t.Fatal(err, text)
	}
}

func (w *wire) heal() {
	w.t.Helper()
	mustDo(w.t, w.bed, "heal", testbed.Name(w.host))
}

// ports are those of the laptop's connections to the host, as it has them now.
func (w *wire) ports() (all []string) {
	w.t.Helper()
	out, err := exec.Command("ss", "-tnH", "state", "established", "dst", testbed.Addr(w.host)).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 {
			all = append(all, f[2][strings.LastIndex(f[2], ":")+1:])
		}
	}
	if len(all) == 0 {
		w.t.Fatalf("the laptop has no connection to %s", testbed.Addr(w.host))
	}
	return all
}

func (w *wire) log() string { return filepath.Join(w.l.home, "state", "runs", w.id, "rank-0.log") }

// comes waits until as much has come as was printed by now, with a few long lines since
// the last fault.
func (w *wire) comes(limit time.Duration) {
	w.t.Helper()
	time.Sleep(3 * time.Second)
	own, err := os.Stat(filepath.Join(w.bed.Home(w.host), "dlwb", w.name(), "code", "outputs", "own.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	until(w.t, limit, "what is printed comes", func() bool {
		here, err := os.Stat(w.log())
		return err == nil && here.Size() >= own.Size()
	})
	w.t.Logf("what was printed came %.1f s later", time.Since(began).Seconds())
}

func (w *wire) name() string { return fmt.Sprintf("wire%d", w.host) }

// told waits until dlwb says something of the host.
func (w *wire) told(limit time.Duration, state string) {
	w.t.Helper()
	w.l.await(w.run, limit, "that the node is "+state, func(e map[string]any) bool { return e["event"] == "node" && e["state"] == state })
}

// A run goes on whatever the network between it and the laptop does. Nothing that it
// prints is lost, nothing comes twice, and what it wrote comes home. That the node is
// not heard of is told, on the screen too.
func TestARunOutlivesWhatNetworksDo(t *testing.T) {
	sample.Leave(t)
	asleep := time.Duration(sample.Of(t, 40, 400, "seconds of sleep")) * time.Second
	stories := []struct {
		name string
		tell func(w *wire)
	}{
		{"the laptop sleeps", func(w *wire) {
			pid := w.run.cmd.Process.Pid
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			mustDo(w.t, w.bed, "cut", testbed.Name(w.host))
			time.Sleep(asleep)
			// sshd has given the connection up meanwhile: what comes of it is answered by a reset.
			if out, err := w.bed.Run(w.host, "pkill -9 -u "+testbed.User+" -x sshd"); err != nil {
				w.t.Fatal(err, out)
			}
			w.heal()
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}},
		{"a NAT forgets the connection", func(w *wire) {
			ports := w.ports()
			for _, p := range ports {
				w.rule("--sport " + p + " -j DROP")
			}
			w.comes(time.Minute) // by another connection
			for _, p := range ports {
				w.rule("--sport " + p + " -j REJECT --reject-with tcp-reset")
			}
		}},
		{"5 % of the packets are lost", func(w *wire) {
			w.rule("-m statistic --mode random --probability 0.05 -j DROP")
			time.Sleep(20 * time.Second)
			w.comes(time.Minute)
		}},
		{"20 % of the packets are lost", func(w *wire) {
			w.rule("-m statistic --mode random --probability 0.2 -j DROP")
			time.Sleep(30 * time.Second)
			w.comes(3 * time.Minute)
			w.heal()
		}},
		{"large packets are lost", func(w *wire) {
			// A packet of the kernel's may be many on the wire: here each is one.
			if out, err := exec.Command("ip", "link", "set", "tbbr0", "gso_max_segs", "1").CombinedOutput(); err != nil {
				w.t.Fatal(err, string(out))
			}
			if out, err := w.bed.Run(w.host, "ip link set eth0 gso_max_segs 1"); err != nil {
				w.t.Fatal(err, out)
			}
			w.rule("-m length --length 1301:65535 -j DROP")
			w.comes(2 * time.Minute)
			counted, err := w.bed.Run(w.host, "iptables-legacy -w -nvxL OUTPUT")
			if err != nil || !regexp.MustCompile(`(?m)^ *[1-9][0-9]* .*DROP.*length`).MatchString(counted) {
				w.t.Errorf("no large packet was dropped, %v:\n%s", err, counted)
			}
		}},
		{"the laptop has another address", func(w *wire) {
			other := fmt.Sprintf("10.77.254.%d", w.host+1)
			for _, args := range [][]string{{"addr", "add", other + "/32", "dev", "tbbr0"}, {"route", "add", testbed.Host(w.host) + "/32", "dev", "tbbr0", "src", other}} {
				if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
					w.t.Fatal(err, string(out))
				}
			}
			w.rule("-s 10.77.255.1 -j DROP")
		}},
		{"the network is away, and the screen says so", func(w *wire) {
			screen := w.l.terminal("attach", w.name())
			screen.see(time.Minute, "step ", "loss")
			mustDo(w.t, w.bed, "cut", testbed.Name(w.host))
			w.told(time.Minute, "unknown")
			screen.see(time.Minute, "unknown since")
			w.heal()
			screen.seeNot(time.Minute, "unknown since")
		}},
	}
	bed, from := someHosts(t, len(stories))
	for i, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := trainOver(t, bed, from+i)
			s.tell(w)
			w.comes(90 * time.Second)
			w.ends()
		})
	}
}

// trainOver begins a run on a host.
func trainOver(t *testing.T, bed *testbed.Bed, host int) *wire {
	w := &wire{t: t, bed: bed, host: host}
	w.l = newLaptop(t, bed.SSHConfig(), fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n", w.name(), testbed.Name(host)), numbered)
	w.run = w.l.start("run", "--json")
	w.id = fmt.Sprint(w.l.await(w.run, time.Minute, "the start of the run", called("run_started"))["run"])
	until(t, time.Minute, "something is printed", func() bool {
		text, _ := os.ReadFile(w.log())
		return bytes.Contains(text, []byte("step 50 "))
	})
	return w
}

// ends ends the training, and holds what came of it against what the host has.
func (w *wire) ends() {
	w.t.Helper()
	code := filepath.Join(w.bed.Home(w.host), "dlwb", w.name(), "code")
	write(w.t, filepath.Join(code, "finish"), "")
	if code := w.l.end(w.run, 3*time.Minute); code != 0 {
		w.t.Errorf("exit code %d", code)
	}
	own, err := os.ReadFile(filepath.Join(code, "outputs", "own.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range []string{w.log(), filepath.Join(w.l.home, "state", "runs", w.id, "results", "outputs", "own.log")} {
		here, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(here, own) {
			at := 0
			for at < min(len(here), len(own)) && here[at] == own[at] {
				at++
			}
			w.t.Errorf("%s has %d bytes of %d and is another from byte %d on, %v", path, len(here), len(own), at, err)
		}
	}
	if code, text := w.l.do(2*time.Minute, "down", w.name()); code != 0 {
		w.t.Errorf("down: %d %s", code, text)
	}
	if _, err := os.Stat(filepath.Join(w.bed.Home(w.host), "dlwb")); !os.IsNotExist(err) {
		w.t.Errorf("something is left on the host: %v", err)
	}
}

// screen is dlwb in a terminal.
type screen struct {
	t      *testing.T
	socket string
}

// terminal opens dlwb in a terminal of 120×36.
func (l *laptop) terminal(args ...string) *screen {
	l.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		l.t.Skip("NOT RUN: there is no tmux")
	}
	s := &screen{l.t, filepath.Join(l.home, "tmux")}
	line := []string{"new-session", "-d", "-s", "j", "-x", "120", "-y", "36", "-c", filepath.Join(l.home, "code"), "env"}
	for _, kv := range l.env[len(os.Environ()):] {
		if !strings.HasPrefix(kv, "TERM=") {
			line = append(line, kv)
		}
	}
	s.tmux(append(append(line, l.exe), args...)...)
	l.t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (s *screen) shows() string { return s.tmux("capture-pane", "-p", "-J", "-t", "j") }

// see waits until the screen has all of the texts.
func (s *screen) see(limit time.Duration, texts ...string) {
	s.t.Helper()
	until(s.t, limit, fmt.Sprintf("the screen says %q", texts), func() bool {
		shown := s.shows()
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return false
			}
		}
		return true
	})
}

// seeNot waits until the screen does not have a text any more.
func (s *screen) seeNot(limit time.Duration, text string) {
	s.t.Helper()
	until(s.t, limit, fmt.Sprintf("the screen does not say %q any more", text), func() bool { return !strings.Contains(s.shows(), text) })
}
