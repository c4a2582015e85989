package planning

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

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

// What a job in an image does not get is said before anybody relies on it.
func TestWhatAJobInAnImageDoesNotGetIsSaid(t *testing.T) {
	const rest = "environment: {venv: requirements.txt, after: [make]}\nresults: {paths: [out/], checkpoints: out/ckpt}\nforward: [8265]\nlimits: {lifetime: 2h}\nrun: {command: train.py}\n"
	all := map[string]string{}
	for _, machines := range []string{"kubernetes\nmachines: {count: 1}", "slurm\nmachines: {count: 1}"} {
		p, err := profiles.Parse("dlwb.yaml", []byte("provider: "+machines+"\n"+rest))
		if err != nil {
			t.Fatal(err)
		}
		all[p.Provider] = strings.Join(notActedOn(p), "\n")
	}
	for _, key := range []string{"environment.venv", "environment.after", "results.paths", "results.checkpoints", "forward"} {
		if !strings.Contains(all["kubernetes"], key+": ") || strings.Contains(all["slurm"], key+": ") {
			t.Errorf("%s: %q", key, all)
		}
	}
	if strings.Contains(all["kubernetes"], "lifetime") {
		t.Errorf("the lifetime is the job's deadline: %q", all["kubernetes"])
	}
}
