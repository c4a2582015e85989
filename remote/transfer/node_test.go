//go:build unix

package transfer

import (
	"context"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote"
)

// openTest returns a node on a real sshd; it is closed with the test.
func openTest(t testing.TB, s *sshdtest.Server) *remote.Node {
	t.Helper()
	n := remote.Open(targetOf(s))
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func targetOf(s *sshdtest.Server) remote.Target {
	return remote.Target{Name: "node0", Addr: s.Addr, User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile}
}

// testContext ends before the test binary's own limit, so that what hangs is
// named.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
