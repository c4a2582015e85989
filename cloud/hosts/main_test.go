//go:build unix

package hosts

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/hosts/options"
	_ "github.com/dlwb/dlwb/internal/agentbuilt"
	"github.com/dlwb/dlwb/internal/sshdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a laptop with its ssh files, and hosts that are real sshd.
type world struct {
	*testing.T
	dir string
	*Provider
	asked []string // the fingerprints that a person was asked about
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir()}
	w.Provider = New(Options{Dir: filepath.Join(w.dir, "state"), Config: filepath.Join(w.dir, "config")})
	w.write("config", "")
	w.write("known_hosts", "")
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) add(name, text string) {
	w.Helper()
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		w.Fatal(err)
	}
	w.write(name, string(b)+text)
}

// host tells the ssh configuration of a server.
func (w *world) host(alias string, s *sshdtest.Server, more ...string) {
	w.Helper()
	host, port, _ := net.SplitHostPort(s.Addr)
	w.add("config", fmt.Sprintf("Host %s\n  HostName %s\n  Port %s\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile none\n  %s\n",
		alias, host, port, s.User, s.KeyFile, w.path("known_hosts"), strings.Join(more, "\n  ")))
}

// known tells known_hosts of a server.
func (w *world) known(s *sshdtest.Server) {
	w.Helper()
	w.add("known_hosts", knownName(s)+" "+s.HostKey+"\n")
}

func knownName(s *sshdtest.Server) string {
	host, port, _ := net.SplitHostPort(s.Addr)
	return "[" + host + "]:" + port
}

// start starts a host that the laptop knows well.
func (w *world) start(alias string, opts ...sshdtest.Option) *sshdtest.Server {
	w.Helper()
	s := sshdtest.Start(w.T, opts...)
	w.host(alias, s)
	w.known(s)
	return s
}

// confirm gives the answer that a person would.
func (w *world) confirm(answer bool) {
	w.options.Confirm = func(_, fingerprint string) bool {
		w.asked = append(w.asked, fingerprint)
		return answer
	}
}

func spec(hosts ...string) cloud.Spec {
	return cloud.Spec{Name: "demo", Count: len(hosts), Own: &options.Machines{Hosts: hosts}}
}

func (w *world) life(id string) cloud.Life {
	w.Helper()
	l := cloud.Life{Name: "demo", ID: id, Began: time.Unix(1_700_000_000, 0), Dir: w.path("life-" + id)}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		w.Fatal(err)
	}
	return l
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), 60*time.Second)
	w.Cleanup(cancel)
	return ctx
}

// check returns the findings as lines: "ok WHAT: TEXT | NEXT".
func (w *world) check(hosts ...string) string {
	w.Helper()
	return lines(w.Check(w.ctx(), spec(hosts...)))
}

func lines(p cloud.Preflight) string {
	var b strings.Builder
	for _, f := range p.Findings {
		ok := "ok"
		if !f.OK {
			ok = "NO"
		}
		fmt.Fprintf(&b, "%s %s: %s | %s\n", ok, f.What, f.Text, f.Next)
	}
	return b.String()
}

func (w *world) up(life string, hosts ...string) (cloud.Cluster, error) {
	w.Helper()
	return w.Up(w.ctx(), w.life(life), spec(hosts...), nil)
}

func (w *world) mustUp(life string, hosts ...string) cloud.Cluster {
	w.Helper()
	c, err := w.up(life, hosts...)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) down(life string) (cloud.Receipt, error) {
	w.Helper()
	return w.Down(w.ctx(), w.life(life), nil)
}

// want fails the test when a text lacks one of several.
func want(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, part := range wanted {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// tree is every file and directory below a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("find", dir, "-mindepth", "1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func fingerprint(t *testing.T, line string) string {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return ssh.FingerprintSHA256(key)
}

func tool(t *testing.T, env, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}
