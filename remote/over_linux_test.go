package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/podrig"
	"github.com/dlwb/dlwb/internal/slurmrig"
	"github.com/dlwb/dlwb/internal/testport"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/transport"
)

// The same life over each way to a machine that is not ssh.

func TestALifeOverAProcessOfThisMachine(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	lifeOver(t, transport.Local())
}

func TestALifeInAContainer(t *testing.T) {
	name, _ := podrig.Start(t)
	lifeOver(t, transport.Podman(name))
}

func TestALifeOnANodeOfASlurmJob(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	lifeOver(t, transport.Slurm(slurmrig.Start(t, 2), "n2"))
}

// What the agent itself does not mind ends what it starts: a signal that is ignored
// when a program begins stays ignored.
func TestCommandsBeginWithEverySignalAsItIsByItself(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	n := OpenOver("node0", transport.Local())
	t.Cleanup(func() { _ = n.Close() })
	for signal, number := range map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "PIPE": 13, "TERM": 15} {
		res, err := n.Exec(loginContext(t), Cmd{Line: "kill -" + signal + " $$; echo survived"})
		if err != nil || res.ExitCode != 128+number {
			t.Errorf("%s: exit code %d, %q, %v", signal, res.ExitCode, res.Stdout, err)
		}
	}
}

func TestAnOlderDlwbFindsItsScriptsNotWholeAndARunOfItsKeepsThem(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	bin := filepath.Join(home, ".dlwb/bin")
	lifeOK(t, os.MkdirAll(bin, 0o700))
	for _, name := range []string{"version", "rank", "common", "supervise"} {
		lifeOK(t, testprogram.Write(filepath.Join(bin, name), []byte("of an older dlwb\n"), 0o700))
	}
	n := OpenOver("node0", transport.Local())
	t.Cleanup(func() { _ = n.Close() })
	lifeOK(t, n.Install(loginContext(t)))
	for name, want := range map[string]bool{"common": true, "supervise": true, "rank": false} {
		text, err := os.ReadFile(filepath.Join(bin, name))
		if is := string(text) == "of an older dlwb\n"; err != nil || is != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(bin, "version")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the older dlwb takes what is there for its own: %v", err)
	}
}

// lifeTrain is what is trained: it says what it does, serves a port, and ends
// when it is told.
const lifeTrain = `echo step 1 of $1 rank $RANK
if [ -x /usr/bin/python3 ]; then
    /usr/bin/python3 -c "
import os, socket
s = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))
while True:
    c = s.accept()[0]
    while data := c.recv(100):
        c.sendall(data)" 2>/dev/null &
else # a container that has no network but loopback
    nc -ll -p "$PORT" -e /bin/cat 2>/dev/null &
fi
until [ -e go ]; do sleep 0.05; done
i=0
while [ $i -lt 5000 ]; do i=$((i+1)); echo "step $i loss 0.$i"; done
mkdir -p out/deep && echo "rank $RANK" >out/deep/rank-$RANK && head -c 3000000 /dev/zero >out/weights
exit 3
`

// lifeOver goes through what a cluster's life asks of a node, up apart: sync,
// launch, watch, logs, telemetry, dial, pull, stop, and nothing left.
func lifeOver(t *testing.T, by transport.Opener) {
	n := OpenOver("node0", by)
	t.Cleanup(func() { _ = n.Close() })
	ctx := loginContext(t)
	servesWell(t, n)
	lifeSync(t, n)
	lifeOK(t, n.Install(ctx))
	t.Cleanup(func() { // where the test failed in the middle
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		for _, run := range []string{"r1", "r2"} {
			if t.Failed() {
				_, _ = n.StopRun(ctx, run, time.Second, "the test failed")
			}
		}
	})
	port := testport.Free(t)
	lifeOK(t, n.Launch(ctx, lifeRun("r1", port, "sh", "train.sh", "epochs")))
	lifeLog(t, n, func(log []byte) bool { return bytes.Contains(log, []byte("step 1 of epochs rank 0\n")) })
	frames(t, n, job.NewPace(), func(string) bool { return true })
	lifeDial(t, n, port)

	lifeCut(t, n)
	if s, err := n.RunState(ctx, "r1"); err != nil || s.State != RunRunning {
		t.Errorf("after a cut: %+v, %v", s, err)
	}
	watched := make(chan []Status, 1)
	go func() {
		var seen []Status
		_ = n.WatchRun(ctx, "r1", 0, func(_ int64, s Status) error { seen = append(seen, s); return nil })
		watched <- seen
	}()
	if res, err := n.Exec(ctx, Cmd{Line: "touch code/go"}); err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	lifeEnd(t, n, <-watched)
	lifePull(t, n)

	lifeOK(t, n.Launch(ctx, lifeRun("r2", port, "sh", "-c", "trap \"\" TERM; setsid sh -c \"trap : TERM; while :; do sleep 1; done\" & while :; do sleep 1; done")))
	if left, err := n.StopRun(ctx, "r2", time.Second, "enough"); err != nil || left != 0 {
		t.Errorf("stop left %d, %v", left, err)
	}
	lifeOK(t, n.Uninstall(ctx, "code"))
	res, err := n.Exec(ctx, Cmd{Line: `ls -A "$HOME"; ls -d /tmp/dlwb-$(id -u) /var/tmp/dlwb-$(id -u) /dev/shm/dlwb-$(id -u) 2>/dev/null`})
	if err != nil || len(res.Stdout) > 0 {
		t.Errorf("left there: %q, %v", res.Stdout, err)
	}
}

