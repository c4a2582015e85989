//go:build linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// among is one of several hosts with one home.
func among(home, id string) *Host {
	h := New(home)
	h.id = id
	return h
}

// asks is a request of a cluster: its life is its name twice.
func asks(do hostclaim.Act, cluster string) hostclaim.Request {
	r := request(do, cluster+cluster)
	r.Cluster = cluster
	return r
}

// has puts in a home what a cluster has there, as its own.
func has(t *testing.T, home, cluster string) {
	t.Helper()
	put(t, home, "dlwb/"+cluster+"/code/train.py", "x")
	put(t, home, ".dlwb/runs/run-"+cluster+"/life", cluster+cluster+"\n")
	put(t, home, ".dlwb/sync/"+cluster, "x")
	put(t, home, ".dlwb/bin/stop", "x")
}

// Hosts with one home are had by one cluster each. Which of them goes first is no matter:
// what the others have stays, and with the last one everything goes.
func TestHostsWithOneHomeAreTakenByOneClusterEach(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a", "c"}} {
		home := t.TempDir()
		put(t, home, ".ssh/authorized_keys", "ssh-ed25519 AAAA me\n")
		before := tree(t, home)
		at := map[string]*Host{}
		for i, cluster := range []string{"a", "b", "c"} {
			at[cluster] = among(home, "host"+cluster)
			take := asks(hostclaim.Take, cluster)
			take.Meeting, take.Among = "meeting"+cluster, 1
			if a := at[cluster].Do(take); a.Failed != "" || !a.New || a.Claim.Cluster != cluster || a.Beside != (i > 0) {
				t.Fatalf("%s: %+v", cluster, a)
			}
			has(t, home, cluster)
		}
		for _, cluster := range []string{"a", "b", "c"} { // nobody's marks were taken away
			seek := asks(hostclaim.Seek, cluster)
			seek.Meeting, seek.Among = "meeting"+cluster, 1
			if a := at[cluster].Do(seek); a.Failed != "" || len(a.Homes) != 1 || len(a.Codes) != 1 {
				t.Errorf("%s: %+v", cluster, a)
			}
		}
		keyOf := map[string]string{"a": ".dlwb/peer_key", "b": ".dlwb/peer_key.bb", "c": ".dlwb/peer_key.cc"}
		for cluster, life := range map[string]string{"a": "", "b": "bb", "c": "cc"} {
			for range 2 { // again changes nothing
				must(t, at[cluster].Pair(life, map[string]string{"peer_key": "of " + cluster}, hostclaim.PeerLine+"ssh-ed25519 "+cluster+" dlwb-peer"))
			}
		}
		if err := at["a"].Pair("dd", nil, hostclaim.PeerLine+"ssh-ed25519 d dlwb-peer"); err == nil {
			t.Error("who has no host here has a key")
		}
		if a := at["b"].Do(asks(hostclaim.Take, "a")); a.New || a.Claim.Cluster != "b" || a.Namesake {
			t.Errorf("a host was taken twice: %+v", a)
		}
		other := asks(hostclaim.Take, "a")
		other.Life = "another"
		if a := among(home, "hostd").Do(other); a.New || a.Claim.Life != "aa" || !a.Namesake || exists(filepath.Join(home, claimsDir, "hostd")) {
			t.Errorf("a namesake was let in: %+v", a)
		}
		if out := old(t, home, "claim", "zz", ""); strings.Contains(out, "claimed") {
			t.Errorf("an older dlwb took the home: %s", out)
		}
		gone := map[string]bool{}
		for _, cluster := range order {
			a := at[cluster].Do(asks(hostclaim.Remove, cluster))
			if a.Failed != "" || a.Claim.Cluster != cluster || len(a.Left.Others) == 0 && len(gone) < 2 {
				t.Errorf("%s: %+v", cluster, a)
			}
			gone[cluster] = true
			for _, c := range order {
				for _, name := range []string{"dlwb/" + c + "/code/train.py", ".dlwb/runs/run-" + c + "/life", claimsDir + "/host" + c} {
					if exists(filepath.Join(home, name)) == gone[c] {
						t.Errorf("when %s had gone as one of %v, %s is %s", cluster, order, name, map[bool]string{true: "still there", false: "gone"}[gone[c]])
					}
				}
			}
			if len(gone) == len(order) {
				break
			}
			for c, key := range keyOf {
				lines := 0
				if holds(filepath.Join(home, ".ssh/authorized_keys"), func(line string) bool {
					if strings.Contains(line, " "+c+" dlwb-peer") {
						lines++
					}
					return false
				}); exists(filepath.Join(home, key)) == gone[c] || lines != map[bool]int{false: 1, true: 0}[gone[c]] {
					t.Errorf("%v are gone, and the key of %s is not as it should be: %d lines", gone, c, lines)
				}
			}
			for _, place := range a.Left.Places {
				if place.Path == authorizedKeys {
					t.Errorf("%s is gone, and is said to have left a line of its own", cluster)
				}
			}
			if first := at["a"].first(); gone[first.Cluster] || !first.Held() {
				t.Errorf("%v are gone, and the home is said to be %+v", gone, first)
			}
			if !exists(filepath.Join(home, ".dlwb/bin/stop")) {
				t.Error("what all need is gone")
			}
		}
		if after := tree(t, home); after != before {
			t.Errorf("left:\n%s", after)
		}
	}
}

