//go:build linux

package userdata

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// metadata is the metadata service of a machine, version 2 of it only. It
// gives a notice when it has one.
type metadata struct {
	*httptest.Server
	notice atomic.Pointer[string]
	asked  atomic.Int32
}

func newMetadata(t *testing.T) *metadata { return metadataAt(t, "127.0.0.1:0") }

func metadataAt(t *testing.T, addr string) *metadata {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip("NOT RUN: ", err)
	}
	md := &metadata{}
	md.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch notice := md.notice.Load(); {
		case r.URL.Path == "/latest/api/token":
			if r.Method != http.MethodPut || r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			fmt.Fprint(w, "t0ken==")
		case r.Header.Get("X-aws-ec2-metadata-token") != "t0ken==":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/latest/meta-data/spot/instance-action" || notice == nil:
			md.asked.Add(1)
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, *notice)
		}
	}))
	_ = md.Listener.Close()
	md.Listener = l
	md.Start()
	t.Cleanup(md.Close)
	return md
}

// announce takes the machine back at a time, and returns that as the script
// should write it down.
func (md *metadata) announce(in time.Duration) string {
	at := time.Now().Add(in).UTC().Truncate(time.Second)
	text := fmt.Sprintf("{\n  \"action\": \"terminate\",\n  \"time\": %q\n}\n", at.Format(time.RFC3339))
	md.notice.Store(&text)
	return fmt.Sprintf("notice action=terminate at=%d", at.Unix())
}

func TestANoticeIsWrittenDownAndTheRunsAreToldOnce(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		md := newMetadata(t)
		b := goodBoot(t)
		b.SpotNotice = true
		m := newMachine(t, shell, b)
		m.settings = "imds=" + md.URL
		m.launch("r1", `trap "echo saved; exit 0" TERM; echo up; while :; do sleep 0.1; done`)
		m.launch("r2", `trap "echo killed; exit 0" TERM; while :; do sleep 0.1; done`)
		m.write("home/ubuntu/.dlwb/runs/r2/on_notice", `echo "$PWD $*" >>hooked`)
		m.boot()
		within(t, patience, "the metadata service is asked", func() bool { return md.asked.Load() > 0 })
		if m.read("var/lib/dlwb/notice") != "" {
			t.Error("a notice without a notice")
		}
		want := md.announce(100 * time.Second)
		within(t, patience, "the notice", func() bool { return strings.TrimSpace(m.read("var/lib/dlwb/notice")) == want })
		within(t, patience, "the run ends", func() bool { return m.read("home/ubuntu/.dlwb/runs/r1/exit") != "" })
		if got := m.read("home/ubuntu/.dlwb/runs/r1/rank-0.log"); !strings.HasSuffix(got, "saved\n") {
			t.Errorf("the run said %q", got)
		}
		if got := m.read("home/ubuntu/.dlwb/runs/r1/status"); !strings.Contains(got, "stopping notice: EC2 takes this machine back in ") {
			t.Errorf("it was told %q", got)
		}
		within(t, patience, "the hook", func() bool { return m.read("home/ubuntu/.dlwb/runs/r2/hooked") != "" })
		counted := m.read("var/lib/dlwb/used")
		within(t, patience, "another round of the lease", func() bool { return m.read("var/lib/dlwb/used") != counted })
		hooked := m.read("home/ubuntu/.dlwb/runs/r2/hooked")
		if !strings.HasPrefix(hooked, m.path("home/ubuntu/.dlwb/runs/r2")+" terminate ") || strings.Count(hooked, "\n") != 1 {
			t.Errorf("the hook said %q", hooked)
		}
		if m.read("home/ubuntu/.dlwb/runs/r2/exit") != "" {
			t.Error("a run with a hook was stopped")
		}
	})
}

// Brackets mean something else to curl in other places.
func TestTheNoticeComesByIPv6(t *testing.T) {
	t.Parallel()
	md := metadataAt(t, "[::1]:0")
	want := md.announce(time.Minute)
	b := goodBoot(t)
	b.SpotNotice, b.IPv6 = true, true
	text, err := Render(b)
	must(t, err)
	if boot := parse(t, text).Boot[0]; !strings.Contains(boot, "imds='http://[fd00:ec2::254]'") {
		t.Error("it asks elsewhere")
	}
	b.IPv6 = false // the rig puts its own address there
	m := newMachine(t, "dash", b)
	m.settings = "imds=" + md.URL
	m.boot()
	within(t, patience, "the notice", func() bool { return strings.TrimSpace(m.read("var/lib/dlwb/notice")) == want })
}

func TestWithoutCurlTheNoticeComesByWget(t *testing.T) {
	if out, err := exec.Command("wget", "--help").Output(); err != nil || !strings.Contains(string(out), "--method") {
		t.Skip("NOT RUN: there is no GNU wget here")
	}
	t.Parallel()
	md := newMetadata(t)
	want := md.announce(time.Minute)
	b := goodBoot(t)
	b.SpotNotice = true
	m := newMachine(t, "dash", b)
	m.settings = "imds=" + md.URL
	// A PATH on which everything is but curl.
	for _, name := range strings.Fields("wget cat date df grep id mkdir mv rm sed setsid sleep stat tr timeout uname cksum env runuser awk") {
		if path, err := exec.LookPath(name); err == nil {
			must(t, os.Symlink(path, filepath.Join(m.path("bin"), name)))
		}
	}
	m.text = strings.ReplaceAll(m.text, "PATH=$PATH:", "unused=")
	m.env = []string{"DLWB_TEST_MACHINE=" + m.root, "PATH=" + m.path("bin")}
	m.boot()
	within(t, patience, "the notice", func() bool { return strings.TrimSpace(m.read("var/lib/dlwb/notice")) == want })
}

// A metadata service that does not answer holds up nothing.
func TestASilentMetadataServiceDoesNotHoldTheLeaseUp(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	b := leased(t, Lease{Lifetime: 3 * time.Second})
	b.SpotNotice = true
	m := newMachine(t, "dash", b)
	m.settings = "imds=" + silent.URL
	m.boot()
	m.off(patience)
}
