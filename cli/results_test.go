package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// savingScript writes a checkpoint whose name nobody else uses, one that each
// run writes over, and a file in the directory of the run's own. With a
// checkpoint of an earlier run there it goes on from that.
const savingScript = `
import glob, os, sys
run, rank = os.environ["DLWB_RUN"], os.environ["RANK"]
mine = os.environ["DLWB_RESULTS"]
assert os.path.isabs(mine) and os.listdir(mine) == [], mine
if rank == "0":
    os.makedirs("ckpt", exist_ok=True)
    for old in sorted(glob.glob("ckpt/*.pt")):
        open(old).read()
    open(f"ckpt/{run}.pt", "w").write(run)
    open("ckpt/last.pt", "w").write(run)
    os.makedirs(os.environ["SUB"])
    open(os.environ["SUB"] + "/note", "w").write(run)
    assert sys.argv[1] == "--name=" + run, sys.argv
open(mine + "/rank-" + rank, "w").write(run)
print("step: 1 loss: 0.5", flush=True)
`

// filesIn lists the files below a directory.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

func (b *bed) savingProfile(more string) {
	b.t.Helper()
	b.write("train.py", savingScript)
	b.write("dlwb.yaml", "name: bed\nprovider: local\nmachines: {count: 2}\nrun:\n  engine: plain\n  command: train.py --name={run}\n"+
		"  env: {SUB: \"sub/{run}\"}\nresults:\n  paths: [ckpt/, \"sub/{run}/\"]\n"+more)
}

func TestThreeRunsOnOneClusterEachBringHomeWhatTheyWrote(t *testing.T) {
	b := newBed(t)
	b.savingProfile("")
	var runs []string
	for n := range 3 {
		r := b.run("run", "--json")
		if r.code != 0 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		got := r.one(t, "results")
		run := got["run"].(string)
		runs = append(runs, run)
		want := []string{"ckpt/" + run + ".pt", "ckpt/last.pt", "node0/rank-0", "node1/rank-1", "sub/" + run + "/note"}
		slices.Sort(want)
		if have := filesIn(t, got["dir"].(string)); !slices.Equal(have, want) {
			t.Errorf("run %d brought home %q, want %q", n, have, want)
		}
		older, _ := got["older"].(float64)
		if got["files"] != 5.0 || older != float64(n) {
			t.Errorf("run %d: %v", n, got)
		}
		for _, name := range want {
			if text, err := os.ReadFile(filepath.Join(got["dir"].(string), name)); err != nil || string(text) != run {
				t.Errorf("run %d: %s is %q, %v", n, name, text, err)
			}
		}
	}
	// What a later run has written over is not the first one's any more.
	first := b.run("pull", runs[0], "--json")
	var got struct {
		Files int
		New   int
		Dir   string
		Left  []string
	}
	if err := json.Unmarshal([]byte(first.stdout), &got); err != nil || first.code != 0 {
		t.Fatalf("%v: %s%s", err, first.stdout, first.stderr)
	}
	if text, err := os.ReadFile(filepath.Join(got.Dir, "ckpt", "last.pt")); err != nil || string(text) != runs[0] {
		t.Errorf("after another pull the first run has %q, %v", text, err)
	}
	if got.Files != 5 || !strings.Contains(strings.Join(got.Left, "\n"), runs[1]) {
		t.Errorf("%+v", got)
	}
}

