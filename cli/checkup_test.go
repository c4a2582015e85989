package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
)

// The doctor of a cluster, with whatever Python this machine has: the network is
// measured by the framework or without it.
func TestTheDoctorLooksAtEveryNodeAndTheNetworkBetweenThem(t *testing.T) {
	sample.Leave(t)
	b := newBed(t)
	b.profile("print(1)", "")
	if r := b.run("up"); r.code != 0 {
		t.Fatal(r.stdout, r.stderr)
	}
	r := b.run("doctor", "bed")
	t.Logf("%s", r.stdout)
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, want := range []string{"node0 clock", "node1 clock", "node1 disk", "node0 memory", "node1 driver"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, r.stdout)
		}
	}
	if !strings.Contains(r.stdout, "ones came to 2 by gloo on 2 nodes") && !strings.Contains(r.stdout, "64 MiB at") {
		t.Errorf("the network was not measured:\n%s", r.stdout)
	}
}

// With a Python without packages the nodes send to each other by TCP.
func TestTheDoctorMeasuresTheNetworkWithoutAFramework(t *testing.T) {
	sample.Leave(t)
	b := newBed(t)
	bare := filepath.Join(b.home, "bare")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", bare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.profile("print(1)", "environment: {python: "+filepath.Join(bare, "bin", "python3")+"}\n")
	if r := b.run("up"); r.code != 0 {
		t.Fatal(r.stdout, r.stderr)
	}
	r := b.run("doctor", "bed")
	t.Logf("%s", r.stdout)
	if r.code != 0 || !strings.Contains(r.stdout, "64 MiB at") || !strings.Contains(r.stdout, "has none of torch") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
