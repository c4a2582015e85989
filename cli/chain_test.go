package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
)

// chained writes three profiles, each behind the one before.
func (b *bed) chained() {
	b.t.Helper()
	for name, code := range map[string]string{
		"prep": `print("prep"); open(os.path.join(os.environ["DLWB_RESULTS"], "data.txt"), "w").write("prepared")`,
		"fit":  `d = os.environ["DLWB_CHANNEL_PREP"]; got = open(os.path.join(d, "node0", "data.txt")).read(); open(os.path.join(os.environ["SM_MODEL_DIR"], "m"), "w").write(got + " fitted")`,
		"test": `print("tested:", open(os.path.join(os.environ["DLWB_CHANNEL_FIT"], "node0", "model", "m")).read()); open(os.path.join(os.environ["DLWB_RESULTS"], "t"), "w").write("t")`,
	} {
		if err := os.MkdirAll(filepath.Join(b.dir, name), 0o755); err != nil {
			b.t.Fatal(err)
		}
		b.write(name+"/main.py", "import os\n"+code+"\n")
		after := map[string]string{"fit": "after: ../prep/\n", "test": "after: [../fit/dlwb.yaml]\n"}[name]
		b.write(name+"/dlwb.yaml", "name: "+name+"\nrun: {engine: plain, command: main.py}\n"+after)
	}
}

// states are what became of the steps of a chain, as name:state.
func states(r result) (all []string) {
	for _, e := range r.all("chain") {
		if e["state"] != "runs" {
			all = append(all, e["profile"].(string)+":"+e["state"].(string))
		}
	}
	return all
}

func TestAChainRunsWhatChangedAndSkipsWhatDidNot(t *testing.T) {
	sample.Leave(t)
	b := newBed(t)
	b.chained()
	expect := func(want string, args ...string) result {
		t.Helper()
		r := b.run(append([]string{"chain", "test", "--json"}, args...)...)
		if got := strings.Join(states(r), " "); got != want {
			t.Errorf("got %s, want %s\n%s%s", got, want, r.stdout, r.stderr)
		}
		return r
	}
	if r := expect("prep:done fit:done test:done", "--down"); !strings.Contains(r.stdout, "tested: prepared fitted") {
		t.Errorf("the results of one did not reach the next:\n%s", r.stdout)
	}
	expect("prep:skipped fit:skipped test:skipped", "--down") // the machines are gone, the results are not
	b.write("fit/main.py", "import os\nopen(os.path.join(os.environ['SM_MODEL_DIR'], 'm'), 'w').write('new')\n")
	expect("prep:skipped fit:done test:done") // whose machines stay for what comes next
	expect("prep:done fit:done test:done", "--force")
	b.write("fit/main.py", "raise SystemExit(7)\n")
	if r := expect("prep:skipped fit:failed"); r.code != 7 || !strings.Contains(r.stdout, "exited with code 7") {
		t.Errorf("exit code %d", r.code)
	}
}

func TestAChainThatGoesInACircleIsFoundAtItsPlace(t *testing.T) {
	b := newBed(t)
	b.chained()
	b.write("prep/dlwb.yaml", "name: prep\nrun: {engine: plain, command: main.py}\nafter: ../test/\n")
	r := b.run("chain", "test")
	if r.code == 0 || !strings.Contains(r.stderr, "fit/dlwb.yaml:3:8") && !strings.Contains(r.stderr, "prep/dlwb.yaml:3:8") || !strings.Contains(r.stderr, "after itself") && !strings.Contains(r.stderr, "comes after this one itself") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if len(b.processes()) > 0 {
		t.Error("something was started")
	}
}

// What stands in the way of the last step is known before the first one takes its
// time and money.
func TestAChainWhoseLastStepCantRunBeginsNone(t *testing.T) {
	b := newBed(t)
	for name, c := range map[string]struct {
		last, want string
		code       int
	}{
		"a bad profile":              {"run: {engine: plain, command: main.py}\nrum: x\n", "test/dlwb.yaml:4:1", 2},
		"an unknown provider":        {"provider: locall\nrun: {engine: plain, command: main.py}\n", "test/dlwb.yaml:3:11", 2},
		"a file that is not there":   {"run: {engine: plain, command: main.py}\nenvironment: {venv: none.txt}\n", "none.txt", 2},
		"machines that can't be had": {"provider: hosts\nmachines: {hosts: [\"no-such-user@127.0.0.1:1\"]}\nrun: {engine: plain, command: main.py}\n", "for test, step 3 of 3 of the chain, none of which was begun", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b.chained()
			b.write("test/dlwb.yaml", "name: test\nafter: [../fit/dlwb.yaml]\n"+c.last)
			r := b.run("chain", "test", "--json", "--down")
			if said := r.stdout + r.stderr; r.code != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d, want %d\n%s", r.code, c.code, said)
			}
			if begun := r.all("chain"); len(begun) > 0 {
				t.Errorf("a step was begun: %v", begun)
			}
		})
	}
}
