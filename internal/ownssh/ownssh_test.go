//go:build unix

package ownssh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// desk is somebody's own ssh, for a host that is reached by a way which may be held.
type desk struct {
	*testing.T
	server *sshdtest.Server
	way    *sshdtest.Passage
	dir    string
	second string // a key that only a person has
}

// newDesk makes one; the host wants so many keys.
func newDesk(t *testing.T, keys int) *desk {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("NOT RUN: there is no OpenSSH client")
	}
	dir, err := os.MkdirTemp("", "own") // short: so is the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &desk{t, sshdtest.Start(t, sshdtest.Config("AuthenticationMethods "+strings.Join(slices.Repeat([]string{"publickey"}, keys), ","))), nil, dir, filepath.Join(dir, "second")}
	d.way = d.server.Passage()
	authorized := filepath.Join(filepath.Dir(d.server.KeyFile), "authorized_keys")
	text, err := os.ReadFile(authorized)
	if err != nil {
		t.Fatal(err)
	}
	d.write(authorized, string(text)+sshdtest.MakeKey(t, d.second)+"\n")
	host, port, _ := net.SplitHostPort(d.way.Addr)
	d.write(filepath.Join(dir, "known"), fmt.Sprintf("[%s]:%s %s\n", host, port, d.server.HostKey))
	d.write(filepath.Join(dir, "config"), fmt.Sprintf("Host vault\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n ControlPath %s/%%n\n",
		host, port, d.server.User, d.server.KeyFile, filepath.Join(dir, "known"), dir))
	t.Cleanup(d.leave)
	return d
}

func (d *desk) write(path, text string) {
	d.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

// at is the way to the host.
func (d *desk) at() Way { return Way{Name: "vault", Config: filepath.Join(d.dir, "config")} }

// enter is the person who logs in, and leave the one who ends that.
func (d *desk) enter() {
	d.Helper()
	out, err := exec.Command("ssh", "-F", d.at().Config, "-i", d.second, "-o", "BatchMode=yes", "-o", "ControlMaster=yes", "-o", "LogLevel=ERROR", "-fN", "vault").CombinedOutput()
	if err != nil {
		d.Fatalf("%v: %s", err, out)
	}
}

func (d *desk) leave() {
	_ = exec.Command("ssh", "-F", d.at().Config, "-O", "exit", "vault").Run()
}

// tryFor is how long a test waits for a word that does not come.
const tryFor = 5 * time.Second

// reached waits until the host is reached: on a busy machine a first word may take longer.
func (d *desk) reached() {
	d.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if err = d.at().Try(d.Context(), 0); err == nil {
			return
		}
	}
	d.Fatal(err)
}

// A connection that is dead is told from a machine that is: a new one beside it says more.
// What refuses that is not asked again and again; what the user opens anew is used.
func TestADeadConnectionIsToldFromADeadMachine(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	d.enter()
	d.reached()
	d.way.Hold() // as when the network has changed
	var err error
	var own *Error
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && (own == nil || own.Refused.IsZero()); { // one beside it may take longer, too
		err = d.at().Try(t.Context(), tryFor)
		_ = errors.As(err, &own)
	}
	if own == nil || own.Refused.IsZero() || !strings.Contains(own.Why, "is dead") || !strings.Contains(own.Next, "-O exit vault, then ssh ") {
		t.Fatalf("%#v", err)
	}
	opened := d.way.Opened()
	if err := d.at().Try(t.Context(), tryFor); err == nil || d.way.Opened() != opened {
		t.Errorf("%v, and it was tried %d times more", err, d.way.Opened()-opened)
	}
	d.leave()
	d.enter()
	d.reached()

	d.way.Hold()
	d.way.Away.Store(true)
	if err := d.at().Try(t.Context(), tryFor); !errors.As(err, &own) || !own.Refused.IsZero() {
		t.Errorf("a machine that is away: %v", err)
	}
}

// Where a key is enough, what is dead is passed by until the user has another connection.
func TestADeadConnectionIsPassedByWhereAKeyIsEnough(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	d.enter()
	d.reached()
	if slices.Contains(d.at().Argv("true"), "ControlPath=none") {
		t.Error("the connection that ssh keeps is not used")
	}
	d.way.Hold()
	d.reached()
	if !slices.Contains(d.at().Argv("true"), "ControlPath=none") {
		t.Error("the dead connection is used")
	}
	d.leave()
	d.enter()
	d.reached()
	if slices.Contains(d.at().Argv("true"), "ControlPath=none") {
		t.Error("the new connection is not used")
	}
}

func TestWhatIsGivenToSSHIsAName(t *testing.T) {
	for entry, want := range map[string]string{"ssh:gpu1": "gpu1", "ssh:ada@gpu1.lab": "ada@gpu1.lab"} {
		if name, own := Cut(entry); !own || name != want || !Plain(name) {
			t.Errorf("%s: %q, %v", entry, name, own)
		}
	}
	for _, entry := range []string{"gpu1", "ssh", "ssh:22", "ssh:", "ssh://gpu1"} {
		if _, own := Cut(entry); own {
			t.Errorf("%s is taken for one by ssh", entry)
		}
	}
	for _, name := range []string{"", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a`b`", "[::1]", "gpu1:22", "a\nb", "é"} {
		if Plain(name) {
			t.Errorf("%q is taken for a name", name)
		}
		if _, err := (Way{Name: name}).Run(t.Context(), "true", nil, nil, nil); err == nil {
			t.Errorf("ssh was started with %q", name)
		}
	}
}

// A command that is told can be pasted, wherever the configuration lies.
func TestTheCommandToLogInCanBePasted(t *testing.T) {
	w := Way{Name: "vault", Config: "/home/ada/my keys/config"}
	const first = "ssh -F '/home/ada/my keys/config' "
	if got := w.Login(); got != first+"vault" {
		t.Error(got)
	}
	if e := w.dead(&Error{Refused: time.Now()}, "").(*Error); !strings.HasPrefix(e.Next, first+"-O exit vault, then "+first) {
		t.Error(e.Next)
	}
}
