//go:build linux

package hostsstory

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/agentbin"
	"github.com/dlwb/dlwb/internal/overlay"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testbed"
)

// otherVersion is a dlwb whose agent is another program than this one's.
func otherVersion(t *testing.T) string {
	t.Helper()
	agent, err := agentbin.For("linux", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(agent.Gzip))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	plain = append(plain, "another version"...) // behind its end, where nobody reads
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(plain)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const at = "internal/agentbin/dist/agent-linux-amd64"
	return overlay.Build(t, []map[string]string{{at + ".gz": packed.String(), at + ".sum": fmt.Sprintf("%x\n%d\n", sha256.Sum256(plain), len(plain))}})
}

// several is one run on one host, by one of several dlwb.
func several(name, host string) string {
	return fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\nrun: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n", name, host)
}

// begins waits until a run prints.
func begins(t *testing.T, l *laptop, run *said) (id string) {
	t.Helper()
	id = fmt.Sprint(l.await(run, time.Minute, "the start of the run", called("run_started"))["run"])
	until(t, time.Minute, "something is printed", func() bool {
		text, _ := os.ReadFile(filepath.Join(l.home, "state", "runs", id, "rank-0.log"))
		return bytes.Contains(text, []byte("step 50 "))
	})
	return id
}

// A dlwb that was replaced by another version while its run goes on: the new one sees the
// run, and ends and removes what the old one made.
func TestAnotherVersionGoesOnWithARun(t *testing.T) {
	sample.Leave(t)
	other := otherVersion(t)
	bed := realHosts(t, 1)
	l := newLaptop(t, bed.SSHConfig(), several("versions", testbed.Name(0)), numbered)
	first := l.start("run", "--json")
	begins(t, l, first)
	this := l.exe
	l.exe = other
	attached := l.start("attach", "--json")
	l.await(attached, time.Minute, "the run", called("run_started"))
	if code, text := l.do(time.Minute, "exec", "versions", "--", "echo", "by the other"); code != 0 || !strings.Contains(text, "by the other") {
		t.Errorf("exec: %d %s", code, text)
	}
	l.exe = this
	if code, text := l.do(time.Minute, "exec", "versions", "--", "echo", "by this one"); code != 0 || !strings.Contains(text, "by this one") {
		t.Errorf("exec: %d %s", code, text)
	}
	l.exe = other
	if code, text := l.do(time.Minute, "stop", "versions"); code != 0 {
		t.Errorf("stop: %d %s", code, text)
	}
	if code := l.end(first, time.Minute); code != 130 {
		t.Errorf("the first ended with %d", code)
	}
	l.end(attached, time.Minute)
	second := l.start("run", "--json")
	begins(t, l, second)
	write(t, filepath.Join(bed.Home(0), "dlwb", "versions", "code", "finish"), "")
	if code := l.end(second, time.Minute); code != 0 {
		t.Errorf("the second run ended with %d", code)
	}
	if code, text := l.do(time.Minute, "down", "versions"); code != 0 {
		t.Errorf("down: %d %s", code, text)
	}
	leavesNothing(t, bed.Home(0))
}

// leavesNothing holds that nothing of dlwb's is in a home directory.
func leavesNothing(t *testing.T, home string) {
	t.Helper()
	for _, name := range []string{".dlwb", "dlwb"} {
		if _, err := os.Stat(filepath.Join(home, name)); !os.IsNotExist(err) {
			t.Errorf("%s is left in %s: %v", name, home, err)
		}
	}
}

// Two people have one host, each by a login of their own: what one does is no matter of
// the other's.
func TestTwoUsersHaveOneHostAtATime(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 1)
	one := newLaptop(t, bed.SSHConfig(), several("ones", testbed.Name(0)), numbered)
	two := newLaptop(t, bed.SSHConfig(), several("twos", "root@"+testbed.Name(0)), numbered)
	ones, twos := one.start("run", "--json"), two.start("run", "--json")
	begins(t, one, ones)
	id := begins(t, two, twos)
	if code, text := one.do(time.Minute, "stop", "ones"); code != 0 {
		t.Errorf("stop: %d %s", code, text)
	}
	if code := one.end(ones, time.Minute); code != 130 {
		t.Errorf("it ended with %d", code)
	}
	if code, text := one.do(time.Minute, "down", "ones"); code != 0 {
		t.Errorf("down: %d %s", code, text)
	}
	leavesNothing(t, bed.Home(0))
	log := filepath.Join(two.home, "state", "runs", id, "rank-0.log")
	size := func() int64 {
		is, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		return is.Size()
	}
	was := size()
	until(t, time.Minute, "the other's run goes on", func() bool { return size() > was })
	if _, err := bed.Run(0, "touch /root/dlwb/twos/code/finish"); err != nil {
		t.Fatal(err)
	}
	if code := two.end(twos, time.Minute); code != 0 {
		t.Errorf("the other's run ended with %d", code)
	}
	if code, text := two.do(time.Minute, "down", "twos"); code != 0 {
		t.Errorf("down: %d %s", code, text)
	}
	if out, err := bed.Run(0, "ls -d /root/.dlwb /root/dlwb 2>/dev/null || true"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("left: %s, %v", out, err)
	}
}
