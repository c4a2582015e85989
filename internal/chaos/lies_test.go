//go:build linux

package chaos

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// mostMemory is what dlwb may take at its most, whatever a node tells it.
const mostMemory = 300 << 20

// lieFor is how long a node lies while somebody looks on.
const lieFor = 4 * time.Second

const (
	ofLog    = "rank-0.log"
	ofStatus = "/status"
	toLook   = "look" // the first look at a host
)

// floods are lies that do not end, told while the screen is open.
var floods = map[string]lie{
	"an endless line of the log":            {to: wire.Follow, has: ofLog, tell: news(bytes.Repeat([]byte("x"), wire.ChunkMost), 0)},
	"bytes that are no text":                {to: wire.Follow, has: ofLog, tell: news(noise(), 5*time.Millisecond)},
	"escape sequences":                      {to: wire.Follow, has: ofLog, tell: news([]byte("\x1b]0;owned\a\x1b[2J\x1b[?1049l\x9b31m\u202e\xff\xfe\r\n"), time.Millisecond)},
	"an endless message of the log":         {to: wire.Follow, has: ofLog, tell: stream(announced(1<<30), bytes.Repeat([]byte("x"), 64<<10), 0)},
	"an endless line of the status":         {to: wire.Follow, has: ofStatus, tell: news(bytes.Repeat([]byte("1"), wire.ChunkMost), 0)},
	"an endless status":                     {to: wire.Follow, has: ofStatus, tell: news(bytes.Repeat([]byte("1 rank 7 started 5\n1 stopping x\n1 rank 0 ended 0 -\n"), 1000), 0)},
	"an endless frame of telemetry":         {to: wire.Telemetry, tell: stream(announced(1<<30), smiLines, 0)},
	"frames of telemetry that are too long": {to: wire.Telemetry, tell: messages(wire.TelemetryFrame(append([]byte("frame 1.0\n"), bytes.Repeat(smiLines, 18)...)), 0, endless)},
	"frames of telemetry without end":       {to: wire.Telemetry, tell: messages(wire.TelemetryFrame("frame 1.0\ncpu 1 2\nmem 1 2\nend\n"), 0, endless)},
	"telemetry byte by byte":                {to: wire.Telemetry, tell: stream(announced(1000), []byte("f"), 50*time.Millisecond)},
	"an endless answer about its run":       {to: wire.State, tell: stream(announced(1<<30), bytes.Repeat([]byte("s"), 64<<10), 0)},
	"answers about logs that can't be":      {to: wire.State, tell: messages(wire.StateAnswer{State: "running", Logs: logs(), Status: make([]byte, wire.StatusMost)}, 0, endless)},
	"an answer about its run in bytes":      {to: wire.State, tell: slowState},
}

// smiLines are what a frame holds of GPUs.
var smiLines = bytes.Repeat([]byte("smi 0, y\n"), 5000)

// slowState is an answer about a run that takes minutes.
var slowState = stream(announced(1000), []byte("s"), 100*time.Millisecond)

// logs are more and larger than any node has.
func logs() []wire.StateLog {
	return slices.Repeat([]wire.StateLog{{Name: "rank-0.log", Size: math.MaxInt64, First: math.MaxInt64}}, 5000)
}

// news tells of a file that grows; the disk here has room for what is told.
func news(data []byte, pause time.Duration) func(*wire.Stream, <-chan struct{}) {
	return messages(wire.FollowNews{Data: data}, pause, (400<<20)/len(data))
}

// noise is no text in any encoding.
func noise() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	p := make([]byte, 32<<10)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// talker prints a step every tenth of a second, for ever.
const talker = `
import os, time
os.makedirs("outputs", exist_ok=True)
open("outputs/result", "w").write("honest")
step = 0
while not os.path.exists("end"):
    step += 1
    print(f"step {step} loss: {4 / step:.4f}", flush=True)
    time.sleep(0.1)
`

// Whatever a node tells, the screen answers the next key, dlwb stays small, and
// the terminal keeps what belongs to it.
func TestScreenStaysAliveWhateverANodeTells(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: trains in terminals; run without -short")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is not installed; make test installs what the tests need")
	}
	t.Parallel()
	played := 0
	atOnce(t, 2, floods, func(t *testing.T, flood lie) {
		liar := newLiar(t, flood)
		lab := newLab(t, "lies", liar.config, []string{"liar"}, talker, "")
		screen := lab.terminal("run", "--theme", "dark")
		screen.see(time.Minute, "● training", "? keys", "loss")
		liar.lying.Store(true)
		liar.cutOff() // what was begun honestly is asked for again
		eventually(t, soon, func() error {
			if liar.told.Load() == 0 {
				return fmt.Errorf("it was not asked for %q %q", flood.to, flood.has)
			}
			return nil
		})
		slowest := time.Duration(0)
		for end := time.Now().Add(lieFor); time.Now().Before(end); {
			slowest = max(slowest, screen.answers())
		}
		most := peak(t, screen.pid())
		t.Logf("%d lies; the slowest answer to a key took %s, dlwb took %d MB at most", liar.told.Load(), slowest.Round(time.Millisecond), most>>20)
		if most > mostMemory {
			t.Errorf("dlwb took %d MB", most>>20)
		}
		if title := screen.title(); strings.Contains(title, "owned") {
			t.Errorf("the node has set the title of the terminal: %q", title)
		}
	}, &played)
	t.Logf("%d kinds of lies while the screen was open", played)
}

