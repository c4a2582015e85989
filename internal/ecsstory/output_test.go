//go:build linux

package ecsstory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// writer writes to S3 as a training library does, by the address in its environment
// and by that among its arguments, and tells the hashes.
const writer = `import hashlib, os, sys, time, urllib.request
rank, end, bucket = os.environ["RANK"], sys.argv[1], sys.argv[2]
def put(at, name, size):
    data = os.urandom(size)
    url = os.environ["S3"] + "/" + at.removeprefix("s3://") + "/" + name.replace(" ", "%20")
    urllib.request.urlopen(urllib.request.Request(url, data=data, method="PUT")).read()
    print("wrote", hashlib.sha256(data).hexdigest(), name, flush=True)
put(os.environ["DLWB_OUTPUT"], "checkpoint_00000%s/model of %s.pt" % (rank, rank), 300000)
put(bucket, "node" + rank + "/empty", 0)
print("step 1/1 loss 0.5000", flush=True)
if end == "detach":
    open(os.environ["MARK"] + rank, "w").close()
    time.sleep(600)
sys.exit(3 if end == "fail" else 0)
`

var wrote = regexp.MustCompile(`(?m)^wrote ([0-9a-f]{64}) (.*)$`)

// bucket is an S3 with one bucket, for a project.
func (p *project) bucket(name string) (url string) {
	p.T.Helper()
	s := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	p.T.Cleanup(s.Close)
	r, err := http.NewRequestWithContext(p.T.Context(), http.MethodPut, s.URL+"/"+name, http.NoBody)
	if err == nil {
		_, err = http.DefaultClient.Do(r)
	}
	if err != nil {
		p.T.Fatal(err)
	}
	p.Env = append(p.Env, "AWS_ENDPOINT_URL_S3="+s.URL)
	return s.URL
}

// home looks whether each file that a rank has written is in a directory as it was.
func (p *project) home(dir string, want int) {
	p.T.Helper()
	n := 0
	for _, log := range p.Logs() {
		for _, m := range wrote.FindAllStringSubmatch(log, -1) {
			n++
			text, err := os.ReadFile(filepath.Join(dir, m[2]))
			if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != m[1] {
				p.T.Errorf("%s is not as it was written: %v", m[2], err)
			}
		}
	}
	if n != want {
		p.T.Errorf("%d files were written, not %d", n, want)
	}
}

// What a run writes to its place in S3 comes home at its end, whichever end, and again by
// dlwb pull when its cluster is gone; and it stays there.
func TestWhatARunWritesToItsPlaceInS3ComesHomeWhateverItsEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"well", "fail", "detach"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			url := p.bucket("ml-lab")
			p.Write("train.py", writer)
			mark := filepath.Join(t.TempDir(), "written")
			p.profile("ecs", `{engine: plain, command: "train.py `+end+` {bucket}", env: {S3: "`+url+`", MARK: "`+mark+`"}}`, "results: {s3: s3://ml-lab/runs/}\n")
			plan := p.Must("plan")
			for _, want := range []string{"s3://ml-lab/runs", "arn:aws:s3:::ml-lab/runs/*", "s3:PutObject", "DLWB_OUTPUT"} {
				if !strings.Contains(plan, want) {
					t.Errorf("%q is not in the plan:\n%s", want, plan)
				}
			}
			if strings.Contains(plan, "is brought home: it has to go") {
				t.Errorf("the plan warns of what comes home:\n%s", plan)
			}
			var out, receipt string
			var err error
			if end == "detach" { // nobody looks before the removal
				out = p.Must("run", "--json", "--detach")
				p.Await("both ranks have written", func() bool { all, _ := filepath.Glob(mark + "*"); return len(all) == 2 })
				receipt = p.Must("down", "jobs", "--json")
			} else {
				out, err = p.Try("run", "--json", "--down")
				receipt = out
			}
			if (err != nil) != (end == "fail") {
				t.Errorf("%v\n%s", err, out)
			}
			events := jobstory.Said(t, receipt)
			if got := jobstory.EventOf(t, events, "results"); fmt.Sprint(got["files"]) != "4" {
				t.Errorf("home came %v", got)
			}
			run, _ := jobstory.EventOf(t, events, "run_ended")["run"].(string)
			p.home(filepath.Join(p.Dir, "../state/runs", run, "results"), 4)
			if !strings.Contains(receipt, "stays in s3://ml-lab/runs/jobs/") || !strings.Contains(receipt, run) {
				t.Errorf("where it stays is not said:\n%s", receipt)
			}
			p.clean()
			again := filepath.Join(t.TempDir(), "again")
			p.Must("pull", run, again)
			p.home(again, 4)
		})
	}
}

// Whether the containers may write to the bucket is known before anything is made.
func TestABucketThatCanNotBeWrittenToIsFoundBefore(t *testing.T) {
	t.Parallel()
	const run = "{engine: plain, command: train.py 0.01}"
	p := newProject(t)
	p.bucket("ml-lab")
	p.fake.Refuse("s3:PutObject")
	p.profile("ecs", run, "results: {s3: s3://ml-lab}\n")
	for _, want := range []string{"the role of the instance profile ecsInstanceRole may not s3:PutObject on arn:aws:s3:::ml-lab/*", "the policy that the plan shows"} {
		if out, err := p.Try("run", "--plain"); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v\n%s", err, out)
		}
	}
	p.profile("ecs", run, "results: {s3: s3://another/x}\n")
	if out, err := p.Try("run", "--plain"); err == nil || !strings.Contains(out, "there is no bucket another") || !strings.Contains(out, "aws s3 mb s3://another") {
		t.Errorf("%v\n%s", err, out)
	}
	p.clean()
}

// Without a place in S3 nothing comes home, and that is said.
func TestWithoutAPlaceInS3NothingComesHome(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	p := newProject(t)
	p.profile("ecs", `{engine: plain, command: "train.py 0.01 {bucket}"}`, "")
	if plan := p.Must("plan"); !strings.Contains(plan, "with results.s3 what it writes to DLWB_OUTPUT comes home") {
		t.Errorf("%s", plan)
	}
	events := jobstory.Said(t, p.Must("run", "--json"))
	run, _ := jobstory.EventOf(t, events, "run_ended")["run"].(string)
	if out, err := p.Try("pull", run, t.TempDir()); err == nil || !strings.Contains(out, "what the run writes stays in the containers") || !strings.Contains(out, "results.s3") {
		t.Errorf("%v\n%s", err, out)
	}
	p.Must("down", "jobs", "--plain")
	p.clean()
}
