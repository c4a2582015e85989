package remote

import (
	"testing"
	"time"
)

// Each line that an agent writes is read, and one of a newer agent is passed over.
func TestTheLinesOfAStatusFileAreRead(t *testing.T) {
	at, up := time.Unix(1_800_000_000, 0), 1234*time.Second+560*time.Millisecond
	for line, want := range map[string]Status{
		"rank 3 started 42":               {Kind: RankStarted, Rank: 3, PID: 42},
		"rank 3 failed 1 -":               {Kind: RankFailed, Rank: 3, Code: 1},
		"rank 3 failed 143 TERM":          {Kind: RankFailed, Rank: 3, Code: 143, Signal: "TERM"},
		"rank 3 ended 0 -":                {Kind: RankEnded, Rank: 3},
		"rank 3 starved 2":                {Kind: RankStarved, Rank: 3, Code: 2},
		"left python3, a name with words": {Kind: Left, Rank: -1, Why: "python3, a name with words"},
		"stopping asked: by hand":         {Kind: Stopping, Rank: -1, Why: "asked: by hand"},
		"peer node1 not reached":          {Kind: PeerTold, Rank: -1, Why: "node1 not reached"},
		"ended 7":                         {Kind: Ended, Rank: -1, Code: 7},
	} {
		want.Time, want.Uptime = at, up
		if got, ok := ParseStatus("1800000000+123456 " + line); !ok || got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "rank 3 failed", "rank 3 failed x -", "rank -1 ended 0 -", "rank 3 restarted 1 -", "left", "news of a later one"} {
		if got, ok := ParseStatus("1800000000+123456 " + line); ok {
			t.Errorf("%q is read: %+v", line, got)
		}
	}
}
