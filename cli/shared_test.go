package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two projects whose directories have the same name have the same cluster: the second
// one is told, in the plan and when it runs. Several profiles of one project may share.
func TestAnotherProjectsClusterIsNotSharedUnseen(t *testing.T) {
	b := newBed(t)
	const profile = "provider: local\nrun: {engine: plain, command: train.py}\n"
	in := func(place string) *bed {
		own := *b
		own.dir = filepath.Join(b.home, place)
		if err := os.MkdirAll(own.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		own.write("train.py", "print('step: 1 loss: 0.5', flush=True)\n")
		own.write("dlwb.yaml", profile)
		return &own
	}
	mine, theirs := in("mine/train"), in("theirs/train")
	warning := "cluster train was made by " + filepath.Join(mine.dir, "dlwb.yaml") + ", and is used here too"
	if p := theirs.run("plan", "--plain"); p.code != 0 || strings.Contains(p.stdout, "was made by") {
		t.Errorf("before there is a cluster: exit code %d\n%s%s", p.code, p.stdout, p.stderr)
	}
	if r := mine.run("run", "--plain"); r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	mine.write("eval.yaml", "name: train\n"+profile)
	for _, args := range [][]string{{"plan"}, {"plan", "eval.yaml"}, {"run"}} {
		if r := mine.run(append(args, "--plain")...); r.code != 0 || strings.Contains(r.stdout, "was made by") {
			t.Errorf("%v of the same project: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
		if r := theirs.run(args[0], "--plain"); r.code != 0 || !strings.Contains(r.stdout, warning) {
			t.Errorf("%v of another project: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	theirs.write("dlwb.yaml", "name: ours\n"+profile)
	if p := theirs.run("plan", "--plain"); p.code != 0 || strings.Contains(p.stdout, "was made by") {
		t.Errorf("with a name of its own: exit code %d\n%s%s", p.code, p.stdout, p.stderr)
	}
}
