package cli

import (
	"strings"
	"testing"
)

// divergedScript has a loss that is no number in the end.
const divergedScript = `
import os, sys
os.makedirs("outputs", exist_ok=True)
open("outputs/done", "w").write("yes")
for i, loss in enumerate(["2.5", "inf", "nan"], 1):
    print(f"step {i} loss: {loss}", flush=True)
print("odd \x1b[31mbytes\x1b[0m \xff", flush=True)
`

// With a cluster and a run that diverged there, every command answers --json
// with objects: streams have "event" in each, answers in none.
func TestEveryCommandAnswersJSONOnACluster(t *testing.T) {
	b := newBed(t)
	b.profile(divergedScript, "results: {paths: [outputs/]}\n")
	for _, c := range []struct {
		args   string
		code   int
		stream bool
		has    string // an event of the stream, or a key of the answer
	}{
		{"up", 0, true, "cluster_up"}, {"up", 0, true, "step_ended"}, {"sync", 0, true, "step_ended"},
		{"run", 0, true, "run_ended"}, {"attach", 0, true, "run_ended"}, {"attach bed", 0, true, "point"},
		{"logs", 0, true, "log_line"}, {"logs -f --rank all", 0, true, "log_line"}, {"logs --rank 7", 2, true, "error"},
		{"ls", 0, false, "clusters"}, {"runs", 0, false, "runs"}, {"plan", 0, false, "commands"}, {"", 0, false, "clusters"},
		{"pull", 0, false, "dir"}, {"exec bed -- echo hello", 0, false, "stdout"}, {"exec bed --node 1 -- sh -c 'exit 7'", 7, false, "stderr"},
		{"stop", 0, false, "ended"}, {"forward bed jupiter", 2, true, "error"}, {"down", 0, true, "receipt"}, {"down", 1, true, "error"},
		{"down --all", 0, true, ""}, {"run --down", 0, true, "receipt"}, {"runs", 0, false, "runs"}, {"pull", 1, true, "error"},
	} {
		words := append([]string{"--json"}, strings.Fields(c.args)...)
		if i := strings.Index(c.args, "sh -c "); i > 0 {
			words = append(append([]string{"--json"}, strings.Fields(c.args[:i])...), "sh", "-c", "exit 7")
		}
		r := b.run(words...)
		found := c.has == ""
		for _, o := range objects(t, r.stdout) {
			event, _ := o["event"].(string)
			if c.stream != (event != "") {
				t.Errorf("dlwb %s: event %q in %v", c.args, event, o)
			}
			_, key := o[c.has]
			found = found || event == c.has || key && !c.stream
		}
		if !found || r.code != c.code || r.stderr != "" {
			t.Errorf("dlwb %s: exit code %d, want %d and %q\n%s%s", c.args, r.code, c.code, c.has, r.stdout, r.stderr)
		}
	}
	if r := b.run("runs", "--json"); !strings.Contains(r.stdout, `"last_loss":"nan"`) {
		t.Errorf("a run that diverged: %s", r.stdout)
	}
}
