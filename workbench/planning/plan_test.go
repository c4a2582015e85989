package planning

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/profiles"
)

// What runs in an image that somebody made has no environment of dlwb's and sends
// nothing home, and what has a deadline ends by it. The plan said the contrary.
func TestThePlanOfASealedRunPromisesNoEnvironmentAndNoResults(t *testing.T) {
	sealed := 0
	for _, provider := range providers.All {
		if !provider.Traits.Sealed {
			continue
		}
		sealed++
		p, err := profiles.Parse("dlwb.yaml", []byte("name: x\nprovider: "+provider.Name+"\nenvironment: {venv: requirements.txt, before: [ls]}\n"+
			"run: {command: train.py}\nresults: {paths: [out/], checkpoints: out/ckpt}\nlimits: {lifetime: 3h, idle: 1h}\n"))
		if err != nil {
			t.Fatal(err)
		}
		ignored := strings.Join(notActedOn(p), "\n")
		for _, key := range []string{"environment.venv: ", "environment.before: ", "results.paths: ", "results.checkpoints: ", "limits.idle: "} {
			if !strings.Contains(ignored, key) {
				t.Errorf("%s: %q is not said to be ignored:\n%s", provider.Name, key, ignored)
			}
		}
		if strings.Contains(ignored, "limits.lifetime") == provider.Traits.Deadline {
			t.Errorf("%s: ignored are\n%s", provider.Name, ignored)
		}
		if limits := strings.Join(describeLimits(p), "\n"); provider.Traits.Deadline && !strings.Contains(limits, "lifetime: 3h after its start the run is ended") {
			t.Errorf("%s: the limits are\n%s", provider.Name, limits)
		}
		if got := describeEnvironment(p); got != "that of the image" {
			t.Errorf("%s: the environment is %q", provider.Name, got)
		}
		if len(broughtHome(p)) > 0 || !strings.Contains(strings.Join(unsavedWarnings(p), "\n"), "a volume") {
			t.Errorf("%s: home come %q, and the warnings are %q", provider.Name, broughtHome(p), unsavedWarnings(p))
		}
	}
	if sealed == 0 {
		t.Error("no provider is sealed")
	}
}

func TestEveryIdleKeyIsAKey(t *testing.T) {
	known := map[string]bool{}
	for _, f := range profiles.Fields {
		known[f.Key] = true
	}
	for _, k := range idleKeys {
		if !known[k.key] {
			t.Errorf("profiles have no key %s", k.key)
		}
	}
}
