//go:build unix

package hosts

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/agentbin"
	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// An agent for keys, a file synchronizer: what the startup files of a shell leave in the
// background holds the output of each session, which OpenSSH then does not end.
func TestWhatALoginLeavesInTheBackgroundIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	shell, pids := w.path("shell"), w.path("pids")
	text := "#!/bin/sh\nsleep 3600 &\necho $! >>'" + pids + "'\nexec /bin/sh \"$@\"\n"
	if err := testprogram.Write(shell, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	w.start("busy", sshdtest.Shell(shell))
	t.Cleanup(func() {
		for _, pid := range strings.Fields(mustRead(t, pids)) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	t.Setenv("SSH_AUTH_SOCK", "")
	for _, name := range []string{"busy", "ssh:busy"} {
		calls := w.newCaller()
		defer calls.close()
		r, err := w.resolver()
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.host(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := calls.call(t.Context(), m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		words := newWords()
		got := c.command(t.Context(), agentbin.FindLine(nil, hostMode, words), 20*time.Second, answered(words, agentbin.None))
		if _, is := reported(got.out, words, agentbin.None); !is || got.err != nil {
			t.Errorf("%s: it said %q: %v", name, got.out, got.err)
		}
		if a, err := c.ask(t.Context(), hostclaim.Request{Do: hostclaim.Look}, 20*time.Second); err != nil {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if _, err := os.Stat(filepath.Clean(pids)); err != nil {
		t.Error("nothing was left in the background:", err)
	}
}

func TestALoginWhoseLimitsEndDlwbsProgramIsToldWhichOne(t *testing.T) {
	w := newWorld(t)
	shell := w.path("shell")
	if err := testprogram.Write(shell, []byte("#!/bin/sh\nulimit -v 200000\nexec /bin/sh \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.start("small", sshdtest.Shell(shell))
	want(t, w.check("small"), "NO small: a program of dlwb's does not run: programs get too little address space there (ulimit -v) | have that limit raised")
}
