package follow

import (
	"testing"
	"time"
)

func TestTroubleBeginsWhenARankMayWaitForOneThatIsGone(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for name, c := range map[string]struct {
		node   nodeEnd
		broken time.Time
		want   time.Time
	}{
		"all goes on":                           {},
		"a rank failed":                         {broken: at(200), want: at(200)},
		"a node is gone":                        {node: nodeEnd{lost: true}, broken: at(200), want: at(100)},
		"its machine had said that it would":    {node: nodeEnd{lost: true, stopping: []string{reasonNotice + "soon"}}},
		"stopped by request":                    {node: nodeEnd{stopping: []string{Asked + "enough"}}},
		"the run hung after what it said last":  {node: nodeEnd{stopping: []string{reasonHung + "rank 0"}}, want: at(50)},
		"a rank failed, and the others hung on": {node: nodeEnd{stopping: []string{reasonHung + "rank 0"}}, broken: at(40), want: at(40)},
	} {
		w := &Watch{nodes: []nodeEnd{{}, c.node}, heard: []time.Time{at(300), at(100)}, broken: c.broken,
			printed: map[int]time.Time{0: at(50), 1: at(30)}}
		if got := w.Trouble(); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A log that still comes is not given up, however long it takes; one that comes without
// end is.
func TestTheRestOfALogIsWaitedForWhileItComes(t *testing.T) {
	at, limit := time.Unix(0, 0), 30*time.Second
	var d drain
	for n := range int64(20) { // a little every 20 seconds
		if at = at.Add(20 * time.Second); d.over(at, n, limit) {
			t.Fatalf("given up after %s, while it came", at.Sub(time.Unix(0, 0)))
		}
	}
	if d.over(at.Add(limit), 19, limit) {
		t.Error("given up at the limit")
	}
	if !d.over(at.Add(limit+time.Second), 19, limit) {
		t.Error("waited for, while nothing came")
	}
	for n := int64(20); !d.over(at, n, limit); n++ {
		if at = at.Add(20 * time.Second); at.Sub(time.Unix(0, 0)) > time.Hour {
			t.Fatal("waited for without end")
		}
	}
}

// A rank that was ended, or that ended badly, leaves what it wrote as it is.
func TestARunIsBrokenByAnyEndThatIsNotGood(t *testing.T) {
	for end, want := range map[rankEnd]bool{{}: false, {code: 1}: true, {code: 143, signal: "TERM", byUs: true}: true, {code: 143, byUs: true}: true} {
		w := &Watch{ends: map[int]rankEnd{0: {}, 1: end}}
		if got := w.Broke(); got != want {
			t.Errorf("%+v: %v", end, got)
		}
	}
	if (&Watch{}).Broke() {
		t.Error("nothing has ended")
	}
}
