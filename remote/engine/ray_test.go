package engine

import (
	"slices"
	"strings"
	"testing"
)

// Ray ends at once where the path of a socket has more than 107 bytes, and the
// name of a profile may be long.
func TestTheSocketsOfRayFitWhateverARunIsCalled(t *testing.T) {
	for run, want := range map[string]string{
		"r7":                                   "/tmp/ray-r7",
		"digits-ray-tune-1124-203742-58cb":     "/tmp/ray-ray-tune-1124-203742-58cb",
		strings.Repeat("x", 60) + "-1124-0-aa": "",
	} {
		plan, err := Make("ray", cluster(2, 0), Job{Command: []string{"t.py"}, Run: run})
		if err != nil {
			t.Fatal(err)
		}
		argv := plan.Nodes[0][0].Argv
		dir := strings.TrimPrefix(argv[slices.IndexFunc(argv, func(w string) bool { return strings.HasPrefix(w, "--temp-dir=") })], "--temp-dir=")
		if len(dir+raySocket) > 107 || want != "" && dir != want || !strings.HasSuffix(run, dir[len("/tmp/ray-"):]) {
			t.Errorf("%s: %s", run, dir)
		}
	}
}

// Where somebody else starts Ray, the driver finds it by itself, and the head that is one
// more has no part in the training, whatever its threads are.
func TestADriverInARayThatIsGivenHasTheWorkersOfTheOthers(t *testing.T) {
	nodes := append([]Node{{Head: true}}, cluster(2, 4)...)
	plan, err := Make("ray", nodes, Job{Command: []string{"t.py"}, Given: true, MaxThreads: 8})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Ranks()) != 1 || plan.WorldSize != 8 || !plan.Leads || len(plan.Files) > 0 {
		t.Errorf("%+v", plan)
	}
	driver := plan.Nodes[0][1]
	if driver.After != nil || !slices.Contains(driver.Env, "DLWB_WORKERS=8") || !slices.Contains(driver.Env, "DLWB_GPUS=8") || slices.ContainsFunc(driver.Env, func(v string) bool { return strings.HasPrefix(v, "RAY_ADDRESS") }) {
		t.Errorf("%+v", driver)
	}
}
