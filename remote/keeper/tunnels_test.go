//go:build unix

package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testport"
	"github.com/dlwb/dlwb/remote"
)

// site is a server that nodes reach, as all nodes of these tests are this machine.
func site(t *testing.T) (port int) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "there") }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func wishFor(far int) remote.TunnelWish {
	return remote.TunnelWish{Cluster: "demo", Life: 3, Name: "jupyter", Far: far, HTTP: &remote.HTTP{Token: "secret", Name: "jupyter-demo"}}
}

// visit is what a tunnel answers to who shows the server's own token.
func visit(port int) (string, error) {
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "token secret")
	resp, err := (&http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// answers holds that a tunnel leads to the site.
func answers(t *testing.T, port int) {
	t.Helper()
	if text, err := visit(port); text != "there" || err != nil {
		t.Fatalf("port %d answers %q, %v", port, text, err)
	}
}

func (d *desk) hold(s *sshdtest.Server, w remote.TunnelWish) *remote.KeptTunnel {
	d.t.Helper()
	kept, err := d.command(targetOf(s)).Hold(d.t.Context(), w)
	if err != nil {
		d.t.Fatal(err)
	}
	if kept != nil {
		d.t.Cleanup(kept.Leave)
	}
	return kept
}

// tunnels are those that keepers hold.
func (d *desk) tunnels() (all []remote.TunnelHeld) {
	for _, s := range d.status() {
		all = append(all, s.Tunnels...)
	}
	return all
}

func TestATunnelGoesOnWhenWhoAskedForItIsGone(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	wish := wishFor(site(t))
	first := d.hold(s, wish)
	answers(t, first.Port())
	one, other := first.Ticket(), first.Ticket()
	if !strings.HasPrefix(first.Host(), "jupyter-demo-") || len(one) != 32 || one == other {
		t.Errorf("host %s, tickets %s, %s", first.Host(), one, other)
	}
	first.Leave()
	time.Sleep(2 * lookEvery)
	answers(t, first.Port())
	// The next one finds it, by its name alone, too.
	again := d.hold(s, wish)
	found := d.hold(s, remote.TunnelWish{Cluster: "demo", Life: 3, Name: "jupyter", Find: true})
	if again.Held() != found.Held() || again.Port() != first.Port() || again.Host() != first.Host() {
		t.Errorf("%+v, %+v; first %+v", again.Held(), found.Held(), first.Held())
	}
	if none := d.hold(s, remote.TunnelWish{Cluster: "demo", Life: 4, Name: "jupyter", Find: true}); none != nil {
		t.Errorf("that of another life is found: %+v", none.Held())
	}
	// The token is told to nobody.
	if all := fmt.Sprintf("%+v", d.status()); strings.Contains(all, "secret") || !strings.Contains(all, "jupyter") {
		t.Errorf("the keeper tells %s", all)
	}
	// Who closes it, closes it for all.
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if found.Why() != "closed" {
		t.Errorf("the other one hears: %q", found.Why())
	}
	if text, err := visit(first.Port()); err == nil {
		t.Errorf("closed, it answers %q", text)
	}
}

func TestATunnelThatIsHeldOutlivesALostConnection(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	kept := d.hold(s, wishFor(site(t)))
	states := make(chan remote.TunnelState, 100)
	kept.OnState(func(now remote.TunnelState) { states <- now })
	answers(t, kept.Port())
	s.KillConnections()
	for away := false; ; {
		now := <-states
		if away = away || !now.Connected; away && now.Connected {
			break
		}
	}
	answers(t, kept.Port())
}

func TestAServiceThatWasStartedAgainHasItsTunnelAnew(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	old := d.hold(s, wishFor(site(t)))
	next := wishFor(site(t))
	next.Port = old.Port()
	fresh := d.hold(s, next)
	if old.Why() != "it leads elsewhere now" || fresh.Port() != old.Port() {
		t.Errorf("%q; ports %d and %d", old.Why(), old.Port(), fresh.Port())
	}
	answers(t, fresh.Port())
}

func TestAKilledKeeperIsTheEndOfItsTunnelsAndIsTold(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	wish := wishFor(site(t))
	kept := d.hold(s, wish)
	if err := syscall.Kill(d.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if why := kept.Why(); why != "" {
		t.Errorf("it ended: %q", why)
	}
	wish.Port = kept.Port()
	again := d.hold(s, wish)
	if again.Port() != kept.Port() {
		t.Errorf("ports %d and %d", kept.Port(), again.Port())
	}
	answers(t, again.Port())
}

func TestATakenPortIsSaidAndWhatTheKeeperCannotReachIsNotHeld(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	wish := wishFor(site(t))
	wish.Port = site(t)
	var taken *remote.PortTakenError
	if _, err := d.command(targetOf(s)).Hold(t.Context(), wish); !errors.As(err, &taken) || taken.Port != wish.Port || taken.Next == 0 {
		t.Errorf("a port that is taken: %v", err)
	}
	nowhere := targetOf(s)
	nowhere.Addr = testport.Addr(t)
	if kept, err := d.command(nowhere).Hold(t.Context(), wish); kept != nil || err != nil {
		t.Errorf("a node that is not there: %v, %v", kept, err)
	}
	if all := d.status(); len(all) != 1 || len(all[0].Tunnels) != 0 {
		t.Errorf("held: %+v", all)
	}
}

func TestTheTunnelsOfAMachineThatGoesEnd(t *testing.T) {
	s, other, d := sshdtest.Start(t), sshdtest.Start(t), newDesk(t)
	gone := d.hold(s, wishFor(site(t)))
	wish := wishFor(site(t))
	wish.Cluster, wish.Reverse, wish.HTTP = "other", true, nil
	stays := d.hold(other, wish)
	d.client().drop([]remote.Target{targetOf(s)})
	if why := gone.Why(); !strings.Contains(why, "machine") {
		t.Errorf("it ended: %q", why)
	}
	all := d.tunnels()
	if len(all) != 1 || all[0].Cluster != "other" || !all[0].Reverse || all[0].Port != stays.Port() {
		t.Errorf("held: %+v", all)
	}
	d.client().end(remote.TunnelHeld{Cluster: "other"})
	if stays.Why() != "closed" || len(d.tunnels()) != 0 {
		t.Errorf("it ended: %q", stays.Why())
	}
}

func bareKeeper() *keeper {
	return &keeper{held: map[key]*held{}, tunnels: map[tunnelKey]*tunnel{}, opening: map[tunnelKey]chan struct{}{}}
}

// A reverse tunnel waits for the node, which may not answer.
func TestATunnelThatOpensHoldsUpNoOther(t *testing.T) {
	s, wish := sshdtest.Start(t), wishFor(site(t))
	k := bareKeeper()
	defer k.dropAll(func(*held) bool { return true })
	defer k.endTunnels("", func(*tunnel) bool { return true })
	slow, err := k.opens(t.Context(), tunnelKey{wish.Cluster, "reverse to 5000", true})
	if err != nil {
		t.Fatal(err)
	}
	defer slow()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if opened, err := k.tunnel(ctx, question{Op: opHold, Tunnel: &wish, Targets: []remote.Target{targetOf(s)}}); opened == nil {
		t.Fatalf("the other tunnel did not open: %v", err)
	}
}

// Of two that ask for one tunnel at once, the second uses the first one's: when it ends,
// nobody uses the connection any more, and the keeper can end.
func TestTwoThatAskForATunnelAtOnceHaveOne(t *testing.T) {
	s, wish := sshdtest.Start(t), wishFor(site(t))
	k := bareKeeper()
	defer k.dropAll(func(*held) bool { return true })
	ask := question{Op: opHold, Tunnel: &wish, Targets: []remote.Target{targetOf(s)}}
	var both [2]*tunnel
	var asking sync.WaitGroup
	done, err := k.opens(t.Context(), tunnelKey{wish.Cluster, wish.Name, wish.Reverse})
	if err != nil {
		t.Fatal(err)
	}
	for i := range both {
		asking.Go(func() {
			var err error
			if both[i], err = k.tunnel(t.Context(), ask); err != nil {
				t.Error(err)
			}
		})
	}
	used := func() (n int) {
		for _, h := range k.status().Nodes {
			n += h.Users
		}
		return n
	}
	for used() < len(both) {
		time.Sleep(time.Millisecond)
	}
	done()
	asking.Wait()
	if both[0] == nil || both[0] != both[1] || used() != 1 {
		t.Errorf("%p and %p, used by %d", both[0], both[1], used())
	}
	if k.endTunnels("", func(*tunnel) bool { return true }) != 1 || used() != 0 {
		t.Errorf("without tunnels it is used by %d", used())
	}
}
