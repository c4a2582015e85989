package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	s3sets "github.com/dlwb/dlwb/cloud/objects"
)

// checkpointingScript writes a whole checkpoint and one that stays half until the
// end, when the other is seen home.
const checkpointingScript = `
import os, time
os.makedirs("out/ckpt/step-1", exist_ok=True)
os.makedirs("out/ckpt/.step-2", exist_ok=True)
open("out/ckpt/step-1/model", "wb").write(b"weights" * 1000)
open("out/ckpt/.step-2/model", "wb").write(b"half")
print("step: 1 loss: 0.5", flush=True)
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.1)
open("out/done", "w").write("x")
`

// What a run writes is in S3 besides, its checkpoints while it goes on, byte for byte,
// and the nodes have no credentials for it.
func TestWhatARunWritesIsInS3Besides(t *testing.T) {
	s := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/lab-results", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); err != nil {
		t.Fatal(err)
	}
	b := newBedAlone(t)
	for k, v := range map[string]string{"AWS_ENDPOINT_URL_S3": s.URL, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "s3cretOfTheLaptop",
		"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(k, v) // for this process, which looks into the bucket
		b.env = append(b.env, k+"="+v)
	}
	gate := filepath.Join(b.dir, "gate")
	b.write("train.py", checkpointingScript)
	b.write("dlwb.yaml", fmt.Sprintf("name: bed\nprovider: local\nmachines: {count: 1}\nrun:\n  engine: plain\n  command: train.py\n  env: {GO: %q}\n"+
		"results: {paths: [out/done], checkpoints: out/ckpt, s3: \"s3://lab-results/mine\"}\n", gate))
	d := b.start("run", "--json")
	saved := d.await("the checkpoint", func(e printedEvent) bool { return e["event"] == "checkpoint" })
	bucket, err := s3sets.Open(t.Context(), "s3://lab-results/mine")
	if err != nil {
		t.Fatal(err)
	}
	run := saved["run"].(string)
	at, sets := "", []string(nil)
	for end := time.Now().Add(time.Minute); len(sets) == 0; time.Sleep(100 * time.Millisecond) {
		lives, _ := bucket.Dirs(t.Context(), "bed") // there is one life of the cluster
		at = path.Join(append(lives, run)...)
		if sets, err = bucket.Sets(t.Context(), at+"/checkpoints/node0"); err != nil || time.Now().After(end) {
			t.Fatal("the checkpoint is not in S3 while the run goes on: ", err)
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.await("where the results are", func(e printedEvent) bool {
		text, _ := e["text"].(string)
		return strings.Contains(text, "the results are in s3://lab-results/mine/"+at+"/results: 1 file")
	})
	if code := d.end(); code != 0 {
		t.Error("exit code", code)
	}
	back := filepath.Join(t.TempDir(), "back")
	if m, err := bucket.Load(t.Context(), sets[0], back); err != nil || m.About["checkpoint"] != "step-1" {
		t.Errorf("%v %+v", err, m)
	}
	want := sha256.Sum256([]byte(strings.Repeat("weights", 1000)))
	if got, err := os.ReadFile(filepath.Join(back, "out/ckpt/step-1/model")); err != nil || hexOf(got) != hex.EncodeToString(want[:]) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	if m, found, err := bucket.Manifest(t.Context(), at+"/results"); err != nil || !found || len(m.Files) != 1 || m.Files[0].Path != "out/done" {
		t.Errorf("%v %+v", err, m)
	}
}

func hexOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
