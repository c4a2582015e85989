package pack

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// launched is what launch.py prints, writes and exits with, for a launcher that is a
// script of sh. There W is what starts a rank.
func launched(t *testing.T, script string, argv ...string) (out, ends string, code int) {
	t.Helper()
	c, at := launch(t, script, argv...)
	text, err := c.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(at, "ends"))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text), string(said), c.ProcessState.ExitCode()
}

func launch(t *testing.T, script string, argv ...string) (c *exec.Cmd, at string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	at = t.TempDir()
	node, err := json.Marshal(Node{Procs: []Proc{{Ranks: []int{4, 5}, Launcher: true, Env: []string{"RANK=9", "DLWB_RANK_BASE=4"}, Argv: append([]string{"sh", "agent.sh"}, argv...)}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"launch.py": Launcher, "node.json": string(node), "agent.sh": script} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c = exec.CommandContext(t.Context(), python, "-u", "launch.py", "node.json")
	c.Dir, c.Env = at, append(os.Environ(), "DLWB_ENDS="+filepath.Join(at, "ends"), "W=python3 -u "+at+"/launch.py --rank")
	return c, at
}

// Agents that deal out the ranks as they like start them again: a log is that of a place,
// and the last end of each is the one that counts.
func TestRanksThatAreStartedAgainEndAsTheirLastLife(t *testing.T) {
	const twice = `life() { LOCAL_RANK=0 $W sh -c "echo life $1" || exit 70; LOCAL_RANK=1 $W sh -c "exit $2"; }
life 1 7; life 2 $LAST; exit $LAST
`
	for last, want := range map[string]string{"0": "ranks: 4:0 5:0\n", "3": "ranks: 4:0 5:3\n"} {
		t.Setenv("LAST", last)
		out, ends, code := launched(t, twice)
		if ends != want || strconv.Itoa(code) != last {
			t.Errorf("%q, code %d\n%s", ends, code, out)
		}
		for _, line := range []string{"[rank4] life 1\n", "[rank4] life 2\n", "dlwb: rank 5 ended with 7 and is started again\n"} {
			if strings.Count(out, line) != 1 {
				t.Errorf("%q is not in\n%s", line, out)
			}
		}
	}
}

// A launcher ends what did not end in time by SIGKILL, and knows the process alone that it
// has started: what runs behind that would hold the GPU against its next life.
func TestARankEndsWithTheProcessThatStartedIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has the kernel do this")
	}
	out, _, code := launched(t, `LOCAL_RANK=0 $W sh -c 'trap "" TERM; echo $$ >pid.tmp; mv pid.tmp pid; while :; do sleep 0.05; done' &
until [ -e pid ]; do sleep 0.05; done
kill -KILL $!
n=0; while kill -0 "$(cat pid)" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$(cat pid)/status"; do sleep 0.05; n=$((n+1)); [ $n -lt 200 ] || { kill -KILL "$(cat pid)"; exit 9; }; done
`)
	if code != 0 {
		t.Errorf("the rank has outlived it: code %d\n%s", code, out)
	}
}

// A TERM that comes just when a rank was started reaches it.
func TestARankThatWasJustStartedIsToldToEnd(t *testing.T) {
	c, at := launch(t, "")
	const just = `import os, signal, subprocess, launch
start = subprocess.Popen
def started(*words, **more):
    p = start(*words, **more)
    os.kill(os.getpid(), signal.SIGTERM)
    return p
launch.subprocess.Popen = started
print(launch.run([(0, ["sh", "-c", "exec sleep 600"], dict(os.environ))]))
`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := exec.CommandContext(ctx, c.Path, "-c", just)
	p.Dir, p.WaitDelay = at, time.Second
	out, err := p.CombinedOutput()
	if err != nil || string(out) != "{0: 143}\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// The agent that opens the store may be in a container that comes much later.
func TestAnAgentIsStartedWhenTheOneOfNode0IsThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c, at := launch(t, `: >begun; LOCAL_RANK=0 $W true; LOCAL_RANK=1 $W true`, "--rdzv_endpoint="+address, "--rdzv_conf=is_host=false")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	early := filepath.Join(at, "begun")
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skip("somebody else has the port now: " + err.Error())
	}
	defer l.Close()
	if _, err := os.Stat(early); err == nil {
		t.Error("it has begun before anybody listens")
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	asked, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = asked.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(early); err != nil {
		t.Error(err)
	}
}