// Clusters come and go at once in one home: none loses what it has put there, and nothing is
// left at the end.
func TestClustersComeAndGoAtOnceInOneHome(t *testing.T) {
	home := t.TempDir()
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			cluster := fmt.Sprintf("c%d", i)
			h := among(home, "host"+cluster)
			for round := range 25 {
				a := h.Do(asks(hostclaim.Take, cluster))
				if a.Failed != "" || !a.New {
					t.Errorf("%s, round %d: %+v", cluster, round, a)
					return
				}
				life := ""
				if a.Beside {
					life = cluster + cluster
				}
				key, line := "peer_key", hostclaim.PeerLine+"ssh-ed25519 "+cluster+" dlwb-peer"
				if err := h.Pair(life, map[string]string{key: cluster}, line); err != nil {
					t.Errorf("%s, round %d: %v", cluster, round, err)
				}
				mine := filepath.Join(home, ".dlwb/runs/run-"+cluster)
				has(t, home, cluster)
				time.Sleep(time.Duration(round%4) * time.Millisecond)
				for _, path := range []string{filepath.Join(mine, "life"), filepath.Join(home, "dlwb", cluster, "code/train.py"), filepath.Join(home, ".dlwb/bin/stop"), filepath.Join(home, hostclaim.File)} {
					if _, err := os.Stat(path); err != nil {
						t.Errorf("%s, round %d: %v", cluster, round, err)
					}
				}
				if life != "" {
					key, line = key+"."+life, line+ofLife(life)
				}
				if text, err := os.ReadFile(filepath.Join(home, ".dlwb", key)); err != nil || string(text) != cluster {
					t.Errorf("%s, round %d: the key is %q, %v", cluster, round, text, err)
				}
				if !holds(filepath.Join(home, authorizedKeys), func(there string) bool { return there == line+"\n" }) {
					t.Errorf("%s, round %d: its nodes have no line any more", cluster, round)
				}
				if a := h.Do(asks(hostclaim.Remove, cluster)); a.Failed != "" || a.Claim.Cluster != cluster || exists(mine) {
					t.Errorf("%s, round %d: %+v", cluster, round, a)
				}
			}
		})
	}
	all.Wait()
	if left := tree(t, home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

// One who leaves hands the home over to none that is not in it yet: whoever has said only
// that he comes may turn away, and everybody would be told that he has it.
func TestAHomeIsHandedOverOnlyToWhoIsInIt(t *testing.T) {
	home := t.TempDir()
	a, b, c := among(home, "hosta"), among(home, "hostb"), among(home, "hostc")
	taken := func(h *Host, cluster string) {
		t.Helper()
		if got := h.Do(asks(hostclaim.Take, cluster)); got.Failed != "" || !got.New {
			t.Errorf("%+v", got)
		}
	}
	taken(a, "a")
	done := a.leave("aa", time.Minute)
	comes, gone := make(chan struct{}), sync.OnceFunc(func() { // at the moment at which b is seen first
		a.handOver("aa")
		a.unclaim("aa")
	})
	said := sync.OnceFunc(func() { close(comes) })
	b.link = func(from, to string) error {
		err := os.Link(from, to)
		if strings.HasPrefix(filepath.Base(to), "hostb") {
			gone()
			said()
		}
		return err
	}
	var coming sync.WaitGroup
	coming.Go(func() { taken(b, "b") })
	<-comes
	for range 100 { // b waits, and looks again every 50 ms
		if by, _ := c.inTheWay(hostclaim.Claim{Cluster: "c", Life: "cc"}); by.Held() {
			t.Errorf("%v, and it only comes", by)
			break
		}
		time.Sleep(time.Millisecond)
	}
	done()
	coming.Wait()
	taken(c, "c")
	for _, h := range []*Host{b, c} {
		cluster := strings.TrimPrefix(h.id, "host")
		if got := h.Do(asks(hostclaim.Remove, cluster)); got.Failed != "" || got.Claim.Cluster != cluster {
			t.Errorf("%+v", got)
		}
	}
	if left := tree(t, home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

// Of one that was killed while it came nothing is left when its cluster is given up, and
// until then nobody takes the home away from under it.
func TestOneThatWasKilledWhileItCameLeavesNothing(t *testing.T) {
	home := t.TempDir()
	a, b := among(home, "hosta"), among(home, "hostb")
	a.Do(asks(hostclaim.Take, "a"))
	coming := hostclaim.Claim{Cluster: "b", Life: "bb"}
	must(t, os.WriteFile(b.comingFile("bb"), []byte(coming.Text()), 0o600))
	if got := a.Do(asks(hostclaim.Remove, "a")); got.Failed != "" || len(got.Left.Others) != 1 {
		t.Errorf("%+v", got)
	}
	if got := b.Do(asks(hostclaim.Remove, "b")); got.Failed != "" || got.Claim.Held() {
		t.Errorf("%+v", got)
	}
	if left := tree(t, home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

// One who turns away waits until nobody leaves: whoever leaves would name him, from the
// claims that he has seen, when he is not there any more.
func TestWhoTurnsAwayIsNamedNowhere(t *testing.T) {
	home := t.TempDir()
	a, b, c := among(home, "hosta"), among(home, "hostb"), among(home, "hostc")
	must(t, os.MkdirAll(filepath.Join(home, claimsDir), 0o700))
	turned := make(chan struct{})
	var left sync.WaitGroup
	b.link = func(from, to string) error {
		err := os.Link(from, to)
		if to != b.claimFile() {
			return err
		}
		// At this moment a namesake is there, and one who leaves has seen b.
		namesake := hostclaim.Claim{Cluster: "b", Life: "cc"}
		must(t, os.WriteFile(c.claimFile(), []byte(namesake.Text()), 0o600))
		done, seen := a.leave("aa", time.Minute), readClaim(b.claimFile())
		left.Go(func() {
			defer done()
			select {
			case <-turned:
			case <-time.After(300 * time.Millisecond):
			}
			must(t, whole(filepath.Join(home, hostclaim.File), seen.Text(), 0o600))
		})
		return err
	}
	if got := b.Do(asks(hostclaim.Take, "b")); got.New || !got.Namesake || got.Claim.Life != "cc" {
		t.Errorf("%+v", got)
	}
	close(turned)
	left.Wait()
	if by := a.first(); by.Life == "bb" || exists(b.claimFile()) {
		t.Errorf("%v, and it has turned away", by)
	}
}

// A host that turns away leaves the home to the other hosts of its cluster.
func TestAHostThatTurnsAwayLeavesTheHomeToItsOwn(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	one, two, other := among(home, "hosta"), among(home, "hostb"), among(home, "hostc")
	one.Do(asks(hostclaim.Take, "a"))
	other.Do(asks(hostclaim.Take, "c"))
	elsewhere := asks(hostclaim.Take, "a")
	put(t, dir, "file", "x")
	elsewhere.Dir = filepath.Join(dir, "file")
	if got := two.Do(elsewhere); got.Failed == "" || exists(two.claimFile()) {
		t.Errorf("%+v", got)
	}
	if by := one.first(); by.Life != "aa" {
		t.Errorf("%v, and a came first", by)
	}
}

// What is there only because somebody comes or goes at this moment was not there before
// dlwb came; one who comes knows what was.
func TestWhatPassesIsNotTakenForTheUsers(t *testing.T) {
	home := t.TempDir()
	put(t, home, ".dlwb/leaving", "aa")
	put(t, home, ".dlwb/claim.bb.123", "x")
	h := among(home, "hosta")
	if had := h.thereBefore(); len(had) > 0 {
		t.Errorf("%q", had)
	}
	put(t, home, "dlwb/b/code/train.py", "x")
	coming := hostclaim.Claim{Cluster: "b", Life: "bb", Had: []string{".ssh"}}
	put(t, home, claimsDir+"/hostb.bb"+comingEnd, coming.Text())
	if had := h.thereBefore(); !slices.Equal(had, coming.Had) {
		t.Errorf("%q", had)
	}
	must(t, os.RemoveAll(filepath.Join(home, claimsDir)))
	put(t, home, ".dlwb/dlwb.db", "x")
	if had := h.thereBefore(); !slices.Equal(had, []string{".dlwb", "dlwb"}) {
		t.Errorf("%q", had)
	}
}
