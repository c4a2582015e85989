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
	have, offered := w.Kinds(), slices.Clone(profiles.Usable)
	slices.Sort(have)
	slices.Sort(offered)
	if !slices.Equal(have, offered) {
		t.Errorf("offered are %q, and there are %q", offered, have)
	}
	if err := os.WriteFile("dlwb.yaml", []byte("name: x\nprovider: gcp\nrun: {command: train.py}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := say(t, "plan")
	if code != ExitUsage || !strings.Contains(stderr, "local, hosts, ec2") || strings.Contains(stderr, "sagemaker") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
