//go:build unix

package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/sshdtest"
)

// A host that wants two keys, of which dlwb knows one: what it can't do by itself it does
// over the connection that the user's own ssh keeps, from the look to the removal.
func TestAHostIsReachedByTheUsersOwnSSH(t *testing.T) {
	w := newWorld(t)
	s := sshdtest.Start(t, sshdtest.Config("AuthenticationMethods publickey,publickey"))
	authorized := filepath.Join(filepath.Dir(s.KeyFile), "authorized_keys")
	text, err := os.ReadFile(authorized)
	if err != nil {
		t.Fatal(err)
	}
	second := sshdtest.MakeKey(t, w.path("second"))
	if err := os.WriteFile(authorized, append(text, second+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := os.MkdirTemp("", "mux") // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(socket) })
	w.host("vault", s, "ControlPath "+socket+"/%n", "ControlMaster auto")
	w.known(s)
	t.Setenv("SSH_AUTH_SOCK", "")

	want(t, w.check("ssh:vault"), "NO ssh:vault: your own ssh keeps no connection to vault, and a login without you is refused", "| ssh -F "+w.path("config")+" vault opens it again")
	tried := strings.Count(s.Log(), "Partial publickey")
	want(t, w.check("ssh:vault"), "NO ssh:vault")
	if n := strings.Count(s.Log(), "Partial publickey"); tried != 1 || n != 1 {
		t.Errorf("a login was tried %d times, and then %d", tried, n)
	}
	enter := func() {
		tool(t, "X=", "ssh", "-F", w.path("config"), "-i", w.path("second"), "-o", "BatchMode=yes", "-o", "ControlMaster=yes", "-o", "LogLevel=ERROR", "-fN", "vault")
	}
	enter()
	t.Cleanup(func() { tool(t, "X=", "ssh", "-F", w.path("config"), "-O", "exit", "vault") })
	want(t, w.check("ssh:vault"), "ok ssh:vault: reachable in", "as "+s.User+" by your own ssh")
	want(t, w.check("ssh:vault", "ssh:"+s.User+"@vault"), "NO")

	before := tree(t, s.Home)
	c := w.mustUp("a", "ssh:vault")
	n := c.Nodes[0]
	if n.Way != cloud.ByOwnSSH || n.Called != "vault" || n.ID != "ssh:vault" || n.User != s.User || n.HostKey != s.HostKey || n.PeerHost != "127.0.0.1" || n.PeerPort == 22 {
		t.Errorf("%+v", n)
	}
	if statuses, err := w.Probe(t.Context(), c); err != nil || statuses[0].State != cloud.Alive {
		t.Errorf("%v, %v", statuses, err)
	}
	leave := func() { tool(t, "X=", "ssh", "-F", w.path("config"), "-O", "exit", "vault") }
	leave()
	if r, err := w.down("a"); err == nil || r.Proven() || !strings.Contains(r.Resources[0].Proof, "vault opens it again") {
		t.Errorf("without a connection: %v %+v", err, r)
	}
	enter()
	if r, err := w.down("a"); err != nil || !r.Proven() {
		t.Errorf("%v %+v", err, r)
	}
	if after := tree(t, s.Home); after != before {
		t.Errorf("left:\n%s", after)
	}
	if n := strings.Count(s.Log(), "Partial publickey"); n != 4 { // two are the user's
		t.Errorf("%d logins", n)
	}
}

func TestTheDoorOfAHostIsFoundAmongWhatItPrints(t *testing.T) {
	d := readDoor("Welcome!\ndlwb-user ada\ndlwb-sshd 10.0.0.5 2222\ndlwb-key SSH-2.0 x\ndlwb-key ssh-rsa AAAA1\ndlwb-key ssh-ed25519 AAAA2\ndlwb-key ssh-ed25519 AAAA3\n")
	if d != (door{User: "ada", Addr: "10.0.0.5", Port: 2222, HostKey: "ssh-ed25519 AAAA2"}) {
		t.Errorf("%+v", d)
	}
	// What no other machine could be told: a name that means something to ssh, an address that
	// is none, or one on an interface of that host's.
	for _, said := range []string{"dlwb-user CORP\\ada\n", "dlwb-user ada@corp\n", "dlwb-user -oProxyCommand=x\n"} {
		if d := readDoor(said); d != (door{}) {
			t.Errorf("%q: %+v", said, d)
		}
	}
	for _, at := range []string{"fe80::1%eth0", "$(x)", "-x", "10.0.0.5,x"} {
		if d := readDoor("dlwb-user ada\ndlwb-sshd " + at + " 22\n"); d != (door{User: "ada"}) {
			t.Errorf("%q: %+v", at, d)
		}
	}
	if d := readDoor("dlwb-user ada\ndlwb-sshd\n"); d != (door{User: "ada"}) {
		t.Errorf("%+v", d)
	}
}
