//go:build linux

package frameworks

import (
	"slices"
	"strings"
	"testing"
)

// TestFrameworksHorovodWithoutMPI runs Horovod as where there is no MPI: its ranks
// find each other by Gloo.
func TestFrameworksHorovodWithoutMPI(t *testing.T) {
	if *venvs == "" || *only != "" && !slices.Contains(strings.Split(*only, ","), "horovod") {
		t.Skip("the frameworks are not installed, or Horovod is not asked for: make test-frameworks does that")
	}
	trial := Trials[slices.IndexFunc(Trials, func(t Trial) bool { return t.Engine == "horovod" })]
	trial.Launcher = "horovodrun --gloo python"
	there(t, trial)
	said, on := "ok", []string{}
	for _, s := range []Shape{{1, 2}, {2, 1}, {2, 2}} {
		t.Run(s.String(), func(t *testing.T) {
			if _, err := try(t, trial, s); err != nil {
				said = "failed"
				t.Error(err)
			}
		})
		on = append(on, s.String())
	}
	said += " on " + strings.Join(on, ", ")
	t.Run("killed", func(t *testing.T) {
		killed, err := kill(t, trial)
		said += "; one rank killed: " + killed
		if err != nil {
			said += " (failed)"
			t.Errorf("%s: %v", killed, err)
		}
	})
	keep(t, func(r Results) {
		if r.of("horovod").Ways == nil {
			r.of("horovod").Ways = map[string]string{}
		}
		r.of("horovod").Ways["horovodrun --gloo"] = said
	})
}
