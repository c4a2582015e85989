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
