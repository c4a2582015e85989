//go:build linux

package supervise

import (
	"os"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/remote/agent/logs"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// When a rank ended is when that was seen: what it printed last may take long to be
// written, and so may the record.
func TestAnEndIsRecordedWithTheMomentAtWhichItWasSeen(t *testing.T) {
	r := runs.At(t.TempDir())
	log, err := logs.Open(r, "rank-0.log")
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	k, err := openRank(r, "0", log, read, &cgroup{})
	if err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	const seen = "100+4200"
	if err := k.ended(runs.Exit{Code: 3, Signal: "-"}, seen); err != nil {
		t.Fatal(err)
	}
	if got := r.Line("rank-0.exit"); !strings.HasPrefix(got, "3 - ") || !strings.HasSuffix(got, " "+seen) {
		t.Errorf("the record is %q", got)
	}
	if got := r.Line("status"); got != seen+" rank 0 ended 3 -" {
		t.Errorf("the status says %q", got)
	}
}
