package planning

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

func TestAVariableThatLooksWrittenForAShellIsNamed(t *testing.T) {
	for value, warned := range map[string]bool{
		"$HOME/out": true, "/data:$PATH": true, "~/data": true, "~": true, "/opt:~/data": true, "$DLWB_RESULTS": true,
		"": false, "plain": false, `\d+$`: false, "5$ a day": false, "lab~2": false, "a/~b": false, "~ada": false,
	} {
		p := &profiles.Profile{Run: profiles.Run{Env: []profiles.Var{{Name: "OUT", Value: value}}}}
		got := strings.Join(unexpandedWarnings(p), "\n")
		if warned != strings.Contains(got, "run.env.OUT is "+value+" as it stands") {
			t.Errorf("of %q it says %q", value, got)
		}
	}
	secret := &profiles.Profile{Run: profiles.Run{Env: []profiles.Var{{Name: "TOKEN", Value: "$a", Ref: "${env:TOKEN}", Secret: true}}}}
	if got := unexpandedWarnings(secret); got != nil {
		t.Errorf("a secret is told: %q", got)
	}
}
