//go:build unix

// Package otheruser runs programs as a second user of this machine, who must not
// get at what is the first one's.
package otheruser

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// UID is a user that no system has.
const UID = 61234

const limit = time.Minute

// Run runs a program as the other user, with nothing but a PATH, and gives what
// it said and its exit code. Only root can: as any other user the test is left
// out.
func Run(t testing.TB, name string, args ...string) (said string, code int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can run programs as another user: run the tests as root to hold what another user gets")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: UID, Gid: UID}}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s as user %d: %v", name, UID, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s %s did not end:\n%s", name, strings.Join(args, " "), out.String())
	}
	return out.String(), c.ProcessState.ExitCode()
}
