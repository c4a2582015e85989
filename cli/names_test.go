//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// completed is what the shell offers for the next word.
func (b *bed) completed(words ...string) []string {
	b.t.Helper()
	var offered []string
	for line := range strings.Lines(b.run(append(append([]string{"__complete"}, words...), "")...).stdout) {
		if word := strings.TrimSpace(line); !strings.HasPrefix(word, ":") {
			offered = append(offered, word)
		}
	}
	return offered
}

// A past run could not be opened from the shell, though TAB offered it.
func TestWhatTabOffersOpensAndAPastRunTellsItsRecord(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 10, 0.001)+"\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/done', 'w').write('x')\n", "results: {paths: [outputs/]}\n")
	first := b.run("run", "--json").one(t, "run_ended")["run"].(string)
	second := b.run("run", "--down", "--json").one(t, "run_ended")["run"].(string)
	b.profile("import sys\nsys.exit(3)\n", "")
	failed := b.run("run", "--json").one(t, "run_ended")["run"].(string)
	for word, c := range map[string]struct {
		code int
		says string
	}{first: {0, "succeeded: "}, second: {0, "1 file, "}, failed: {3, "exited with code 3"}, "bed": {3, "exited with code 3"}} {
		if !strings.Contains(strings.Join(b.completed("attach"), " "), word) {
			t.Errorf("attach is not completed with %s", word)
		}
		if r := b.run("attach", word); r.code != c.code || !strings.Contains(r.stdout, c.says) {
			t.Errorf("attach %s: exit code %d\n%s%s", word, r.code, r.stdout, r.stderr)
		}
	}
	if r := b.run("attach", first, "--json"); r.code != 0 || !strings.Contains(r.stdout, `{"run":{"id":"`+first) {
		t.Errorf("attach --json: %s", r.stdout)
	}
	b.run("down")
	b.run("up")
	if r := b.run("attach"); r.code != 1 || !strings.Contains(r.stderr, "nothing was run on it yet") || strings.Contains(r.stderr, "still up") {
		t.Errorf("attach to a cluster on which nothing was run yet: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.run("down")
	for _, command := range []string{"stop", "down", "ssh", "exec", "forward"} {
		if offered := b.completed(command); len(offered) > 0 {
			t.Errorf("%s is completed with %q, and there is no cluster", command, offered)
		}
	}
}

// sync wanted a profile where ssh wanted a cluster.
func TestClusterRunAndProfileStandForEachOther(t *testing.T) {
	b := newBed(t).withOneNode()
	profile := b.profile(fmt.Sprintf(lossScript, 3, 0.001), "")
	run := b.run("run", "--json").one(t, "run_ended")["run"].(string)
	if r := b.run(); r.code != 0 || !strings.HasPrefix(r.stdout, "CLUSTER") || !strings.Contains(r.stdout, "bed") {
		t.Errorf("with nothing named, and no terminal: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, word := range []string{"bed", run, profile, filepath.Dir(profile), "dlwb.yaml", "."} {
		for _, command := range [][]string{{"sync", word}, {"plan", word}, {"exec", word, "--", "true"}, {"ssh", word, "0", "--", "true"}, {"logs", word}} {
			if r := b.run(command...); r.code != 0 {
				t.Errorf("dlwb %s: exit code %d\n%s", strings.Join(command, " "), r.code, r.stderr)
			}
		}
	}
	for _, command := range [][]string{{"ssh", "bad"}, {"down", "bad"}, {"logs", "bad"}} {
		if r := b.run(command...); r.code == 0 || !strings.Contains(r.stderr, "did you mean bed?") {
			t.Errorf("dlwb %s: exit code %d\n%s", strings.Join(command, " "), r.code, r.stderr)
		}
	}
	b.run("down")
	if r := b.run("ssh", "dlwb.yaml"); r.code == 0 || !strings.Contains(r.stderr, "it has none that is up") {
		t.Errorf("the profile of no cluster: exit code %d\n%s", r.code, r.stderr)
	}
	file := filepath.Join(b.dir, "my bed.yaml")
	if err := os.WriteFile(file, []byte("name: bed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, next := range map[string]string{"ssh": "dlwb up", "logs": "dlwb run"} {
		if r := b.run(what, file); r.code == 0 || !strings.Contains(r.stderr, next+" '"+file+"' makes one") {
			t.Errorf("%s: what is advised can't be pasted: %s", what, r.stderr)
		}
	}
}
