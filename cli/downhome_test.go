//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a run wrote that could not come home at its end is on its nodes only: down tries
// again before it removes them, also what lies in DLWB_RESULTS of a profile that names
// no results.
func TestDownBringsHomeWhatDidNotComeBefore(t *testing.T) {
	for name, profile := range map[string]string{
		"results and their own": "results:\n  paths: [ckpt/, \"sub/{run}/\"]\n  to: home\n",
		"their own alone":       "results:\n  to: home\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.savingProfile("")
			b.write("dlwb.yaml", "name: bed\nprovider: local\nmachines: {count: 2}\nrun:\n  engine: plain\n  command: train.py --name={run}\n"+
				"  env: {SUB: \"sub/{run}\"}\n"+profile)
			b.write("home", "a file is in the way")
			if r := b.run("run", "--plain"); r.code == 0 {
				t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			b.write("train.py", "print('step: 1 loss: 0.5', flush=True)")
			if err := os.Remove(filepath.Join(b.dir, "home")); err != nil {
				t.Fatal(err)
			}
			if r := b.run("run", "--plain"); r.code != 0 { // the newest run is not the one that has something left
				t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			d := b.run("down", "--json")
			if d.code != 0 || d.one(t, "receipt")["proven"] != true || len(d.all("notice")) > 0 {
				t.Errorf("down: exit code %d\n%s%s", d.code, d.stdout, d.stderr)
			}
			have := strings.Join(filesIn(t, filepath.Join(b.dir, "home")), " ")
			if !strings.Contains(have, "node0/rank-0 node1/rank-1") || strings.Contains(have, "last.pt") != (name == "results and their own") {
				t.Errorf("at home is %q", have)
			}
		})
	}
}

// A script that says down means it: it is told what was lost, where, and why. A person
// is asked again, and a flag that was given before anybody knew removes nothing.
func TestDownBringsHomeOrSaysWhatIsLost(t *testing.T) {
	b := newBed(t).withOneNode()
	b.write("train.py", savingScript)
	b.write("dlwb.yaml", "name: bed\nprovider: local\nmachines: {count: 1}\nrun:\n  engine: plain\n  command: train.py --name={run}\n"+
		"  env: {SUB: \"sub/{run}\"}\nresults:\n  to: home\n")
	b.write("home", "a file is in the way")
	if r := b.run("run", "--plain"); r.code == 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.write("train.py", "raise SystemExit('no run of this begins')")
	b.write("dlwb.yaml", "name: bed\nprovider: local\nmachines: {count: 1}\nenvironment: {before: [\"false\"]}\nrun: {engine: plain, command: train.py}\n")
	if r := b.run("run", "--down", "--plain"); r.code == 0 || !strings.Contains(r.stdout, "cluster bed is not removed") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	x := b.onTerminal(160, 40, "down")
	x.shows("Tear down bed?", "[y/N] ")
	x.types("y\r")
	x.shows("Remove bed with what did not come home?", "DLWB_RESULTS did not come home, if anything")
	x.types("n\r")
	if code := <-x.ended; code == 0 || strings.Contains(x.shown.String(), "receipt") {
		t.Errorf("what was not agreed to was done: exit code %d\n%s", code, x.shown)
	}
	d := b.run("down", "--plain")
	for _, says := range []string{"wrote to DLWB_RESULTS, if anything, did not come home before its nodes were removed", "home", "not a directory", "receipt"} {
		if !strings.Contains(d.stdout, says) {
			t.Errorf("down does not say %q:\n%s%s", says, d.stdout, d.stderr)
		}
	}
}

// What is on nodes that do not answer can't be asked for: the cluster goes, and of each
// run it is said what went with it.
func TestDownBringsHomeNothingFromNodesThatDoNotAnswer(t *testing.T) {
	b := newBed(t)
	b.savingProfile("  to: home\n")
	b.write("home", "a file is in the way")
	for range 3 {
		if r := b.run("run", "--plain"); r.code == 0 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	}
	for node := range 2 {
		if err := syscall.Kill(b.nodePID(node), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	d := b.within(90*time.Second, "down", "--json")
	if d.code != 0 || d.one(t, "receipt")["proven"] != true {
		t.Errorf("exit code %d\n%s%s", d.code, d.stdout, d.stderr)
	}
	for _, run := range b.runs() {
		if want := "the results of run " + run.ID + " did not come home before its nodes were removed: none of its nodes answers"; !strings.Contains(d.stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, d.stdout)
		}
	}
}
