package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

// An unknown provider was answered with six, three of which are refused.
func TestAnUnknownProviderIsAnsweredWithThoseThatWorkHere(t *testing.T) {
	freshHome(t)
	w, err := (&app{}).bench()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	have, offered := w.Market().Kinds(), slices.Clone(profiles.Usable)
	slices.Sort(have)
	slices.Sort(offered)
	if !slices.Equal(have, offered) {
		t.Errorf("offered are %q, and there are %q", offered, have)
	}
	if err := os.WriteFile("dlwb.yaml", []byte("name: x\nprovider: gcp\nrun: {command: train.py}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := say(t, "plan")
	if code != ExitUsage || !strings.Contains(stderr, "local, hosts, ec2") || strings.Contains(stderr, "aws-batch") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A name that the format keeps for a provider to come was refused only after the
// profile was trusted, and without what comes nearest.
func TestAProviderThatHasNoCodeYetIsRefusedAtItsPlace(t *testing.T) {
	for name, nearest := range map[string]string{"aws-batch": "ec2"} {
		freshHome(t)
		if err := os.WriteFile("dlwb.yaml", []byte("name: x\nprovider: "+name+"\nmachines: {instance: ml.g5.xlarge}\nrun: {command: train.py}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"plan", "run", "trust"} {
			code, _, stderr := say(t, command, "dlwb.yaml")
			for _, want := range []string{"dlwb.yaml:2:11: ", `provider "` + name + `"`, "no clusters with it yet", `did you mean "` + nearest + `"?`, "one of local, hosts, ec2"} {
				if code != ExitUsage || !strings.Contains(stderr, want) {
					t.Errorf("%s: exit code %d, and %q is not in: %s", command, code, want, stderr)
				}
			}
		}
	}
}
