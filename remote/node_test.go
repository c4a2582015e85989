//go:build unix

package remote

import (
	"context"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// openTest returns a node on a real sshd; it is closed with the test.
func openTest(t testing.TB, s *sshdtest.Server) *Node {
	t.Helper()
	n := Open(targetOf(s))
	forget := n.OnState(func(up bool, why string) { t.Logf("%s connected: %v %s", time.Now().Format("05.000"), up, why) })
	t.Cleanup(func() {
		_ = n.Close()
		forget() // nothing may be logged when the test is over
	})
	return n
}

func targetOf(s *sshdtest.Server) Target {
	return Target{Name: "node0", Addr: s.Addr, User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile}
}

// testContext ends before the test binary's own limit, so that what hangs is
// named.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestExecRunsInTheHomeOfTheNode(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	res, err := n.Exec(testContext(t), Cmd{Line: "pwd; echo $HOME; exit 3"})
	if err != nil {
		t.Fatal(err)
	}
	if want := s.Home + "\n" + s.Home + "\n"; string(res.Stdout) != want || res.ExitCode != 3 {
		t.Errorf("got exit %d and %q, want 3 and %q", res.ExitCode, res.Stdout, want)
	}
}

func TestSFTPBeginsInTheHomeOfTheNode(t *testing.T) {
	s := sshdtest.Start(t)
	c, err := openTest(t, s).SFTP(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if wd, err := c.Getwd(); err != nil || wd != s.Home {
		t.Errorf("working directory is %q (%v), want %q", wd, err, s.Home)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
