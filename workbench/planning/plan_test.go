package planning

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
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
		p, err := profiles.Parse("dlwb.yaml", []byte("name: x\nprovider: "+provider.Name+"\n"+needed(provider)+"environment: {venv: requirements.txt, before: [ls]}\n"+
			"run: {command: train.py}\nresults: {paths: [out/], checkpoints: out/ckpt}\nlimits: {lifetime: 3h, idle: 1h}\n"))
		if err != nil {
			t.Fatal(err)
		}
		ignored := strings.Join(notActedOn(p), "\n")
		for _, key := range []string{"environment.venv: ", "environment.before: ", "results.checkpoints: ", "limits.idle: "} {
			if !strings.Contains(ignored, key) {
				t.Errorf("%s: %q is not said to be ignored:\n%s", provider.Name, key, ignored)
			}
		}
		if strings.Contains(ignored, "results.paths: ") == provider.Traits.Kept {
			t.Errorf("%s: ignored are\n%s", provider.Name, ignored)
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
		if provider.Traits.Kept {
			if len(broughtHome(p)) != 1 || len(unsavedWarnings(p)) > 0 {
				t.Errorf("%s: home come %q, and the warnings are %q", provider.Name, broughtHome(p), unsavedWarnings(p))
			}
			continue
		}
		if len(broughtHome(p)) > 0 || !strings.Contains(strings.Join(unsavedWarnings(p), "\n"), "a volume") {
			t.Errorf("%s: home come %q, and the warnings are %q", provider.Name, broughtHome(p), unsavedWarnings(p))
		}
		p.Results.S3 = "s3://bucket/prefix"
		if text := (&Plan{Profile: p, Provider: p.Provider}).Text(); strings.Contains(text, "results in") {
			t.Errorf("%s: nobody sends results from there:\n%s", provider.Name, text)
		}
	}
	if sealed == 0 {
		t.Error("no provider is sealed")
	}
}

