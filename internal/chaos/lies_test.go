//go:build linux

package chaos

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// mostMemory is what dlwb may take at its most, whatever a node tells it.
const mostMemory = 300 << 20

// lieFor is how long a node lies while somebody looks on.
const lieFor = 4 * time.Second

const (
	toLog       = "rank-0.log"
	toStatus    = "/status"
	toTelemetry = "bin/telemetry"
	toState     = "bin/state"
	toLook      = "gpus_silent" // the first look at a host
	toListing   = "Lists what is to be pulled"
	toDownload  = "tar -cf -"
)

// floods are lies that do not end, told while the screen is open.
var floods = map[string]lie{
	"an endless line of the log":       {toLog, repeat(bytes.Repeat([]byte("x"), 64<<10), 0, 400<<20)},
	"bytes that are no text":           {toLog, repeat(noise(), 5*time.Millisecond, 50<<20)},
	"escape sequences":                 {toLog, repeat([]byte("\x1b]0;owned\a\x1b[2J\x1b[?1049l\x9b31m\u202e\xff\xfe\r\n"), time.Millisecond, 50<<20)},
	"an endless line of the status":    {toStatus, repeat(bytes.Repeat([]byte("1"), 64<<10), 0, 1<<30)},
	"an endless status":                {toStatus, repeat(bytes.Repeat([]byte("1 rank 7 started 5\n1 stopping x\n1 rank 0 ended 0 -\n"), 1000), 0, 1<<30)},
	"an endless frame of telemetry":    {toTelemetry, repeat(append([]byte("frame 1.0\n"), bytes.Repeat([]byte("smi 0, y\n"), 5000)...), 0, 1<<30)},
	"frames of telemetry without end":  {toTelemetry, repeat([]byte("frame 1.0\ncpu 1 2\nmem 1 2\nend\n"), 0, 1<<30)},
	"telemetry byte by byte":           {toTelemetry, repeat([]byte("f"), 50*time.Millisecond, 1<<30)},
	"an endless answer about its run":  {toState, repeat(bytes.Repeat([]byte("size 99999999999999999999 rank-0.log\n"), 1000), 0, 1<<30)},
	"an answer about its run in bytes": {toState, repeat([]byte("s"), 100*time.Millisecond, 1<<30)},
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
				return fmt.Errorf("it was not asked for %q", flood.to)
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
	liar := newLiar(t, lie{toState, repeat([]byte("s"), 100*time.Millisecond, 1<<30)})
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
	if run.find(func(e event) bool { return strings.Contains(fmt.Sprint(e["text"]), "did not come home") }) == nil {
		t.Errorf("it was not said that the logs may not be whole:\n%s", run.said())
	}
}

// evil are archives with what must not be written.
func evil(outside string) []byte {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	up := strings.Repeat("../", 12)
	for _, h := range []tar.Header{
		{Name: "./" + up + strings.TrimPrefix(outside, "/") + "/evil1", Typeflag: tar.TypeReg, Size: 4},
		{Name: outside + "/evil2", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./outputs/../../../evil3", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./outputs/link", Typeflag: tar.TypeSymlink, Linkname: outside},
		{Name: "./outputs/link/evil4", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./outputs/hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		{Name: "./outputs/device", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5},
		{Name: "./outputs/pipe", Typeflag: tar.TypeFifo},
		{Name: "./outputs/.git/config", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./outputs/bad\xff\xfename\x1b[2J", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./outputs/result", Typeflag: tar.TypeReg, Size: 4, Mode: 0o7777},
	} {
		if h.Mode == 0 {
			h.Mode = 0o777
		}
		h.Format = tar.FormatGNU
		if err := w.WriteHeader(&h); err != nil {
			panic(err)
		}
		if h.Size > 0 {
			_, _ = io.WriteString(w, "evil")
		}
	}
	_ = w.Close()
	return buf.Bytes()
}

// evilListing names all that the archive has, as files, so that each is asked
// for.
func evilListing(outside string) string {
	s := "now 1 tar\nlist\n"
	up := strings.Repeat("../", 12)
	for _, f := range []struct{ name, mode string }{
		{up + outside + "/evil1", "81a4"}, {outside + "/evil2", "81a4"}, {"outputs/../../../evil3", "81a4"},
		{"outputs/link", "a1ff"}, {"outputs/link/evil4", "81a4"}, {"outputs/hard", "81a4"}, {"outputs/device", "21a4"},
		{"outputs/device", "81a4"}, {"outputs/pipe", "81a4"}, {"outputs/.git/config", "81a4"},
		{"outputs/bad\xff\xfename\x1b[2J", "81a4"}, {"outputs/result", "8fff"},
	} {
		s += fmt.Sprintf("4 1 %s .//%s\n", f.mode, f.name)
	}
	return s
}

// downloads are lies about what is to be brought home.
func downloads(outside string) map[string][]lie {
	endless := func(out io.Writer, quit <-chan struct{}) {
		_, _ = io.WriteString(out, "now 1 tar\nlist\n")
		var page bytes.Buffer
		for n := 0; ; page.Reset() {
			for range 1000 {
				n++
				fmt.Fprintf(&page, "4 1 81a4 .//outputs/%d\n", n)
			}
			if _, err := out.Write(page.Bytes()); err != nil {
				return
			}
		}
	}
	var endlessFile bytes.Buffer
	w := tar.NewWriter(&endlessFile)
	_ = w.WriteHeader(&tar.Header{Name: "./outputs/result", Typeflag: tar.TypeReg, Size: 1 << 50, Format: tar.FormatGNU})
	name := "4 1 81a4 .//outputs/" + strings.Repeat("n", 100<<10)
	return map[string][]lie{
		"files outside, links and devices": {{toListing, once(evilListing(outside))}, {toDownload, once(string(evil(outside)))}},
		"an endless listing":               {{toListing, endless}},
		"an endless name in a listing":     {{toListing, repeat([]byte(name), 0, 1<<30)}},
		"a file larger than any disk":      {{toListing, once("now 1 tar\nlist\n4 1 81a4 .//outputs/result\n")}, {toDownload, once(endlessFile.String())}},
		"an archive that is none":          {{toListing, once("now 1 tar\nlist\n4 1 81a4 .//outputs/result\n")}, {toDownload, repeat(noise(), 0, 1<<30)}},
		"an endless first look":            {{toLook, repeat(bytes.Repeat([]byte("dlwb\tnow\t1\n"), 1000), 0, 1<<30)}},
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
	atOnce(t, 3, downloads(outside), func(t *testing.T, lies []lie) {
		liar := newLiar(t, lies...)
		lab := newLab(t, "lies", liar.config, []string{"liar"}, "import os\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/result', 'w').write('honest')\n",
			"results: {paths: [outputs/]}\n")
		if r := lab.run(soon, "run", "--json"); r.cmd.ProcessState.ExitCode() != 0 {
			t.Fatalf("the honest run:\n%s", r.said())
		}
		before := tree(t, lab.home)
		liar.lying.Store(true)
		args := []string{"pull", "--json"}
		if lies[0].to == toLook {
			args = []string{"plan", "--json"}
		}
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
		if d.cmd.ProcessState.ExitCode() == 0 {
			for _, why := range []string{"a link that points out", "a device", "a .git directory", "leaves the directory"} {
				if !strings.Contains(d.said(), why) {
					t.Errorf("it is not said that something was left because it is %q:\n%s", why, d.said())
				}
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
