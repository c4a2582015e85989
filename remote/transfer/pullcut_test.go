//go:build linux

package transfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/sshconn"
)

// entropy is text that can't be compressed.
func entropy(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return string(b)
}

func TestAPullGoesOnOverAnotherConnection(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"a": entropy(50_000), "b": entropy(200_000), "big": entropy(20 << 20), "c": "c"})
	makeOld(t, n.code())
	for _, cut := range []int64{30_000, 150_000, 9 << 20, 19 << 20} {
		n.cut.Store(cut)
		res := pullTest(t, n, dest, "out")
		if res.Files != 4 || dirText(t, filepath.Join(dest, "out")) != dirText(t, n.code("out")) {
			t.Errorf("cut after %d: %v, skipped %q", cut, res, res.Skipped)
		}
		if n.cut.Load() != 0 {
			t.Errorf("nothing was cut after %d of %d bytes", cut, n.said.Load())
		}
		// What had come of the large file did not come again.
		if most := int64(24 << 20); n.said.Load() > most {
			t.Errorf("cut after %d: the agent said %d bytes, at most %d are needed", cut, n.said.Load(), most)
		}
		nothingLeft(t, dest)
		n.said.Store(0)
		check(t, os.RemoveAll(filepath.Join(dest, "out")))
	}
}

func TestAPullThatBrokeOffGoesOnWithTheNextCall(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"a": entropy(50_000), "big": entropy(20 << 20), "c": "c"})
	makeOld(t, n.code())
	n.cut.Store(12 << 20)
	n.stay = true
	res, err := pullBy(t.Context(), n, n.code(), []string{"out"}, dest, PullRules{})
	if err == nil || res.Files != 1 || exists(filepath.Join(dest, "out/big")) {
		t.Fatalf("%v, %v", res, err)
	}
	n.stay = false
	n.said.Store(0)
	res = pullTest(t, n, dest, "out")
	if res.Files != 2 || res.Unchanged != 1 || dirText(t, filepath.Join(dest, "out")) != dirText(t, n.code("out")) {
		t.Errorf("after that: %v", res)
	}
	if n.said.Load() > 10<<20 {
		t.Errorf("the agent said %d bytes for the rest of 20 MB, of which 11 had come", n.said.Load())
	}
	nothingLeft(t, dest)
}

func TestWhatCameOfALargeFileIsNotUsedWhenItIsNotWhatIsThere(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"big": entropy(6 << 20)})
	makeOld(t, n.code())
	info, err := os.Stat(n.code("out/big"))
	check(t, err)
	part := (&puller{}).partOf(wire.Thing{Name: "out/big", Size: info.Size(), MTime: wire.Time{Sec: info.ModTime().Unix()}})
	for _, half := range []string{strings.Repeat("x", 1<<20), strings.Repeat("y", 6<<20), strings.Repeat("z", 7<<20)} {
		writeFiles(t, dest, map[string]string{part: half})
		res := pullTest(t, n, dest, "out")
		if res.Files != 1 || dirText(t, filepath.Join(dest, "out")) != dirText(t, n.code("out")) {
			t.Errorf("%v, skipped %q", res, res.Skipped)
		}
		nothingLeft(t, dest)
		check(t, os.RemoveAll(filepath.Join(dest, "out")))
	}
}

func TestANodeThatNeverAnsweredIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	n := newAgentNode(t)
	_, err := n.live()
	check(t, err)
	n.stay = true
	n.close()
	_, err = pullBy(t.Context(), n, n.code(), []string{"out"}, t.TempDir(), PullRules{})
	if away := new(remote.UnreachableError); !errors.As(err, &away) {
		t.Errorf("the error is %v", err)
	}
}