func lifeOK(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lifeRun(id string, port int, argv ...string) Launch {
	return Launch{RunID: id, Dir: "code", Grace: time.Second, Patience: 300 * time.Millisecond, Env: []string{fmt.Sprintf("PORT=%d", port)},
		Procs: []Proc{{Name: "rank-0", Ranks: []int{0}, Env: []string{"RANK=0"}, Argv: argv, Log: "rank-0.log"}}}
}

// lifeSync brings the code there, and finds nothing to do the second time.
func lifeSync(t *testing.T, n *Node) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"train.sh": lifeTrain, "sub/data.bin": strings.Repeat("\x00\xff\n", 200_000), "sub/odd name": "x"}
	for name, text := range files {
		lifeOK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		lifeOK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for round, want := range []int{len(files), 0} {
		sent, err := Moving["sync"](loginContext(t), n, dir)
		if err != nil || sent != want {
			t.Fatalf("sync %d: %d files, %v", round, sent, err)
		}
	}
}

// lifeLog reads the log from its beginning until there is enough of it.
func lifeLog(t *testing.T, n *Node, enough func([]byte) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(loginContext(t), 60*time.Second)
	defer cancel()
	var log []byte
	err := n.FollowLog(ctx, "r1", "rank-0.log", 0, func(off int64, p []byte) error {
		if off != int64(len(log)) {
			return fmt.Errorf("bytes from %d come after %d", off, len(log))
		}
		if log = append(log, p...); enough(log) {
			cancel()
		}
		return nil
	}, nil)
	if !errors.Is(err, context.Canceled) || !enough(log) {
		t.Fatalf("the log ended with %v after %d bytes: %.200q … %q", err, len(log), log, log[max(0, len(log)-200):])
	}
}

// lifeDial reaches a port of the run.
func lifeDial(t *testing.T, n *Node, port int) {
	t.Helper()
	conn, err := n.DialContext(loginContext(t), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	for end := time.Now().Add(60 * time.Second); err != nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		conn, err = n.DialContext(loginContext(t), "tcp", fmt.Sprintf("127.0.0.1:%d", port)) // it may not listen yet
	}
	lifeOK(t, err)
	defer func() { _ = conn.Close() }()
	sent := []byte("one\x00two\xff\n")
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%q came back as %q: %v", sent, got, err)
	}
}

// lifeCut ends the way to the machine, as when a laptop goes.
func lifeCut(t *testing.T, n *Node) {
	t.Helper()
	l, err := n.live(loginContext(t))
	lifeOK(t, err)
	l.kill(errors.New("cut by the test"))
	<-l.dead
}

// lifeEnd holds how the run has ended, and its log, byte for byte.
func lifeEnd(t *testing.T, n *Node, seen []Status) {
	t.Helper()
	s, err := n.RunState(loginContext(t), "r1")
	if err != nil || s.State != RunEnded || s.Exit == nil || s.Exit.Code != 3 || len(seen) == 0 || seen[len(seen)-1].Kind != Ended {
		t.Errorf("state %+v, %v, seen %+v", s, err, seen)
	}
	want := "step 1 of epochs rank 0\n"
	for i := range 5000 {
		want += fmt.Sprintf("step %d loss 0.%[1]d\n", i+1)
	}
	lifeLog(t, n, func(log []byte) bool { return string(log) == want })
}

// lifePull brings the results here.
func lifePull(t *testing.T, n *Node) {
	t.Helper()
	dest := t.TempDir()
	came, err := Moving["pull"](loginContext(t), n, dest)
	text, _ := os.ReadFile(filepath.Join(dest, "out/deep/rank-0"))
	weights, _ := os.Stat(filepath.Join(dest, "out/weights"))
	if err != nil || came != 2 || string(text) != "rank 0\n" || weights == nil || weights.Size() != 3_000_000 {
		t.Errorf("%d files, %v, %q", came, err, text)
	}
}

func loginContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// servesWell holds that commands run as POSIX sh, with their input, and that
// exactly what they say comes back.
func servesWell(t *testing.T, n *Node) {
	t.Helper()
	res, err := n.Exec(loginContext(t), Cmd{Line: `a=1; read b; printf '%s\n' "$a$b" '$x\'; echo no >&2; exit 7`, Stdin: strings.NewReader("2\n")})
	if err != nil || res.ExitCode != 7 || string(res.Stdout) != "12\n$x\\\n" || string(res.Stderr) != "no\n" {
		t.Errorf("exit code %d, stdout %.200q, stderr %.200q: %v", res.ExitCode, res.Stdout, res.Stderr, err)
	}
}
