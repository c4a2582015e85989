package remote

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/remote/wire"
)

// TestTheAgentForArm64RunsACommand runs under qemu, for make test-arm64: it is
// another program, made of the same source.
func TestTheAgentForArm64RunsACommand(t *testing.T) {
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if os.Getenv("DLWB_RIGS") == "" || err != nil {
		if os.Getenv("DLWB_RIGS") != "" {
			t.Fatal(err)
		}
		t.Skip("NOT RUN: make test-arm64 runs it")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "agent"), "github.com/dlwb/dlwb/remote/agent/dlwb-agent")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "agent"))
	check(t, err)
	hash := fmt.Sprintf("%x", sha256.Sum256(text))[:24]
	agent := filepath.Join(dir, "agent-"+hash)
	check(t, os.Rename(filepath.Join(dir, "agent"), agent))
	t.Setenv("HOME", dir)

	m, err := transport.Local()(t.Context())
	check(t, err)
	defer m.Kill(ErrClosed)
	c, err := m.Start(t.Context(), fmt.Sprintf("%s %s check %s && exec %[1]s %[2]s serve one two", qemu, agent, hash))
	check(t, err)
	in := bufio.NewReader(c)
	if _, err := wire.AwaitHello(in, wire.Hello("one", "two")); err != nil {
		t.Fatalf("%v: %s", err, c.Said())
	}
	session, err := wire.Dial(commandConn{in, c})
	check(t, err)
	defer func() { _ = session.Close() }()
	s, err := session.Call(t.Context(), wire.Exec, wire.ExecRequest{Line: "echo over arm; exit 7"})
	check(t, err)
	var out strings.Builder
	var exit *wire.Exit
	for {
		var o wire.ExecOutput
		if err := s.Recv(&o); err != nil {
			if err != io.EOF {
				t.Error(err)
			}
			break
		}
		out.Write(o.Out)
		if o.Exit != nil {
			exit = o.Exit
		}
	}
	if out.String() != "over arm\n" || exit == nil || exit.Code != 7 {
		t.Errorf("%q, %+v", out.String(), exit)
	}
}
