package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/dlwb/dlwb/cloud/objects"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
)

// bucketed is a Fetcher of a run that keeps its checkpoints in an S3 that nobody here
// made, where no record of it is.
func bucketed(t *testing.T) (*Fetcher, *objects.Bucket, *sender) {
	t.Helper()
	s := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(s.Close)
	for k, v := range map[string]string{"AWS_ENDPOINT_URL_S3": s.URL, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "",
		"AWS_PROFILE": "", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(k, v)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/lab-results", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := Run{ID: "train-1", Cluster: "train", LifeID: "1f0c", S3: "s3://lab-results/mine"}
	f := New(nil, Owner{Dir: func(id string) string { return filepath.Join(dir, id) }, Run: func(string) (Run, error) { return run, nil }})
	b, err := objects.Open(t.Context(), run.S3)
	if err != nil {
		t.Fatal(err)
	}
	return f, b, &sender{f: f, run: run, at: Site{Cluster: "train", Publish: func(event.Body) error { return nil }}}
}

// A run goes on from the newest checkpoint in S3 that is whole on every node, where
// none is here any more; one whose sending was cut off is not seen.
func TestCheckpointsComeBackFromS3AndHalfOnesDoNot(t *testing.T) {
	f, b, s := bucketed(t)
	ctx := context.Background()
	keep := func(node int, serial, name string, newest float64) {
		c := savedCkpt{Node: node, Name: name, In: "out/ckpt", Newest: newest, Dir: "train-1/checkpoints/" + nodeDir(node) + "/" + serial}
		at := filepath.Join(f.ckptHome(c), "out", "ckpt", name, "model")
		err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(name+" of "+nodeDir(node)), 0o600))
		if err = errors.Join(err, s.one(ctx, b, c)); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range []int{0, 1} {
		for i, name := range []string{"step-1", "step-2", "step-3"} {
			keep(node, string(rune('1'+i)), name, float64(i+1))
		}
	}
	keep(0, "4", "step-4", 4)
	if sets, err := b.Sets(ctx, "train/1f0c/train-1/checkpoints/node0"); err != nil || len(sets) != keptInS3 {
		t.Fatalf("%v %v", sets, err)
	}
	// Of step-5 node 1 has sent a file, and was cut off before the manifest.
	if _, err := b.Save(ctx, "train/1f0c/train-1/checkpoints/node1/000005", map[string]string{"out/ckpt/step-5/model": os.DevNull}, nil); err == nil {
		t.Fatal("a device was sent as a file")
	}
	for _, gone := range []string{"checkpoints", "checkpoints.json"} {
		if err := os.RemoveAll(filepath.Join(f.owner.Dir("train-1"), gone)); err != nil {
			t.Fatal(err)
		}
	}
	r := f.fromS3(ctx, s.at, "train-1")
	if len(r.Saved) != 2 || r.Saved[0].Name != "step-3" || r.Saved[1].Name != "step-3" {
		t.Fatalf("%+v", r.Saved)
	}
	for _, c := range r.Saved {
		got, err := os.ReadFile(filepath.Join(f.ckptHome(c), "out", "ckpt", "step-3", "model"))
		if err != nil || string(got) != "step-3 of "+nodeDir(c.Node) {
			t.Errorf("%q %v", got, err)
		}
	}
	if again := f.readCkpts("train-1"); len(again.Saved) != 2 {
		t.Errorf("it is not on record: %+v", again)
	}
}

// A bucket that is not there is told once, and keeps nothing from going on.
func TestABucketThatTakesNothingIsTold(t *testing.T) {
	f, _, s := bucketed(t)
	s.run.S3 = "s3://lab-none/x"
	f.owner.Run = func(string) (Run, error) { return s.run, nil }
	var told []string
	at := Site{Cluster: "train", Publish: func(b event.Body) error {
		if n, is := b.(event.Noticed); is {
			told = append(told, n.Text+" "+n.Next)
		}
		return nil
	}}
	away := f.sendAway(at, "train-1")
	for range 3 {
		away.send(savedCkpt{Name: "step-1", Dir: "train-1/checkpoints/node0/1"})
	}
	away.finish(t.Context())
	if len(told) != 1 || !strings.Contains(told[0], "there is no bucket lab-none") || !strings.Contains(told[0], "aws s3 mb s3://lab-none") {
		t.Errorf("%q", told)
	}
}