// A node that never says how far its logs go can't keep a run from ending.
func TestRunEndsThoughItsNodeDoesNotAnswerTheLook(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: trains; run without -short")
	}
	t.Parallel()
	liar := newLiar(t, lie{to: wire.State, tell: slowState})
	lab := newLab(t, "lies", liar.config, []string{"liar"}, talker, "")
	run := lab.start("run", "--json")
	id := run.await(soon, "the start of the run", called("run_started"))["run"]
	eventually(t, soon, func() error { return atLeast(lab.storedLog(id, 0), 1) })
	liar.lying.Store(true)
	if err := os.WriteFile(filepath.Join(liar.home, "dlwb", "lies", "code", "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end := run.await(3*time.Minute, "the end of the run", called("run_ended"))
	if code := run.end(soon); code != 0 || end["verdict"] != "succeeded" || liar.told.Load() == 0 {
		t.Errorf("exit code %d after %d lies: %v", code, liar.told.Load(), end)
	}
	if run.find(func(e event) bool { return strings.Contains(fmt.Sprint(e["text"]), "no more of its logs came home") }) == nil {
		t.Errorf("it was not said that the logs may not be whole:\n%s", run.said())
	}
}

// thing is a file of a list, unless its mode says otherwise.
func thing(name string, size int64, mode uint32) wire.Thing {
	return wire.Thing{Name: name, Size: size, Mode: mode, Inode: 1, MTime: wire.Time{Sec: 1}, Changed: wire.Time{Sec: 1}}
}

// evilList names what must not be written.
func evilList(outside string) wire.ListPage {
	up := strings.Repeat("../", 12)
	page := wire.ListPage{Clock: 1}
	for _, f := range []struct {
		name string
		mode uint32
	}{
		{up + strings.TrimPrefix(outside, "/") + "/evil1", file}, {outside + "/evil2", file}, {"outputs/../../../evil3", file},
		{"outputs/link", syscall.S_IFLNK | 0o777}, {"outputs/link/evil4", file}, {"outputs/link2", syscall.S_IFLNK | 0o777},
		{"outputs/device", syscall.S_IFCHR | 0o644}, {"outputs/device", file}, {"outputs/pipe", syscall.S_IFIFO | 0o644},
		{"outputs/.git/config", file}, {"outputs/bad\xff\xfename\x1b[2J", file}, {"outputs/result", file | 0o7777},
	} {
		page.Things = append(page.Things, thing(f.name, 4, f.mode))
	}
	return page
}

// file is the mode of a plain file.
const file = syscall.S_IFREG | 0o644

// evil sends what it is asked for: links that lead out, and files.
func evil(outside string) func(*wire.Stream, <-chan struct{}) {
	text := []byte("evil")
	sum := sha256.Sum256(text)
	return func(s *wire.Stream, _ <-chan struct{}) {
		for {
			var page wire.FetchPage
			if err := s.Recv(&page); err != nil {
				_ = s.End(nil)
				return
			}
			for _, want := range page.Wants {
				if want.Link {
					_ = s.Send(wire.Pack{Parts: []wire.Part{{End: &wire.End{Link: outside}}}})
					continue
				}
				_ = s.Send(wire.Pack{Len: len(text), Parts: []wire.Part{{N: len(text), End: &wire.End{Sum: sum[:], MTime: 1}}}})
				_, _ = s.Raw().Write(text)
			}
		}
	}
}

// tells tells messages and ends as an agent does that has done its work.
func tells(messages ...any) func(*wire.Stream, <-chan struct{}) {
	return func(s *wire.Stream, _ <-chan struct{}) {
		for _, m := range messages {
			_ = s.Send(m)
		}
		_ = s.End(nil)
	}
}

// download is a node that lies about what is to be brought home, and what is
// said of that.
type download struct {
	lies []lie
	says []string
}

func downloads(outside string) map[string]download {
	list := func(tell func(*wire.Stream, <-chan struct{})) lie { return lie{to: wire.List, tell: tell} }
	fetch := func(tell func(*wire.Stream, <-chan struct{})) lie { return lie{to: wire.Fetch, tell: tell} }
	result := func(size int64) lie {
		return list(tells(wire.ListPage{Clock: 1, Things: []wire.Thing{thing("outputs/result", size, file)}}))
	}
	n := 0
	more := func() wire.ListPage {
		page := wire.ListPage{Clock: 1}
		for range wire.PageMost {
			n++
			page.Things = append(page.Things, thing(fmt.Sprint("outputs/", n), 4, file))
		}
		return page
	}
	long := "outputs/" + strings.Repeat("n", 100<<10)
	return map[string]download{
		"files outside, links and devices": {[]lie{list(tells(evilList(outside))), fetch(evil(outside))},
			[]string{"a link that points out", "a device", "a named pipe", "a .git directory", "leaves the directory"}},
		"an endless listing":           {[]lie{list(pages(more))}, []string{"more than 250,000 files"}},
		"an endless name in a listing": {[]lie{list(stream(announced(1<<30), []byte(long), 0))}, []string{"a message of"}},
		"a long name in a listing":     {[]lie{list(tells(wire.ListPage{Clock: 1, Things: []wire.Thing{thing(long, 4, file)}}))}, []string{"a name of"}},
		"a file larger than any disk":  {[]lie{result(1 << 50)}, []string{"more than 54"}},
		"a pack larger than any disk":  {[]lie{result(4), fetch(tells(wire.Pack{Len: 1 << 50, Full: 1 << 50}))}, []string{"no pack"}},
		"files that nobody asked for": {[]lie{result(4), fetch(tells(wire.Pack{Parts: []wire.Part{{Head: &wire.Head{Name: outside + "/evil5"}}}}))},
			[]string{"what it was not asked for"}},
		"bytes that are no files": {[]lie{result(4), fetch(stream(nil, noise(), 0))}, []string{"broke the protocol"}},
		"an endless first look":   {[]lie{{to: toLook, print: prints(bytes.Repeat([]byte("dlwb\tnow\t1\n"), 1000), 0)}}, []string{"answer can't be read"}},
	}
}

// Nothing that a node sends is written anywhere but where results go, and it
// takes no memory to refuse it.
func TestDownloadsWriteNothingOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: trains; run without -short")
	}
	t.Parallel()
	outside := t.TempDir()
	played := 0
	atOnce(t, 3, downloads(outside), func(t *testing.T, c download) {
		liar := newLiar(t, c.lies...)
		lab := newLab(t, "lies", liar.config, []string{"liar"}, "import os\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/result', 'w').write('honest')\n",
			"results: {paths: [outputs/]}\n")
		if r := lab.run(soon, "run", "--json"); r.cmd.ProcessState.ExitCode() != 0 {
			t.Fatalf("the honest run:\n%s", r.said())
		}
		args := []string{"pull", "--json"}
		if c.lies[0].to == toLook { // of a host to which no connection is held
			args = []string{"plan", "--json"}
			lab.run(soon, "down", "--json")
		}
		before := tree(t, lab.home)
		liar.lying.Store(true)
		d, most := lab.start(args...), 0
		for running := true; running; {
			select {
			case <-d.done:
				running = false
			case <-time.After(20 * time.Millisecond):
				most = max(most, peak(t, d.cmd.Process.Pid))
			}
		}
		d.end(soon)
		t.Logf("exit code %d, %d MB at most: %.600s", d.cmd.ProcessState.ExitCode(), most>>20, d.said())
		if liar.told.Load() == 0 {
			t.Error("it was not asked for what it lies about")
		}
		for _, why := range c.says {
			if !strings.Contains(d.said(), why) {
				t.Errorf("it is not said: %q\n%s", why, d.said())
			}
		}
		if most > mostMemory {
			t.Errorf("dlwb took %d MB", most>>20)
		}
		for path, was := range tree(t, lab.home) {
			inside := written.MatchString(path)
			if before[path] != was && (!inside || !regular(was)) {
				t.Errorf("it has written %s (%s)", path, was)
			}
		}
		if found, _ := os.ReadDir(outside); len(found) > 0 {
			t.Errorf("it has written outside: %v", found)
		}
	}, &played)
	t.Logf("%d kinds of lies about downloads: 0 files written outside", played)
}

// written is what a pull writes: below the results of its run, what it has brought
// home, and dlwb's own records. (node0 is what a run wrote to DLWB_RESULTS.)
var written = regexp.MustCompile(`^(state/runs/[^/]+/(results/(node0/)?outputs/.*|home\.json)|state/dlwb\.sqlite.*|dlwb\.log)$`)

// regular are plain files and directories.
func regular(mode string) bool { return mode[0] == '-' || mode[0] == 'd' }

// tree lists a directory: each path with its mode and size.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return nil // it went away
		}
		rel, err := filepath.Rel(dir, path)
		if !info.IsDir() {
			found[rel] = fmt.Sprintf("%s %d %s", info.Mode(), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// atOnce plays the cases of a table, a few at a time.
func atOnce[C any](t *testing.T, few int, table map[string]C, play func(*testing.T, C), played *int) {
	t.Helper()
	room := make(chan struct{}, few)
	done := make(chan bool, len(table))
	names := []string{}
	for name := range table {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		room <- struct{}{}
		go func() {
			done <- t.Run(name, func(t *testing.T) { play(t, table[name]) })
			<-room
		}()
	}
	for range table {
		<-done
		*played++
	}
}
