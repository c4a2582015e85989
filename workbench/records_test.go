package workbench

import (
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/store"
)

// A path that is no UTF-8 would be another one: results were put into a directory of
// that name, beside the project.
func TestTheRecordOfARunHasItsPathsByteForByte(t *testing.T) {
	w, err := Open(Options{Dir: filepath.Join(t.TempDir(), "state")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if _, err := w.db.PutCluster(store.Cluster{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := w.putRun(store.Run{ID: "r", Cluster: "a"}, runData{To: "/caf\xe9/results", State: "/caf\xe9/state"}); err != nil {
		t.Fatal(err)
	}
	if _, d, err := w.runRecord("r"); err != nil || d.To != "/caf\xe9/results" || d.State != "/caf\xe9/state" {
		t.Errorf("%q and %q, %v", d.To, d.State, err)
	}
}