func TestResultsGoWhereTheProfileOrThePersonSays(t *testing.T) {
	b := newBed(t)
	b.savingProfile("  to: home\n")
	mine := filepath.Join(b.dir, "home", "ckpt")
	if err := os.MkdirAll(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("home/ckpt/last.pt", "a person's own")
	r := b.run("run", "--plain")
	home := filepath.Join(b.dir, "home")
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	if last := lines[len(lines)-1]; r.code != 0 || !strings.Contains(last, "5 files") || !strings.HasSuffix(last, " in "+home) {
		t.Fatalf("exit code %d; the last line is %q\n%s", r.code, last, r.stdout)
	}
	run := strings.Fields(lines[len(lines)-1])[3]
	run = strings.TrimSuffix(run, ":")
	for name, want := range map[string]string{"ckpt/last.pt": "a person's own", "ckpt/last." + run + ".pt": run, "node1/rank-1": run} {
		if text, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v; want %q", name, text, err, want)
		}
	}
	if again := b.run("run", "--plain"); again.code != 0 {
		t.Fatalf("%s%s", again.stdout, again.stderr)
	}
	if text, err := os.ReadFile(filepath.Join(home, "ckpt/last."+run+".pt")); err != nil || string(text) != run {
		t.Errorf("the next run made of the first one's %q, %v", text, err)
	}
	if out, err := b.command("ssh", "bed", "0", "--", "ls", "dlwb/bed/code").CombinedOutput(); err != nil || strings.Contains(string(out), "home") {
		t.Errorf("what came home was sent to the nodes: %s, %v", out, err)
	}
	p := b.run("pull", "bed", "else/where", "--json")
	if have := filesIn(t, filepath.Join(b.dir, "else", "where")); p.code != 0 || len(have) != 5 || slices.Contains(have, "ckpt/"+run+".pt") {
		t.Errorf("pull of the cluster into a directory: exit code %d, %q\n%s%s", p.code, have, p.stdout, p.stderr)
	}
}

func TestAPlanWarnsWhenNothingWouldSaveTheResults(t *testing.T) {
	b := newBed(t)
	const warning = "nothing of what the run writes is brought home"
	for more, warns := range map[string]bool{"": true, "results: {paths: [out/]}\n": false, "  env: {OUT: \"x\"}\n#": true} {
		b.profile("print('step: 1 loss: 1')\n", more)
		if r := b.run("plan", "--plain"); r.code != 0 || strings.Contains(r.stdout, warning) != warns {
			t.Errorf("with %q: exit code %d\n%s%s", more, r.code, r.stdout, r.stderr)
		}
	}
	b.profile("import os\nopen(os.environ['DLWB_RESULTS'] + '/x', 'w')\n", "")
	if r := b.run("plan", "--plain"); strings.Contains(r.stdout, warning) {
		t.Errorf("with DLWB_RESULTS in the code:\n%s", r.stdout)
	}
}

// What did not come home is not removed by a flag that was given before anybody
// knew.
func TestRunDownKeepsAClusterWhoseResultsDidNotComeHome(t *testing.T) {
	b := newBed(t)
	b.savingProfile("  to: home\n")
	b.write("home", "a file is in the way")
	r := b.run("run", "--down", "--plain")
	if r.code == 0 || strings.Contains(r.stdout, "receipt") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, says := range []string{"cluster bed is not removed", "dlwb pull bed-"} {
		if !strings.Contains(r.stdout, says) {
			t.Errorf("it does not say %q:\n%s", says, r.stdout)
		}
	}
	if err := os.Remove(filepath.Join(b.dir, "home")); err != nil {
		t.Fatal(err)
	}
	if p := b.run("pull", "bed", "--plain"); p.code != 0 || !strings.Contains(p.stdout, "5 files") {
		t.Errorf("pull: exit code %d\n%s%s", p.code, p.stdout, p.stderr)
	}
	book := b.run("runbook")
	for _, says := range []string{"| ckpt/last.pt |", "| rank-1 |", "home/node1`"} {
		if !strings.Contains(book.stdout, says) {
			t.Errorf("the runbook does not say %q:\n%s", says, book.stdout)
		}
	}
	if d := b.run("down", "--json"); d.code != 0 || d.one(t, "receipt")["proven"] != true {
		t.Errorf("down: exit code %d\n%s", d.code, d.stdout)
	}
}

func TestResultsStayInTheProjectWhereALinkLeadsOut(t *testing.T) {
	b := newBed(t)
	b.savingProfile("  to: out/{run}\n")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(b.dir, "out")); err != nil {
		t.Fatal(err)
	}
	r := b.run("run", "--plain")
	if r.code == 0 || !strings.Contains(r.stderr, "it leads out of the directory of the profile") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if left := filesIn(t, outside); len(left) > 0 {
		t.Errorf("outside lies %q", left)
	}
}
