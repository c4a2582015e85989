//go:build unix

package hosts

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/sshdtest"
)

// gate is an sshd through which OpenSSH's own ssh leads to others, and the line for it.
func (w *world) gate() (command string) {
	w.Helper()
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		w.Fatal(err)
	}
	w.start("gate")
	return "ProxyCommand " + ssh + " -F " + w.path("config") + " -W %h:%p gate"
}

// commanded starts a host that is reached by a ProxyCommand.
func (w *world) commanded(alias, command string) *sshdtest.Server {
	w.Helper()
	s := sshdtest.Start(w.T)
	w.host(alias, s, command)
	w.known(s)
	return s
}

func TestAClusterLivesBehindAProxyCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.commanded("gpu1", w.gate())
	want(t, w.check("gpu1"), "ok gpu1: reachable in ", " by its ProxyCommand")
	c := w.mustUp("1", "gpu1")
	if n := c.Nodes[0]; n.Way != "proxy-command" || n.Addr != s.Addr || len(n.Jumps) > 0 {
		t.Errorf("the node is %+v", n)
	}
	statuses, err := w.Probe(w.ctx(), c)
	if err != nil || statuses[0].State != cloud.Alive {
		t.Errorf("probe: %v %v", statuses, err)
	}
	greets(w, c)
	receipt, err := w.down("1")
	if err != nil || !receipt.Proven() {
		t.Errorf("down: %v, %+v", err, receipt)
	}
}

// greets fails the test when Reach does not lead to an sshd.
func greets(w *world, c cloud.Cluster) {
	w.Helper()
	conn, err := w.Reach(w.ctx(), c, c.Nodes[0])
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	greeting := make([]byte, 8)
	if _, err := io.ReadFull(conn, greeting); err != nil || string(greeting) != "SSH-2.0-" {
		w.Errorf("it says %q: %v", greeting, err)
	}
}

func TestTheFirstJumpHostMayBeBehindAProxyCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commanded("bastion", w.gate())
	s := sshdtest.Start(t)
	w.host("gpu1", s, "ProxyJump bastion")
	w.known(s)
	c := w.mustUp("1", "gpu1")
	if n := c.Nodes[0]; n.Way != "proxy-command" || len(n.Jumps) > 0 {
		t.Errorf("the node is %+v", n)
	}
	greets(w, c)
	if receipt, err := w.down("1"); err != nil || !receipt.Proven() {
		t.Errorf("down: %v, %+v", err, receipt)
	}
}

func TestAProxyCommandThatFailsTellsWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commanded("gpu1", `ProxyCommand sh -c 'echo "instance %n of %h:%p for %r is gone" >&2; exit 3'`)
	host, port, user := "127.0.0.1", "", ""
	for _, l := range strings.Split(tool(t, "", "cat", w.path("config")), "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(l), " ")
		switch key {
		case "HostName":
			host = value
		case "Port":
			port = value
		case "User":
			user = value
		}
	}
	want(t, w.check("gpu1"), "NO gpu1: ", "its ProxyCommand: instance gpu1 of "+net.JoinHostPort(host, port)+" for "+user+" is gone", "ssh gpu1")
}

// A profile names hosts, and a profile may come from somebody else.
func TestANameBringsNoCodeIntoAProxyCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("config", "Host *\n  ProxyCommand sh -c 'true %h %n %r'\n")
	for _, name := range []string{"$(touch x)", "`id`", "a;b", "-oops", "a|b", "x'y", "u$(id)@host"} {
		if _, err := w.up("1", name); err == nil || !strings.Contains(err.Error(), "a shell reads it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Others' machines are not reached through it, and that is told, not passed over.
func TestAProxyCommandLeadsToNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("config", "Host bastion\n  ProxyCommand true\n")
	_, err := w.Jumps(w.ctx(), "bastion", false)
	_, one := w.One(w.ctx(), "bastion")
	for _, err := range []error{err, one} {
		if err == nil || !strings.Contains(err.Error(), "ProxyCommand in the ssh configuration is not supported here") {
			t.Errorf("%v", err)
		}
	}
}
