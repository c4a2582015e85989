//go:build linux

package localjob

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
)

// Who looks at a job has its lock for a moment. That is no second supervisor: the job
// once did not begin where both came at one time, and whoever waited for it did so for ever.
func TestALookKeepsNoJobFromBeginning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	if err := New(filepath.Dir(dir), "").handIn(dir, cloud.Job{Run: "r", Replicas: 1, Command: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	look := flock.New(filepath.Join(dir, "lock"))
	if is, err := look.TryRLock(); !is || err != nil {
		t.Fatal(is, err)
	}
	looked := make(chan error, 1)
	go func() {
		time.Sleep(50 * time.Millisecond)
		looked <- look.Close()
	}()
	if code := Main([]string{dir}); code != 0 {
		t.Errorf("the supervisor ended with %d", code)
	}
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
}

// A supervisor that begins while somebody looks is not one that is gone.
func TestASupervisorThatBeginsDuringALookIsNotGone(t *testing.T) {
	dir := t.TempDir()
	line, err := json.Marshal(told{0, job.Status{Kind: job.Started, Rank: -1}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		r := replica{dir: filepath.Join(dir, strconv.Itoa(i))}
		if err := os.Mkdir(r.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		lock := flock.New(filepath.Join(r.dir, "lock"))
		began := make(chan error, 1)
		go func() {
			if _, err := lock.TryLockContext(t.Context(), 50*time.Microsecond); err != nil {
				began <- err
				return
			}
			began <- os.WriteFile(filepath.Join(r.dir, "status"), append(line, '\n'), 0o600)
		}()
		for begun := false; !begun; {
			state, err := r.State(t.Context())
			if err != nil || state.Phase == job.Unknown {
				t.Fatalf("look %d: %+v, %v", i, state, err)
			}
			begun = state.Begun
		}
		if err := <-began; err != nil {
			t.Fatal(err)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		if state, err := r.State(t.Context()); err != nil || state.Phase != job.Unknown {
			t.Fatalf("look %d, after its end: %+v, %v", i, state, err)
		}
	}
}