// needed are the machines of a profile that a provider takes.
func needed(provider about.Provider) (text string) {
	for _, f := range profiles.Fields {
		if name, is := strings.CutPrefix(f.Key, "machines."); is && slices.Contains(provider.Needs, f.Key) {
			text += "  " + name + ": " + f.Example + "\n"
		}
	}
	if text == "" {
		return ""
	}
	return "machines:\n" + text
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

// What a job in an image does not get is said before anybody relies on it.
func TestWhatAJobInAnImageDoesNotGetIsSaid(t *testing.T) {
	const rest = "environment: {venv: requirements.txt, after: [make]}\nresults: {paths: [out/], checkpoints: out/ckpt}\nforward: [8265]\nlimits: {lifetime: 2h}\nrun: {command: train.py}\n"
	all := map[string]string{}
	for _, machines := range []string{"kubernetes\nmachines: {count: 1}", "ecs\nmachines: {count: 1, image: pytorch, instance: g5.xlarge}", "slurm\nmachines: {count: 1}"} {
		p, err := profiles.Parse("dlwb.yaml", []byte("provider: "+machines+"\n"+rest))
		if err != nil {
			t.Fatal(err)
		}
		all[p.Provider] = strings.Join(notActedOn(p), "\n")
	}
	if !strings.Contains(all["ecs"], "results.paths: ") || strings.Contains(all["kubernetes"], "results.paths: ") {
		t.Errorf("results.paths: %q", all)
	}
	for _, key := range []string{"environment.venv", "environment.after", "results.checkpoints", "forward"} {
		if !strings.Contains(all["kubernetes"], key+": ") || strings.Contains(all["slurm"], key+": ") {
			t.Errorf("%s: %q", key, all)
		}
	}
	if strings.Contains(all["kubernetes"], "lifetime") {
		t.Errorf("the lifetime is the job's deadline: %q", all["kubernetes"])
	}
}

// What jobs would lose without a word is told by the plan: an engine with processes
// beside its ranks, where the jobs do not have these, and a container that dlwb starts.
func TestThePlanOfAJobSaysWhatIsNotCarried(t *testing.T) {
	jobs := 0
	for _, provider := range providers.All {
		for engineName, want := range map[string]string{"mpi": "engine mpi needs processes", "ray": "engine ray needs processes", "plain": "", "torchrun": ""} {
			text := "name: x\nprovider: " + provider.Name + "\nmachines:\n  count: 2\n" + strings.TrimPrefix(needed(provider), "machines:\n") + "run: {engine: " + engineName + ", command: train.py}\n"
			if provider.Name == "hosts" || provider.Planned != "" {
				continue
			}
			p, err := profiles.Parse("dlwb.yaml", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			made, err := launches(p, Site{Nodes: make([]engine.Node, 2), Python: namePython, Run: nameRun, PortIs: namePort}, nil)
			if err != nil {
				t.Fatal(err)
			}
			found := notCarried(p, made)
			if !provider.Traits.RanksOnly || provider.Traits.Serves || slices.Contains(provider.Carries, engineName) {
				want = ""
			}
			if provider.Traits.RanksOnly {
				jobs++
			}
			if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || found[0].OK || !strings.Contains(found[0].Text, want)) {
				t.Errorf("%s, engine %s: %+v", provider.Name, engineName, found)
			}
		}
	}
	if jobs < 12 {
		t.Errorf("%d plans of jobs were looked at", jobs)
	}
}

// Torchrun's agents start their ranks again in a job as they do on nodes, whoever carries
// it: on several nodes they agree on it by c10d.
func TestTorchrunStartsRanksAgainInTheJobsOfEachProvider(t *testing.T) {
	jobs := 0
	for _, provider := range providers.All {
		if !provider.Traits.RanksOnly || provider.Planned != "" {
			continue
		}
		jobs++
		p, err := profiles.Parse("dlwb.yaml", []byte("name: x\nprovider: "+provider.Name+"\nmachines:\n  count: 2\n"+strings.TrimPrefix(needed(provider), "machines:\n")+
			"run: {engine: torchrun, restarts: 2, command: train.py}\n"))
		if err != nil {
			t.Fatal(err)
		}
		made, err := launches(p, Site{Nodes: make([]engine.Node, 2), Python: namePython, Run: nameRun, PortIs: namePort}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found := notCarried(p, made); len(found) > 0 {
			t.Errorf("%s: %+v", provider.Name, found)
		}
		for _, want := range []string{"--max_restarts=2", "--rdzv_backend=c10d"} {
			if !strings.Contains(made[0].Commands[0].Command, want) {
				t.Errorf("%s: %s is not in %s", provider.Name, want, made[0].Commands[0].Command)
			}
		}
	}
	if jobs < 4 {
		t.Errorf("%d providers of jobs were looked at", jobs)
	}
}

// What an engine refuses stands in the profile: it has a place there, and the exit
// code of a faulty profile.
func TestWhatAnEngineRefusesHasItsPlaceInTheProfile(t *testing.T) {
	for run, want := range map[string]string{
		"{engine: torchrun, command: srun train.py}":                  "dlwb.yaml:2:34: plan the ranks: engine torchrun: run.command begins with srun",
		"{command: train.py, engine: torchrun, min_nodes: 5}":         "dlwb.yaml:2:55: plan the ranks: engine torchrun: run.min_nodes is 5, and there are 1 nodes",
		"{engine: deepspeed, evaluator: true, command: train.py}":     "dlwb.yaml:2:37: plan the ranks: engine deepspeed: run.evaluator means nothing to it",
		"{engine: torchrun, command: 'torchrun --nosuch=1 train.py'}": "dlwb.yaml:2:34: plan the ranks: engine torchrun: run.command: torchrun: its option --nosuch",
	} {
		p, err := profiles.Parse("dlwb.yaml", []byte("name: x\nrun: "+run+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = launches(p, Site{Nodes: []engine.Node{{}}}, nil)
		var faults profiles.Errors
		if !errors.As(err, &faults) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", run, err, want)
		}
	}
}

func TestThePlanSaysOnWhichNodeAForwardIs(t *testing.T) {
	text := (&Plan{Forward: []string{"jupyter", "node1:8265/http"}}).Text()
	if want := "jupyter of node0, and 8265/http of node1, while the run is watched"; !strings.Contains(text, want) {
		t.Errorf("%q is not said in\n%s", want, text)
	}
}
