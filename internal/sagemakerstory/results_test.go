//go:build linux

package sagemakerstory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakesagemaker"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// writer writes results in each place that there is, says their hashes, and then does
// what its last word says.
const writer = `import hashlib, os, sys, time
def put(name, dir, size):
    os.makedirs(os.path.dirname(os.path.join(dir, name)), exist_ok=True)
    data = os.urandom(size)
    with open(os.path.join(dir, name), "wb") as f:
        f.write(data)
    print("wrote", name, hashlib.sha256(data).hexdigest(), flush=True)
if os.environ["RANK"] == "0":
    put("outputs/deep/a b.bin", ".", 300000)
    os.symlink("a b.bin", "outputs/deep/latest")
    put("model/weights.bin", os.path.dirname(os.environ["SM_MODEL_DIR"]), 2000000)
put("node%s/of.bin" % os.environ["RANK"], os.path.dirname(os.environ["DLWB_RESULTS"]), 1000)
print("ready", flush=True)
if sys.argv[1] == "fail":
    while not os.path.exists(sys.argv[2]): # who fails ends the other, which may write still
        time.sleep(0.05)
    sys.exit(3)
if sys.argv[1] == "stay":
    time.sleep(600)
`

var wrote = regexp.MustCompile(`(?m)^wrote (.*) ([0-9a-f]{64})$`)

// home looks whether each file that the ranks say they wrote is here as it was.
func (p *project) home(run string, want int) {
	p.T.Helper()
	dir := filepath.Join(p.Dir, "../state/runs", run, "results")
	n := 0
	for name, log := range p.Logs() {
		for _, m := range wrote.FindAllStringSubmatch(log, -1) {
			n++
			text, err := os.ReadFile(filepath.Join(dir, m[1]))
			sum := sha256.Sum256(text)
			if err != nil || hex.EncodeToString(sum[:]) != m[2] {
				p.T.Errorf("%s of %s: it is not as it was written: %v", m[1], name, err)
			}
		}
	}
	if n != want {
		p.T.Errorf("%d files were written, not %d", n, want)
	}
	if to, err := os.Readlink(filepath.Join(dir, "outputs/deep/latest")); err == nil && to != "a b.bin" {
		p.T.Errorf("the link leads to %q", to)
	}
	if _, err := os.Stat(filepath.Join(dir, "outputs/old.txt")); err == nil {
		p.T.Error("what came with the code came home as a result")
	}
}

func (p *project) resultsProfile(word string) {
	p.T.Helper()
	p.Write("train.py", writer)
	if err := os.Mkdir(filepath.Join(p.Dir, "outputs"), 0o755); err != nil {
		p.T.Fatal(err)
	}
	p.Write("outputs/old.txt", "it came with the code")
	p.profile("sagemaker", "{engine: plain, command: train.py "+word+"}", "results: {paths: [outputs/]}\n")
}

func runOf(t *testing.T, events []map[string]any) string {
	t.Helper()
	run, _ := jobstory.EventOf(t, events, "run_started")["run"].(string)
	return run
}

// What a run writes comes home at its end, whichever end: results, the model, and what
// each host has in DLWB_RESULTS.
func TestWhatAJobWritesComesHomeWhateverItsEnd(t *testing.T) {
	sample.Leave(t)
	for _, end := range []string{"well", "fail"} {
		t.Run(end, func(t *testing.T) {
			p := newProject(t)
			// S3 breaks off in the middle of the first answers.
			p.fake.Short = func(_ string, nth int) bool { return nth == 1 }
			all := filepath.Join(t.TempDir(), "all-is-written")
			p.resultsProfile(end + " " + all)
			ctx, cancel := context.WithCancel(t.Context())
			told := make(chan struct{})
			go func() {
				defer close(told)
				for len(p.fake.Jobs()) == 0 || p.fake.Said(p.fake.Jobs()[0], "ready") < 2 {
					if ctx.Err() != nil {
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
				if err := os.WriteFile(all, nil, 0o600); err != nil {
					t.Error(err)
				}
			}()
			out, _ := p.Try("run", "--json", "--down")
			cancel()
			<-told
			events := jobstory.Said(t, out)
			got := jobstory.EventOf(t, events, "results")
			if got["files"].(float64) < 4 || got["partial"] == true {
				t.Errorf("%v", got)
			}
			p.home(runOf(t, events), 4)
			p.clean()
		})
	}
	t.Run("stopped by down", func(t *testing.T) {
		p := newProject(t)
		p.resultsProfile("stay")
		p.Must("run", "--plain", "--detach")
		p.Await("all is written", func() bool { return p.fake.Said(p.fake.Jobs()[0], "ready") == 2 })
		p.Must("down", "jobs", "--plain")
		runs, _ := filepath.Glob(filepath.Join(p.Dir, "../state/runs/*"))
		p.home(filepath.Base(runs[0]), 4)
		p.clean()
	})
}

// Where S3 gives nothing, that is said, nothing is taken for home, and it can be had
// later: also when the cluster is gone.
func TestOutputThatDoesNotComeIsToldAndCanBeHadLater(t *testing.T) {
	sample.Leave(t)
	p := newProject(t)
	p.resultsProfile("well")
	p.fake.Answer(func(call string, _ int) *fakesagemaker.Error {
		if call == "GetObject" {
			return &fakesagemaker.Error{Status: 403, Code: "AccessDenied", Says: "no"}
		}
		return nil
	})
	out, err := p.Try("run", "--json")
	if err == nil {
		t.Error("a run whose results did not come home ends as well")
	}
	events := jobstory.Said(t, out)
	run := runOf(t, events)
	if out := p.Must("down", "jobs", "--plain"); !strings.Contains(out, "nothing is left") {
		t.Errorf("down says\n%s", out)
	}
	p.fake.Answer(nil)
	if out := p.Must("pull", run); !strings.Contains(out, "files") {
		t.Errorf("pull says\n%s", out)
	}
	p.home(run, 4)
	p.clean()
}