// Two people with one profile and one prefix: runs of one id, each of its own life,
// do not touch each other's checkpoints and results.
func TestTwoLivesWithRunsOfOneIDDoNotTouchEachOther(t *testing.T) {
	f, b, s := bucketed(t)
	ctx := context.Background()
	mine := s.run
	other := s.run
	other.LifeID = "77aa"
	for serial := 1; serial <= 4; serial++ {
		for _, run := range []Run{mine, other} {
			if run.LifeID == other.LifeID && serial == 1 {
				continue // mine has one more: who shares the sets drops it
			}
			s.run = run
			lieHome(t, f, serial, run.LifeID)
			if err := s.one(ctx, b, ckpt(serial)); err != nil {
				t.Fatal(run.LifeID, serial, err)
			}
		}
	}
	if _, err := s.open(ctx); err != nil {
		t.Error(err)
	}
	for _, run := range []Run{mine, other} {
		r, err := f.loadCkpts(ctx, run)
		if err != nil || len(r.Saved) != 1 {
			t.Fatalf("%s: %v %+v", run.LifeID, err, r)
		}
		if got, err := os.ReadFile(filepath.Join(f.ckptHome(r.Saved[0]), "out", "ckpt", r.Saved[0].Name, "model")); err != nil || string(got) != run.LifeID {
			t.Errorf("%s goes on from %q: %v", run.LifeID, got, err)
		}
	}
}

// ckpt is a checkpoint of node 0.
func ckpt(serial int) savedCkpt {
	return savedCkpt{Name: fmt.Sprint("step-", serial), In: "out/ckpt", Newest: float64(serial), Dir: fmt.Sprint("train-1/checkpoints/node0/", serial)}
}

// lieHome lays the one file of a checkpoint where it comes home to.
func lieHome(t *testing.T, f *Fetcher, serial int, text string) {
	t.Helper()
	c := ckpt(serial)
	at := filepath.Join(f.ckptHome(c), "out", "ckpt", c.Name, "model")
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// The only checkpoint is not removed for files in it that are called as manifests are,
// nor for what somebody else has laid beside it; and it is what a run goes on from.
func TestACheckpointWithFilesLikeManifestsIsKept(t *testing.T) {
	f, b, s := bucketed(t)
	ctx := context.Background()
	lieHome(t, f, 1, "weights")
	home := filepath.Join(f.ckptHome(ckpt(1)), "out", "ckpt", "step-1")
	for _, name := range []string{"000007.manifest.json", "a.manifest.json", "b.manifest.json"} {
		manifest := `{"version":1,"about":{"node":"0","newest":"9","in":"out/ckpt","checkpoint":"step-9"},"files":[]}`
		if err := os.WriteFile(filepath.Join(home, name), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.one(ctx, b, ckpt(1)); err != nil {
		t.Fatal(err)
	}
	for _, beside := range []string{"node0/zz", "node0/1", "node00/000001", "nodes/000001"} {
		about := map[string]string{"node": "0", "newest": "9", "in": "out/ckpt", "checkpoint": "step-9", objects.Life: s.run.LifeID}
		if _, err := b.Save(ctx, s.run.s3Checkpoints()+"/"+beside, map[string]string{"x": filepath.Join(home, "model")}, about); err != nil {
			t.Fatal(err)
		}
	}
	r, err := f.loadCkpts(ctx, s.run)
	if err != nil || len(r.Saved) != 1 || r.Saved[0].Name != "step-1" {
		t.Fatalf("%v %+v", err, r.Saved)
	}
	if got, err := os.ReadFile(filepath.Join(home, "model")); err != nil || string(got) != "weights" {
		t.Errorf("%q %v", got, err)
	}
}

// A checkpoint of which files are gone, as it makes room for newer ones, is not sent as
// a whole one.
func TestACheckpointThatIsBeingRemovedIsNotSentAsAWholeOne(t *testing.T) {
	f, b, s := bucketed(t)
	lieHome(t, f, 1, "weights")
	c := ckpt(1)
	c.Files = transfer.Sum{Count: 2}
	if err := s.one(t.Context(), b, c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was sent: %v", err)
	}
	if sets, err := ckptSets(t.Context(), b, s.run); err != nil || len(sets) != 0 {
		t.Errorf("%v %v", sets, err)
	}
	c.Files.Count = 1
	if err := s.one(t.Context(), b, c); err != nil {
		t.Error(err)
	}
}
