//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// shows waits until a terminal has shown all of the texts.
func (x *terminal) shows(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.waitFor(text)
	}
}

// On a terminal down once removed a cluster with a live run at a word. "dlwb down bed
// removes it" was advised by the one that watched, after another had removed it.
func TestDownOnATerminalShowsWhatGoesAndWantsTheNameOfALiveCluster(t *testing.T) {
	b := newBed(t)
	b.profile(fmt.Sprintf(lossScript, 4000, 0.02), "results: {paths: [outputs/]}\n")
	first := b.onTerminal(120, 30, "run", "--plain")
	first.shows("step 5/")
	for _, said := range []string{"y\r", "\r", "bad\r", "\x03"} {
		x := b.onTerminal(120, 30, "down")
		x.shows("Tear down bed?", "2 nodes of local", "the run that is going on: bed-", "what it writes is brought home at its end", "costs nothing", "type bed to agree: ")
		x.types(said)
		if code := <-x.ended; code == 0 {
			t.Errorf("%q: exit code 0\n%s", said, x.shown)
		}
	}
	if r := b.run("ls", "--json"); !strings.Contains(r.stdout, `"phase":"running"`) {
		t.Fatalf("what was not agreed to was done: %s", r.stdout)
	}
	x := b.onTerminal(120, 30, "stop")
	x.shows("Stop run bed-", "the cluster, with its files and its price", "[y/N] ")
	x.types("n\r")
	if code := <-x.ended; code != ExitFailed {
		t.Errorf("a stop that was not agreed to: exit code %d", code)
	}
	x = b.onTerminal(120, 30, "down")
	x.shows("type bed to agree: ")
	x.types("bed\r")
	x.shows("receipt: everything is gone")
	if code := <-x.ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, x.shown)
	}
	if code := first.exit(); code != 130 {
		t.Errorf("the watching dlwb: exit code %d, want 130", code)
	}
	if strings.Contains(first.shown.String(), "still up") || strings.Contains(first.shown.String(), "dlwb down bed") {
		t.Errorf("of a cluster that is gone the watching dlwb says:\n%s", first.shown)
	}
}

func TestDownSaysWhatIsSavedAfterARunAndYesAnswersForScripts(t *testing.T) {
	sample.Leave(t)
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 3, 0.01)+"\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/done', 'w').write('x')\n", "results: {paths: [outputs/]}\n")
	if r := b.run("run", "--json"); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stdout)
	}
	// A stop comes too late, which it says.
	if r := b.run("stop", "--plain"); r.code != 0 || !strings.Contains(r.stdout, ": it had already ended, at ") || !strings.Contains(r.stdout, " ago: run succeeded in ") {
		t.Errorf("stop: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	var said struct {
		EndedBefore time.Time `json:"ended_before"`
	}
	if r := b.run("stop", "--json"); json.Unmarshal([]byte(r.stdout), &said) != nil || said.EndedBefore.IsZero() {
		t.Errorf("stop: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	x := b.onTerminal(120, 30, "down", "--all")
	x.shows("Tear down bed?", "1 result file of run bed-", "[y/N] ")
	x.types("no\r")
	if code := <-x.ended; code != ExitFailed {
		t.Errorf("exit code %d\n%s", code, x.shown)
	}
	for _, wrong := range []string{"nothing was run", "no run was", "not saved"} {
		if strings.Contains(x.shown.String(), wrong) {
			t.Errorf("of a run that ended and is saved it says %q:\n%s", wrong, x.shown)
		}
	}
	x = b.onTerminal(120, 30, "down", "bed", "--yes")
	if code := <-x.ended; code != 0 || strings.Contains(x.shown.String(), "[y/N]") {
		t.Errorf("--yes: exit code %d\n%s", code, x.shown)
	}
}
