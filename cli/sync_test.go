package cli

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/workbench"
)

// soon waits until something holds.
func (b *bed) soon(what string, holds func() bool) {
	b.t.Helper()
	for limit := time.Now().Add(60 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			b.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// code is where a file of the project lies on a node.
func (b *bed) code(node int, name string) string {
	return filepath.Join(b.nodeHome(node), "dlwb", "bed", "code", name)
}

// remove takes a file out of the project.
func (b *bed) remove(name string) {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// edit changes a file on a node behind the back of dlwb.
func (b *bed) edit(node int, name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.code(node, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// everything is each thing below the homes of the nodes with its mode, time
// and content: what a command that changes nothing leaves as it was.
func (b *bed) everything() string {
	b.t.Helper()
	var all strings.Builder
	for node := range 2 {
		err := filepath.WalkDir(b.nodeHome(node), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := os.Lstat(path)
			if err != nil {
				return err
			}
			var text []byte
			if info.Mode().IsRegular() {
				if text, err = os.ReadFile(path); err != nil {
					return err
				}
			}
			fmt.Fprintf(&all, "%s %s %d %x\n", path, info.Mode(), info.ModTime().UnixNano(), sha256.Sum256(text))
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return all.String()
}

func TestADryRunOfASyncWithoutAClusterBringsNoneUp(t *testing.T) {
	b := newBed(t)
	b.profile("print('hello')\n", "")
	r := b.run("sync", "--dry-run")
	for _, want := range []string{"cluster bed is not up; on new nodes:\n", "a new node: send 2 files, ", "\n  + dlwb.yaml\n", "\n  + train.py\n"} {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("exit code %d, %q is not said:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	var p workbench.SyncPreview
	b.answer(&p, "sync", "--dry-run")
	if p.Up || len(p.Nodes) != 1 || !slices.Equal(p.Nodes[0].Send, []string{"dlwb.yaml", "train.py"}) {
		t.Errorf("as JSON: %+v", p)
	}
	if made, _ := filepath.Glob(filepath.Join(b.home, "state", "local", "*")); len(made) > 0 || len(b.processes()) > 0 {
		t.Errorf("it made %v, and %v run", made, b.processes())
	}
	if r := b.run("sync", "--dry-run", "--watch"); r.code != ExitUsage || !strings.Contains(r.stderr, "don't go together") {
		t.Errorf("with --watch: exit code %d\n%s", r.code, r.stderr)
	}
}

func TestADryRunOfASyncSaysWhatChangesOnEachNodeAndChangesNothing(t *testing.T) {
	b := newBed(t)
	for _, name := range []string{"changed.txt", "edited.txt", "gone.txt", "taken.txt"} {
		b.write(name, "as it was\n")
	}
	b.up("")
	if r := b.run("sync", "--dry-run"); r.code != 0 || r.stdout != "node0: nothing to do\nnode1: nothing to do\n" {
		t.Errorf("right after a sync: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.write("changed.txt", "changed here\n")
	b.write("new.txt", "new\n")
	b.remove("gone.txt")
	b.remove("taken.txt")
	b.edit(0, "changed.txt", "and there too\n")
	b.edit(0, "taken.txt", "edited there\n")
	b.edit(1, "edited.txt", "edited there\n")
	before := b.everything()
	r := b.run("sync", "--dry-run")
	const want = `node0: send 2 files, 17 B before compression, remove 1, move 2 aside
  + changed.txt
  + new.txt
  - gone.txt
  ~ edited there, kept in ~/.dlwb/kept: changed.txt
  ~ edited there, kept in ~/.dlwb/kept: taken.txt
node1: send 2 files, 17 B before compression, remove 2
  + changed.txt
  + new.txt
  - gone.txt
  - taken.txt
  = edited there, left as it is: edited.txt
`
	if r.code != 0 || r.stdout != want {
		t.Errorf("exit code %d\n%s%s\nwant\n%s", r.code, r.stdout, r.stderr, want)
	}
	var p workbench.SyncPreview
	b.answer(&p, "sync", "--dry-run")
	if !p.Up || p.Cluster != "bed" || len(p.Warnings) > 0 || len(p.Nodes) != 2 {
		t.Fatalf("as JSON: %+v", p)
	}
	for i, lists := range [][4][]string{
		{{"changed.txt", "new.txt"}, {"gone.txt"}, {}, {"changed.txt", "taken.txt"}},
		{{"changed.txt", "new.txt"}, {"gone.txt", "taken.txt"}, {"edited.txt"}, {}},
	} {
		n := p.Nodes[i]
		if got := [4][]string{n.Send, n.Remove, n.Edited, n.Aside}; n.Node != fmt.Sprintf("node%d", i) || n.Files != 2 ||
			n.Bytes != 17 || fmt.Sprint(got) != fmt.Sprint(lists) {
			t.Errorf("as JSON, of node%d: %+v", i, n)
		}
	}
	if after := b.everything(); after != before {
		t.Errorf("the nodes changed from\n%s\nto\n%s", before, after)
	}
}

// watch starts a dlwb that syncs after each change, and waits for its first
// sync.
func (b *bed) watch() *started {
	b.t.Helper()
	s := b.start("sync", "--watch", "--json")
	b.t.Cleanup(func() { _ = s.cmd.Process.Kill(); s.end() })
	s.synced()
	return s
}

// synced waits for the end of a sync.
func (s *started) synced() {
	s.t.Helper()
	s.await("a sync that did something", func(e printedEvent) bool { return e["event"] == "step_ended" && e["step"] == "sync" && e["ok"] == true })
}

// have waits until a file is on both nodes what it is in the project.
func (b *bed) have(name string) {
	b.t.Helper()
	want, gone := os.ReadFile(filepath.Join(b.dir, name))
	for node := range 2 {
		b.soon(fmt.Sprintf("%s on node%d as it is here", name, node), func() bool {
			text, err := os.ReadFile(b.code(node, name))
			return (err != nil) == (gone != nil) && string(text) == string(want)
		})
	}
}

// strangers are the bed's processes besides the agent that samples each node.
func (b *bed) strangers() []string {
	return slices.DeleteFunc(b.processes(), func(p string) bool {
		return strings.Contains(p, "/agent-") && strings.Contains(p, " serve ")
	})
}

func TestAWatchedSyncFollowsEachChangeUntilItIsInterruptedOrItsClusterGoes(t *testing.T) {
	b := newBed(t)
	b.write("notes.txt", "first\n")
	b.up("")
	s := b.watch()
	for _, change := range []struct {
		name string
		make func()
	}{
		{"notes.txt", func() { b.write("notes.txt", "the second\n") }},
		{"new.txt", func() { b.write("new.txt", "new\n") }},
		{"notes.txt", func() { b.remove("notes.txt") }},
	} {
		change.make()
		b.have(change.name)
		s.synced()
	}
	s.signal(syscall.SIGINT)
	if code := s.end(); code != ExitOK {
		t.Errorf("after an interrupt: exit code %d", code)
	}
	b.soon("nothing of the watch runs", func() bool { return len(b.pids("sync\x00--watch"))+len(b.strangers()) == 0 })

	// Nobody watches any more: what changes now stays here until the next sync.
	b.write("new.txt", "changed after the end\n")
	var p workbench.SyncPreview
	b.answer(&p, "sync", "--dry-run")
	if len(p.Nodes) != 2 || !slices.Equal(p.Nodes[1].Send, []string{"new.txt"}) {
		t.Errorf("after the watch: %+v", p)
	}

	// Another watch ends with its cluster.
	s = b.watch()
	if r := b.run("down", "--json"); r.code != 0 {
		t.Fatalf("down: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	ended := make(chan int, 1)
	go func() { ended <- s.end() }()
	select {
	case code := <-ended:
		if code != ExitOK {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(60 * time.Second):
		t.Error("it goes on a minute after its cluster is gone")
	}
}

func TestASyncOfAClusterThatIsUpBringsNothingButTheCode(t *testing.T) {
	b := newBed(t)
	b.up("")
	steps := func() (names []string) {
		t.Helper()
		r := b.run("sync", "--json")
		if r.code != 0 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		for _, o := range objects(t, r.stdout) {
			if o["event"] == "step_started" {
				names = append(names, fmt.Sprint(o["step"]))
			}
		}
		return names
	}
	b.write("new.txt", "sent\n")
	if got := steps(); !slices.Equal(got, []string{"sync"}) {
		t.Errorf("of a cluster that is up: %v", got)
	}
	if text, err := os.ReadFile(b.code(1, "new.txt")); err != nil || string(text) != "sent\n" {
		t.Errorf("there: %q, %v", text, err)
	}
	b.profile("print('other')\n", "results: {paths: [outputs/]}\n")
	if got := steps(); !slices.Equal(got, []string{"cluster", "environment", "sync"}) {
		t.Errorf("with another profile: %v", got)
	}
}
