//go:build unix

package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/sshdtest"
)

func TestExecTellsHowACommandEnded(t *testing.T) {
	t.Parallel()
	n := openTest(t, sshdtest.Start(t))
	for _, c := range []struct {
		line   string
		code   int
		signal string
	}{
		{"true", 0, ""},
		{"exit 3", 3, ""},
		{"exit 255", 255, ""},
		{"kill -KILL $$", 137, "KILL"},
		{"kill -TERM $$", 143, "TERM"},
		{"exec /does/not/exist", 127, ""},
	} {
		res, err := n.Exec(testContext(t), Cmd{Line: c.line})
		if err != nil || res.ExitCode != c.code || res.Signal != c.signal {
			t.Errorf("%s: exit %d %q (%v), want %d %q", c.line, res.ExitCode, res.Signal, err, c.code, c.signal)
		}
	}
}

func TestExecCarriesMuchInputAndOutput(t *testing.T) {
	t.Parallel()
	n := openTest(t, sshdtest.Start(t))
	input := make([]byte, 3<<20)
	_, _ = rand.Read(input)
	var out, errs bytes.Buffer
	res, err := n.Exec(testContext(t), Cmd{
		Line: "tee /dev/stderr", Stdin: bytes.NewReader(input), Stdout: &out, Stderr: &errs,
	})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("exit %d, %v", res.ExitCode, err)
	}
	if !bytes.Equal(out.Bytes(), input) || !bytes.Equal(errs.Bytes(), input) {
		t.Errorf("%d and %d bytes came back, want the %d that were sent", out.Len(), errs.Len(), len(input))
	}
}

func TestExecCapturesAMebibyteAtMost(t *testing.T) {
	t.Parallel()
	n := openTest(t, sshdtest.Start(t))
	res, err := n.Exec(testContext(t), Cmd{Line: "echo first; head -c 3000000 /dev/zero; echo no >&2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Stdout) != 1<<20 || !res.Truncated || !strings.HasPrefix(string(res.Stdout), "first\n") {
		t.Errorf("%d bytes, truncated %v: want the first 1048576", len(res.Stdout), res.Truncated)
	}
	if string(res.Stderr) != "no\n" {
		t.Errorf("stderr is %q", res.Stderr)
	}
}

func TestExecOfACommandThatLeavesItsInputUnread(t *testing.T) {
	t.Parallel()
	n := openTest(t, sshdtest.Start(t))
	res, err := n.Exec(testContext(t), Cmd{Line: "exit 0", Stdin: bytes.NewReader(make([]byte, 8<<20))})
	if err != nil || res.ExitCode != 0 {
		t.Errorf("exit %d, %v; want 0", res.ExitCode, err)
	}
}

func TestCancelledCommandIsEndedByTerm(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Plain())
	n := openTest(t, s)
	ctx, cancel := context.WithCancel(testContext(t))
	line := "trap 'echo got TERM >$HOME/said; exit' TERM; echo $$; while :; do sleep 0.05; done"
	_, err := n.Exec(ctx, Cmd{Line: line, Stdout: signalWriter(cancel)})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	waitUntil(t, "the command has seen TERM", func() bool {
		return fileSays(s.Home+"/said", "got TERM\n")
	})
}

func TestCancelledCommandThatIgnoresTermIsKilled(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	ctx, cancel := context.WithCancel(testContext(t))
	var pid firstLine
	pid.then = func() {
		s.Freeze() // nothing is heard of the command's end
		cancel()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := n.Exec(ctx, Cmd{Line: "trap '' TERM; echo $$; while :; do sleep 0.05; done", Stdout: &pid})
		ended <- err
	}()
	// It does not wait for the command, which has 3 s from TERM to KILL.
	if err := next(t, ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	s.Thaw()
	waitUntil(t, "the command is gone", func() bool { return !alive(t, pid.text) })
}

func TestLostConnectionIsNoExitCode(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	res, err := n.Exec(testContext(t), Cmd{Line: "echo x; exec sleep 30", Stdout: signalWriter(func() { s.KillConnections() })})
	var lost *LostError
	if !errors.As(err, &lost) || res.ExitCode == 0 {
		t.Errorf("got exit %d and %v, want a LostError", res.ExitCode, err)
	}
}

func TestQuotedWordsComeBackFromEveryShell(t *testing.T) {
	t.Parallel()
	words := []string{"", "a b", "it's", `"`, "$HOME", "`id`", "~", "=ls", "*", "\\", "a\nb", "-n", "é", "!!", "#", ";"}
	for _, shell := range []string{"dash", "bash", "busybox sh"} {
		n := openTest(t, sshdtest.Start(t, sshdtest.Shell(shell)))
		got := mustExec(t, n, shellword.Join(append([]string{"printf", `%s\0`}, words...)...))
		if want := strings.Join(words, "\x00") + "\x00"; got != want {
			t.Errorf("%s: got %q, want %q", shell, got, want)
		}
	}
}