func TestAPullThatIsCancelledEndsAtOnce(t *testing.T) {
	n := newAgentNode(t)
	n.answer[wire.List] = func(s *wire.Stream) error {
		var r wire.ListRequest
		_ = s.Recv(&r)
		_ = s.Recv(&r) // until the caller is gone
		return nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if _, err := pullBy(ctx, n, n.code(), []string{"out"}, t.TempDir(), PullRules{}); !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}

// A file that somebody writes to is read as far as it was when that began.
func TestAFileThatGrowsWhileItIsSentIsTold(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"log": "begin\n", "large.log": entropy(resumedFrom), "still": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	grown, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			for _, name := range []string{"log", "large.log"} {
				f, err := os.OpenFile(n.code("out", name), os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = f.WriteString(strings.Repeat("more\n", 100))
				_ = f.Close()
			}
			if i == 100 {
				close(grown)
			}
		}
	}()
	<-grown
	var told string
	var res PullResult
	for range 20 { // until both were written to while they were read
		res = pullTest(t, n, dest, "out")
		if told += strings.Join(res.Skipped, "\n") + "\n"; strings.Contains(told, "out/log: it changes") && strings.Contains(told, "out/large.log: it changes") {
			break
		}
	}
	cancel()
	<-ended
	for _, want := range []string{"out/log: it changes while it is fetched; what came of it is here", "out/large.log: it changes while it is fetched\n"} {
		if !strings.Contains(told, want) {
			t.Errorf("not told: %s\n%s", want, told)
		}
	}
	here, err := os.ReadFile(filepath.Join(dest, "out/log"))
	check(t, err)
	there, err := os.ReadFile(n.code("out/log"))
	check(t, err)
	if !strings.HasPrefix(string(there), string(here)) || len(here) < 6 {
		t.Errorf("%d bytes are here, and not the beginning of the %d there", len(here), len(there))
	}
	makeOld(t, n.code())
	pullTest(t, n, dest, "out")
	if dirText(t, filepath.Join(dest, "out")) != dirText(t, n.code("out")) {
		t.Error("when nobody writes any more it does not come whole")
	}
	nothingLeft(t, dest)
}

func TestAFifoAmongTheResultsHangsNothing(t *testing.T) {
	t.Parallel()
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"a": "1", "b": "2", "c": "3"})
	// After the list, and before it is fetched.
	list := agentService(t, n, wire.List)
	fetch := agentService(t, n, wire.Fetch)
	n.answer[wire.List] = list
	n.answer[wire.Fetch] = func(s *wire.Stream) error {
		check(t, os.Remove(n.code("out/b")))
		check(t, syscall.Mkfifo(n.code("out/b"), 0o644))
		check(t, os.Remove(n.code("out/c")))
		check(t, os.Symlink("/etc/passwd", n.code("out/c")))
		return fetch(s)
	}
	res := pullTest(t, n, dest, "out")
	if text := strings.Join(res.Skipped, "\n"); res.Files != 1 || !strings.Contains(text, "out/b: not sent: it is no regular file any more") || !strings.Contains(text, "out/c: not sent: ") {
		t.Errorf("%v, skipped %q", res, res.Skipped)
	}
}

func TestManySmallFilesAndALongPathCome(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	files := sample.Of(t, 5_000, 50_000, "files")
	for i := range files {
		dir := n.code("out", fmt.Sprint(i/1000))
		if i%1000 == 0 {
			check(t, os.MkdirAll(dir, 0o755))
		}
		check(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(strconv.Itoa(i)), 0o644))
	}
	then := time.Now()
	res := pullTest(t, n, dest, "out")
	if res.Files != files || len(res.Skipped) > 0 {
		t.Errorf("%v, skipped %q", res, res.Skipped)
	}
	t.Logf("%v, %v", res, time.Since(then))
	for _, i := range []int{0, 999, 1000, 3_141, files - 1} {
		if got, err := os.ReadFile(filepath.Join(dest, "out", fmt.Sprint(i/1000), fmt.Sprint(i))); string(got) != strconv.Itoa(i) {
			t.Errorf("file %d is %q, %v", i, got, err)
		}
	}
}

