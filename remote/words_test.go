package remote

import (
	"testing"
	"time"
)

func TestSyncResultIsOneLineForPeople(t *testing.T) {
	for want, r := range map[string]SyncResult{
		"12 files, 48 KB to 2 nodes in 0.3 s":            {Files: 12, Bytes: 48e3, Nodes: 2, Changed: 2, Duration: 300 * time.Millisecond},
		"1 file, 1 byte to 1 node in 1.2 s":              {Files: 1, Bytes: 1, Nodes: 2, Changed: 1, Duration: 1234 * time.Millisecond},
		"nothing changed on 2 nodes in 0.05 s":           {Nodes: 2, Duration: 50 * time.Millisecond},
		"nothing changed on 1 node in 0.00 s":            {Nodes: 1},
		"1 file removed on 2 nodes in 0.1 s":             {Removed: 1, Nodes: 2, Changed: 2, Duration: 95 * time.Millisecond},
		"12,345 files, 1.2 GB to 3 nodes in 2 min 5 s":   {Files: 12345, Bytes: 1.23e9, Nodes: 3, Changed: 3, Duration: 125 * time.Second},
		"2 files, 1.0 KB to 1 node, 3 removed, in 10 s":  {Files: 2, Bytes: 1000, Removed: 3, Nodes: 1, Changed: 1, Duration: 9990 * time.Millisecond},
		"1 directory to 1 node in 9.9 s":                 {dirs: 1, Nodes: 1, Changed: 1, Duration: 9900 * time.Millisecond},
		"2 directories to 1 node in 1 min 0 s":           {dirs: 2, Nodes: 1, Changed: 1, Duration: 59600 * time.Millisecond},
		"records brought up to date on 1 node in 0.09 s": {Nodes: 1, Changed: 1, Duration: 94 * time.Millisecond},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSizesKeepTwoDigitsThatCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1.0 KB", 9949: "9.9 KB", 9950: "10 KB", 999_499: "999 KB",
		999_500: "1.0 MB", 48_000_000: "48 MB", 5e9: "5.0 GB", 2e12: "2.0 TB", 5e15: "5000.0 TB",
	} {
		if got := byteText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
