package boot

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud/ec2/userdata"
	"github.com/dlwb/dlwb/remote"
)

// withLease makes an instance whose user-data is that of dlwb.
func withLease(t *testing.T, r *Rig, change func(*userdata.Boot)) *machine {
	t.Helper()
	m := describe(t, r, "")
	_, private, public := keyPair(t)
	b := userdata.Boot{
		Life: "0123456789ab", Cluster: "c", AuthorizedKey: m.instance.PublicKey,
		HostKeyPrivate: private, HostKeyPublic: public, Lease: userdata.Lease{Lifetime: time.Hour},
	}
	change(&b)
	text, err := userdata.Render(b)
	if err != nil {
		t.Fatal(err)
	}
	m.instance.UserData, m.hostKey, m.user = text, public, b.User
	return m
}

// lease is what the machine says of its lease.
func lease(t *testing.T, n *remote.Node) string {
	t.Helper()
	line := ""
	eventually(t, "the lease is held", func() bool {
		got, err := n.Exec(t.Context(), remote.Cmd{Line: "sh -c 'cat /var/lib/dlwb/lease.state'"})
		line = strings.TrimSpace(string(got.Stdout))
		return err == nil && strings.HasPrefix(line, "lease up=")
	})
	return line
}

func TestTheLeaseOfDlwbIsHeldAndEndsTheMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	began := time.Now()
	m := withLease(t, r, func(b *userdata.Boot) { b.Lease.Lifetime = 3 * time.Second }).boot(t)
	lives := withLease(t, r, func(b *userdata.Boot) { b.Lease.Lifetime = 20 * time.Minute }).boot(t)
	if got := lease(t, lives.connect(t)); !strings.Contains(got, "bound=lifetime") {
		t.Errorf("it says %q", got)
	}
	select {
	case <-m.off:
		t.Logf("off after %v", time.Since(began))
	case <-time.After(2 * time.Minute):
		t.Errorf("it still runs; its console:\n%s", r.Console(m.instance.ID))
	}
}

func TestTheLeaseIsExtendedByRootAndOutlivesAStop(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for _, user := range []string{"", "me", "root"} {
		m := withLease(t, r, func(b *userdata.Boot) { b.User = user }).boot(t)
		n := m.connect(t)
		before := lease(t, n)
		sh(t, n, remote.AsRoot("sh /var/lib/dlwb/lease extend 100000"))
		eventually(t, user+" watches", func() bool {
			got, err := n.Exec(t.Context(), remote.Cmd{Line: "timeout 3 sh /var/lib/dlwb/watch"})
			return err == nil && strings.HasPrefix(string(got.Stdout), "lease up=")
		})
		r.Halt(m.instance.ID, true)
		m.boot(t)
		n = m.connect(t)
		eventually(t, "the lease begins again with what was given", func() bool {
			after := lease(t, n)
			left := after[strings.Index(after, " left=")+6:]
			return after != before && len(strings.Fields(left)[0]) == 6
		})
		if got := sh(t, n, "echo $HOME; id -un"); !strings.HasSuffix(got, "/home\n"+m.login()) {
			t.Errorf("it is %q", got)
		}
	}
}

func TestTheNoticeOfASpotMachineReachesItsWatchers(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	m := withLease(t, r, func(b *userdata.Boot) { b.SpotNotice = true }).boot(t)
	n := m.connect(t)
	lease(t, n)
	r.Notice(m.instance.ID, "terminate", time.Now().Add(2*time.Minute))
	eventually(t, "the notice is seen", func() bool {
		got, err := n.Exec(t.Context(), remote.Cmd{Line: "timeout 1 sh /var/lib/dlwb/watch"})
		return err == nil && strings.Contains(string(got.Stdout), "notice action=terminate at=")
	})
}
