package ec2

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// Who comes from elsewhere than ssh is let in from learns that, with what to do;
// who comes from the right place learns what else it may be.
func TestWhyAMachineIsSilentIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		from []string
		says []string
	}{
		"moved":         {[]string{"203.0.113.7"}, []string{"now comes from 127.0.0.1/32", "let in from 203.0.113.7/32 only", "machines.ssh_from", "CGNAT"}},
		"another route": {[]string{"127.0.0.0/8"}, []string{"let in from 127.0.0.0/8", "may go out by another way", "VPN"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fakeaws.Options{})
			r.spec.Count, r.spec.Own = 1, &options.Machines{SSHFrom: c.from}
			got := r.up()
			p := r.provider()
			causes, _ := p.Testify(t.Context(), got, 0)
			for _, want := range c.says {
				if !strings.Contains(strings.Join(causes, "; "), want) {
					t.Errorf("%q is not in %q", want, causes)
				}
			}
			r.down()
			if causes, _ := p.Testify(t.Context(), got, 0); !strings.Contains(strings.Join(causes, "; "), "is terminated") {
				t.Error(causes)
			}
		})
	}
}

// talker is a machine that writes to its console.
type talker struct{ echo }

func (talker) Boot(*fakeaws.Instance) (*fakeaws.Machine, error) { return &fakeaws.Machine{}, nil }
func (talker) Console(string) string {
	return strings.Repeat("kernel line\n", 100) + "\n[FAILED] Failed to start ssh.service\r\n"
}

func TestTheConsoleOfASilentMachineIsFetched(t *testing.T) {
	r := newRig(t, fakeaws.Options{Boot: talker{}})
	r.spec.Count = 1
	c := r.up()
	var console []string
	for end := time.Now().Add(60 * time.Second); len(console) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, console = r.provider().Testify(t.Context(), c, 0) // AWS has it late
	}
	if len(console) != consoleLines || !strings.Contains(console[consoleLines-1], "Failed to start ssh.service") {
		t.Errorf("%q", console)
	}
	if _, console := r.provider().Testify(t.Context(), cloud.Cluster{}, 0); console != nil {
		t.Error(console)
	}
	r.down()
}
