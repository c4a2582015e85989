package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

const dataScript = `
import hashlib, json, os
def read(name):
    return "".join(open(os.path.join(d, f)).read() for d, _, fs in sorted(os.walk(os.environ[name])) for f in sorted(fs))
state = os.path.join(os.environ["DLWB_STATE"], "count")
n = int(open(state).read()) + 1 if os.path.exists(state) else 1
open(state, "w").write(str(n))
assert os.environ["SM_CHANNEL_TRAIN"] == os.environ["DLWB_CHANNEL_TRAIN"]
open(os.path.join(os.environ["SM_MODEL_DIR"], "model"), "w").write("m")
print(json.dumps({"train": read("DLWB_CHANNEL_TRAIN"), "labels": read("DLWB_CHANNEL_LABELS"), "one": read("SM_CHANNEL_ONE"),
  "channels": os.environ["SM_CHANNELS"], "host": os.environ["SM_CURRENT_HOST"], "runs": n, "code": os.path.exists("digits")}))
`

// served counts what a server was asked for.
type served struct{ asked, sent atomic.Int32 }

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sent.Add(1)
	fmt.Fprint(w, "labels\n")
}

func TestInputsReachEveryNodeOnceAndStateSurvivesTheMachines(t *testing.T) {
	b := newBed(t)
	from := &served{}
	server := httptest.NewServer(from)
	t.Cleanup(server.Close)
	if err := os.MkdirAll(filepath.Join(b.dir, "digits", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("digits/a.csv", "a\n")
	b.write("digits/deep/b.csv", "b\n")
	b.write("one[1].csv", "one\n")
	b.write(".gitignore", "*.csv\ndigits/\n") // of the code, not of the data
	sum := sha256.Sum256([]byte("one\n"))
	b.profile(dataScript, fmt.Sprintf("state: kept\ndata:\n  train: digits\n  labels: %s/labels.csv\n  one: {from: 'one[1].csv', sha256: %s}\n", server.URL, hex.EncodeToString(sum[:])))

	r := b.run("run", "--json")
	b.checkInputs(r, 1)
	if n := from.sent.Load(); n != 1 {
		t.Errorf("two nodes fetched it %d times", n)
	}
	if got, err := os.ReadFile(filepath.Join(r.one(t, "results")["dir"].(string), "node0", "model", "model")); err != nil || string(got) != "m" {
		t.Errorf("the model did not come home: %q, %v", got, err)
	}
	r = b.run("run", "--json")
	b.checkInputs(r, 2)
	if n := from.sent.Load(); n != 1 {
		t.Errorf("what is unchanged was fetched again: %d", n)
	}
	for _, e := range r.all("step_ended") {
		if e["step"] == "data" && e["skipped"] != true {
			t.Errorf("unchanged inputs were not skipped: %v", e)
		}
	}
	if b.run("down").code != 0 {
		t.Fatal("it could not be taken down")
	}
	b.checkInputs(b.run("run", "--down", "--json"), 3) // new machines
}

// checkInputs holds what each rank printed against what it should have found.
func (b *bed) checkInputs(r result, runs int) {
	b.t.Helper()
	if r.code != 0 {
		b.t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	run := r.one(b.t, "run_started")["run"].(string)
	for rank := range 2 {
		text, err := os.ReadFile(filepath.Join(b.home, "state", "runs", run, fmt.Sprintf("rank-%d.log", rank)))
		want := fmt.Sprintf(`{"train": "a\nb\n", "labels": "labels\n", "one": "one\n", "channels": "[\"train\",\"labels\",\"one\"]", "host": "algo-%d", "runs": %d, "code": false}`, rank+1, runs)
		if err != nil || !strings.Contains(string(text), want) {
			b.t.Errorf("rank %d: %v\n%s\nwant\n%s", rank, err, text, want)
		}
	}
}

func TestAnInputThatIsNotWhatTheProfileNamesStartsNothing(t *testing.T) {
	b := newBed(t)
	server := httptest.NewServer(&served{})
	t.Cleanup(server.Close)
	zeros := strings.Repeat("0", 64)
	b.profile("print(1)", fmt.Sprintf("data: {labels: {from: %s/labels.csv, sha256: %s}}\n", server.URL, zeros))
	r := b.run("run", "--down", "--json")
	if r.code == 0 || !strings.Contains(r.stdout, "SHA-256") || len(r.all("run_started")) > 0 {
		t.Errorf("exit code %d\n%s", r.code, r.stdout)
	}
	b.write("x.csv", "x")
	b.profile("print(1)", fmt.Sprintf("data: {labels: {from: x.csv, sha256: %s}}\n", zeros))
	if r := b.run("run", "--down", "--json"); r.code == 0 || !strings.Contains(r.stdout, "the profile says "+zeros) {
		t.Errorf("exit code %d\n%s", r.code, r.stdout)
	}
	b.profile("print(1)", "data: {labels: ../elsewhere}\n")
	if err := os.MkdirAll(filepath.Join(b.home, "elsewhere"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := b.run("plan"); r.code == 0 || !strings.Contains(r.stderr, "may send only what lies there") || !strings.Contains(r.stderr, "dlwb.yaml:7:16") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

// Each node has what a prefix of a bucket has, and none has credentials. What can't be
// read is told by the plan, before anything is started.
func TestAChannelInS3ReachesEveryNode(t *testing.T) {
	web := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(web.Close)
	put := func(path, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, web.URL+path, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatal(path, reply, err)
		}
		_ = reply.Body.Close()
	}
	put("/lab-data", "")
	put("/lab-data/digits/a.csv", "a\n")
	put("/lab-data/digits/deep/b%20c.csv", "b\n")
	put("/lab-data/other.csv", "x\n")
	b := newBed(t)
	b.env = append(b.env, "AWS_ENDPOINT_URL_S3="+web.URL, "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY=s3cretOfTheLaptop",
		"AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true")
	const script = "import os\nd = os.environ['DLWB_CHANNEL_TRAIN']\n" +
		"print(sorted((os.path.relpath(os.path.join(at, f), d), open(os.path.join(at, f)).read()) for at, _, fs in os.walk(d) for f in fs), 'AWS_SECRET_ACCESS_KEY' in os.environ)\n"
	b.profile(script, "data: {train: 's3://lab-data/digits'}\n")
	check := func(want string, skipped bool) {
		t.Helper()
		r := b.run("run", "--json")
		if r.code != 0 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		run := r.one(t, "run_started")["run"].(string)
		for rank := range 2 {
			text, err := os.ReadFile(filepath.Join(b.home, "state", "runs", run, fmt.Sprintf("rank-%d.log", rank)))
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("rank %d: %v\n%s\nwant\n%s", rank, err, text, want)
			}
		}
		for _, e := range r.all("step_ended") {
			if e["step"] == "data" && (e["skipped"] == true) != skipped {
				t.Errorf("the step of the data: %v", e)
			}
		}
		if strings.Contains(r.stdout+r.stderr, "X-Amz-Signature") {
			t.Error("a signed address is told")
		}
	}
	check(`[('a.csv', 'a\n'), ('deep/b c.csv', 'b\n')] False`, false)
	check(`[('a.csv', 'a\n'), ('deep/b c.csv', 'b\n')] False`, true)
	put("/lab-data/digits/a.csv", "changed\n")
	check(`[('a.csv', 'changed\n'), ('deep/b c.csv', 'b\n')] False`, false)

	b.profile(script, "data: {train: 's3://lab-data/digitz'}\n")
	r := b.run("run", "--json")
	if r.code != 1 || !strings.Contains(r.stdout+r.stderr, "there is no object at s3://lab-data/digitz") || len(r.all("run_started")) > 0 {
		t.Errorf("a prefix that is not there: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