// The network goes away in the middle, nothing is refused and nothing ends, and
// later it is back: with a new connection, while the old one stays silent.
func TestAPullOutlivesANetworkThatIsAwayForAWhile(t *testing.T) {
	s := sshdtest.Start(t)
	p := s.Passage()
	standard := sshconn.Standard // of the whole program, while no other test runs
	sshconn.Standard.Every, sshconn.Standard.Answer = 200*time.Millisecond, 2*time.Second
	n := remote.Open(remote.Target{Name: "node0", Addr: p.Addr, User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile})
	sshconn.Standard = standard
	defer func() { _ = n.Close() }()
	t.Parallel()
	there, dest := filepath.Join(s.Home, codeDir), t.TempDir()
	size := int64(100 << 20)
	writeFiles(t, filepath.Join(there, "out"), map[string]string{"a": "1", "z": "last", "big": entropy(int(size))})
	makeOld(t, there)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	check(t, n.Connect(ctx))
	go func() {
		for ctx.Err() == nil {
			parts, _ := filepath.Glob(filepath.Join(dest, stagePrefix+"*"))
			for _, part := range parts {
				if info, err := os.Stat(part); err == nil && !info.IsDir() && info.Size() > size/5 {
					p.Away.Store(true)
					p.Hold()
					time.Sleep(networkAway)
					p.Away.Store(false)
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	res, err := Pull(ctx, n, codeDir, []string{"out"}, dest, PullLimits{})
	check(t, err)
	if res.Files != 3 || p.Opened() < 2 || dirText(t, filepath.Join(dest, "out")) != dirText(t, filepath.Join(there, "out")) {
		t.Errorf("%v over %d connections, skipped %q", res, p.Opened(), res.Skipped)
	}
	nothingLeft(t, dest)
}

// networkAway is how long the network is away in tests.
const networkAway = 4 * time.Second

// agentOf is the process of the agent that serves a home.
func agentOf(t *testing.T, home string) int {
	t.Helper()
	out, err := exec.Command("pgrep", "-f", home+"/.dlwb/bin/agent-[0-9a-f]* serve").Output()
	for word := range strings.FieldsSeq(string(out)) {
		if pid, _ := strconv.Atoi(word); pid > 0 {
			return pid
		}
	}
	t.Fatalf("there is no agent in %s: %v", home, err)
	return 0
}

func TestAnAgentThatIsKilledInTheMiddleCostsNothing(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	there, dest := filepath.Join(s.Home, codeDir), t.TempDir()
	writeFiles(t, filepath.Join(there, "out"), map[string]string{"a": "1", "z": "last", "big": entropy(150 << 20)})
	makeOld(t, there)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	check(t, n.Connect(ctx))
	var killed atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // each time more of the file is here
		defer close(ended)
		for at := int64(10 << 20); ; {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			parts, _ := filepath.Glob(filepath.Join(dest, stagePrefix+"*"))
			for _, part := range parts {
				if info, err := os.Stat(part); err == nil && !info.IsDir() && info.Size() > at && killed.Load() < 3 {
					_ = syscall.Kill(agentOf(t, s.Home), syscall.SIGKILL)
					killed.Add(1)
					at = info.Size() + 30<<20
				}
			}
		}
	}()
	res, err := Pull(ctx, n, codeDir, []string{"out"}, dest, PullLimits{})
	close(stop)
	<-ended
	check(t, err)
	if killed.Load() == 0 {
		t.Error("no agent was killed")
	}
	if res.Files != 3 || dirText(t, filepath.Join(dest, "out")) != dirText(t, filepath.Join(there, "out")) {
		t.Errorf("%v after %d kills, skipped %q", res, killed.Load(), res.Skipped)
	}
	nothingLeft(t, dest)
}

func TestAFullDiskHereKeepsNoHalfFile(t *testing.T) {
	disk := smallDisk(t, 300)
	n := newAgentNode(t)
	writeFiles(t, n.code("out"), map[string]string{"a": "x", "big": entropy(500_000), "c": "x"})
	res, err := pullBy(t.Context(), n, n.code(), []string{"out"}, disk, PullRules{})
	if err == nil || !strings.Contains(err.Error(), "no space left") || res.Files != 1 {
		t.Errorf("%v, %v", res, err)
	}
	if exists(filepath.Join(disk, "out", "big")) {
		t.Error("half a file is there under its name")
	}
}
