package transfer

import (
	"testing"
	"time"
)

func TestSyncResultIsOneLineForPeople(t *testing.T) {
	for want, r := range map[string]SyncResult{
		"12 files, 48 kB to 2 nodes in 0.3s":           {Files: 12, Bytes: 48e3, Nodes: 2, Changed: 2, Duration: 300 * time.Millisecond},
		"1 file, 1 B to 1 node in 1.2s":                {Files: 1, Bytes: 1, Nodes: 2, Changed: 1, Duration: 1234 * time.Millisecond},
		"nothing changed on 2 nodes in 50ms":           {Nodes: 2, Duration: 50 * time.Millisecond},
		"nothing changed on 1 node in 0s":              {Nodes: 1},
		"1 file removed on 2 nodes in 95ms":            {Removed: 1, Nodes: 2, Changed: 2, Duration: 95 * time.Millisecond},
		"12,345 files, 1.2 GB to 3 nodes in 2m05s":     {Files: 12345, Bytes: 1.23e9, Nodes: 3, Changed: 3, Duration: 125 * time.Second},
		"2 files, 1 kB to 1 node, 3 removed, in 9.9s":  {Files: 2, Bytes: 1000, Removed: 3, Nodes: 1, Changed: 1, Duration: 9990 * time.Millisecond},
		"1 directory to 1 node in 9.9s":                {dirs: 1, Nodes: 1, Changed: 1, Duration: 9900 * time.Millisecond},
		"2 directories to 1 node in 59s":               {dirs: 2, Nodes: 1, Changed: 1, Duration: 59600 * time.Millisecond},
		"records brought up to date on 1 node in 94ms": {Nodes: 1, Changed: 1, Duration: 94 * time.Millisecond},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
