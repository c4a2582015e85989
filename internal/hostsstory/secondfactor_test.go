//go:build linux

package hostsstory

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testbed"
)

// guarded are hosts whose sshd wants two proofs of who logs in: a key, and another one
// that only a person has. Their user's own ssh keeps a connection to each.
type guarded struct {
	*testbed.Bed
	from   int // the first of them in the bed
	t      *testing.T
	config string // of the user's ssh
	second string // the key that only the user has
}

// newGuarded makes them; their names are vault1, vault2 and so on.
func newGuarded(t *testing.T, n int) *guarded {
	t.Helper()
	bed, from := someHosts(t, n)
	dir, err := os.MkdirTemp("", "dlwb-mux") // short: so is the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g := &guarded{bed, from, t, filepath.Join(dir, "config"), filepath.Join(dir, "second")}
	public := sshdtest.MakeKey(t, g.second)
	var config strings.Builder
	for i := range n {
		fmt.Fprintf(&config, "Host vault%d\n HostName %s\n", i+1, testbed.Host(from+i))
		line := fmt.Sprintf("echo '%s' >>/home/%s/.ssh/authorized_keys; echo 'AuthenticationMethods publickey,publickey' >/etc/ssh/sshd_config.d/two.conf; kill -HUP $(cat /run/sshd.pid)", public, testbed.User)
		if _, err := bed.Run(from+i, line); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(&config, "Host *\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n ControlMaster auto\n ControlPath %s/%%n\n ControlPersist yes\n",
		testbed.User, bed.KeyFile(), filepath.Join(filepath.Dir(bed.SSHConfig()), "known_hosts"), dir)
	write(t, g.config, config.String())
	t.Cleanup(func() {
		for i := range n {
			g.leave(i)
		}
	})
	return g
}

func (g *guarded) name(i int) string { return fmt.Sprintf("vault%d", i+1) }

// enter is the user, who logs in: ssh keeps the connection.
func (g *guarded) enter(i int) {
	g.t.Helper()
	until(g.t, time.Minute, "a login on "+g.name(i), func() bool { // sshd may be just reading its configuration
		c := exec.Command("ssh", "-F", g.config, "-i", g.second, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "ControlMaster=yes", "-fN", g.name(i))
		return c.Run() == nil
	})
}

// leave ends the connection.
func (g *guarded) leave(i int) {
	_ = exec.Command("ssh", "-F", g.config, "-O", "exit", g.name(i)).Run()
}

// counts how often something stands in the log of a host's sshd.
func (g *guarded) logins(i int, what string) int {
	g.t.Helper()
	out, err := g.Run(g.from+i, "grep -c '"+what+"' /var/log/sshd.log || true")
	if err != nil {
		g.t.Fatal(err)
	}
	n := 0
	_, _ = fmt.Sscan(out, &n)
	return n
}

// The whole life of a run on hosts that want a second factor, over the connections that
// the user's own ssh keeps. One of them ends in mid-run, for longer than a host may not be
// heard of: nothing is called lost, what to do is said, and all goes on when it is done.
func TestHostsThatWantASecondFactor(t *testing.T) {
	sample.Leave(t)
	g := newGuarded(t, 2)
	const lost = 30 * time.Second
	l := newLaptop(t, g.config, fmt.Sprintf("name: vaults\nprovider: hosts\nmachines: {hosts: ['ssh:vault[1-2]']}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\nlimits: {lost: %s}\n", lost), numbered)
	l.env = append(l.env, "DLWB_KEEPER=on")
	t.Cleanup(func() { l.do(time.Minute, "keeper", "stop") })
	until(t, time.Minute, "a key alone is not enough", func() bool {
		return exec.Command("ssh", "-F", g.config, "-o", "BatchMode=yes", g.name(1), "true").Run() != nil
	})
	if code, text := l.do(time.Minute, "plan"); code == 0 || !strings.Contains(text, "ssh -F "+g.config+" vault1 opens it again") || !strings.Contains(text, "Permission denied") {
		t.Errorf("plan without a connection: %d\n%s", code, text)
	}
	g.enter(0)
	g.enter(1)
	before := [2]int{g.logins(0, "Accepted publickey"), g.logins(1, "Accepted publickey")}
	if code, text := l.do(time.Minute, "plan"); code != 0 || !strings.Contains(text, "by your own ssh") {
		t.Errorf("plan: %d\n%s", code, text)
	}
	run := l.start("run", "--json")
	id := begins(t, l, run)
	if code, text := l.do(time.Minute, "exec", "vaults", "--", "hostname"); code != 0 || !strings.Contains(text, "vault2") || !strings.Contains(text, testbed.Name(g.from+1)) {
		t.Errorf("exec: %d\n%s", code, text)
	}
	g.tunnel(l)
	l.away(g, run, lost)
	for i := range 2 {
		write(t, filepath.Join(g.Home(g.from+i), "dlwb", "vaults", "code", "finish"), "")
	}
	if code := l.end(run, 2*time.Minute); code != 0 {
		t.Errorf("the run ended with %d", code)
	}
	for rank := range 2 {
		if _, err := os.Stat(filepath.Join(l.home, "state", "runs", id, fmt.Sprintf("rank-%d.log", rank))); err != nil {
			t.Error(err)
		}
	}
	again := l.start("run", "--detach", "--json") // and then the laptop is closed
	l.end(again, 2*time.Minute)
	g.leave(0)
	g.leave(1)
	if code, text := l.do(2*time.Minute, "down", "vaults"); code == 0 || !strings.Contains(text, "could not be looked at") || !strings.Contains(text, "opens it again") {
		t.Errorf("down without connections: %d\n%s", code, text)
	}
	g.enter(0)
	g.enter(1)
	if code, text := l.do(2*time.Minute, "down", "vaults"); code != 0 {
		t.Errorf("down: %d\n%s", code, text)
	}
	for i := range 2 {
		if after := g.logins(i, "Accepted publickey"); after > before[i]+4 { // each login of the user's is two lines
			t.Errorf("%s has had %d logins, and had %d", g.name(i), after, before[i])
		}
		leavesNothing(t, g.Home(g.from+i))
	}
}

// away is that the connection to the second host ends, and that the user opens it again.
func (l *laptop) away(g *guarded, run *said, lost time.Duration) {
	t := l.t
	t.Helper()
	tried := g.logins(1, "Partial publickey")
	g.leave(1)
	l.await(run, time.Minute, "that vault2 is away", func(e map[string]any) bool {
		return e["event"] == "node" && e["state"] == "unknown" && strings.Contains(fmt.Sprint(e["why"]), "vault2")
	})
	until(t, 2*time.Minute, "what to do is said", func() bool { return strings.Contains(run.text(), "opens it again") })
	time.Sleep(2 * lost) // nothing may come of it
	if text := run.text(); strings.Contains(text, `"event":"run_ended"`) {
		t.Fatalf("the run was ended:\n%s", text)
	}
	if n := g.logins(1, "Partial publickey") - tried; n > 4 {
		t.Errorf("%d logins were tried", n)
	}
	if code, text := l.do(time.Minute, "exec", "vaults", "1", "--", "true"); code == 0 || !strings.Contains(text, "opens it again") {
		t.Errorf("exec without a connection: %d\n%s", code, text)
	}
	g.enter(1)
	l.await(run, time.Minute, "that vault2 is back", func(e map[string]any) bool {
		return e["event"] == "node" && e["state"] == "alive" && fmt.Sprint(e["node"]) == "1"
	})
}

// tunnel reaches a port of the first host, which outlives the command that opened it.
func (g *guarded) tunnel(l *laptop) {
	t := g.t
	t.Helper()
	if _, err := g.Run(g.from, "setsid python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null &"); err != nil {
		t.Fatal(err)
	}
	code, text := l.do(time.Minute, "forward", "vaults", "8123", "--keep")
	_, at, found := strings.Cut(text, "127.0.0.1:")
	port, _, _ := strings.Cut(at, " ")
	if code != 0 || !found {
		t.Fatalf("forward: %d\n%s", code, text)
	}
	until(t, time.Minute, "the tunnel leads there", func() bool {
		r, err := http.Get("http://127.0.0.1:" + strings.TrimSpace(port))
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}
