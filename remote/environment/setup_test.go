package environment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSetUpCommandsRunAroundTheEnvironmentAndOnceUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.0")
	l := newLocal(t, bare(t))
	log := filepath.Join(l.home, "log")
	ran := func() string {
		text, _ := os.ReadFile(log)
		_ = os.Remove(log)
		return strings.Join(strings.Fields(string(text)), " ")
	}
	spec := Spec{Kind: Venv, Cluster: "c 1", Content: "--no-index\n--find-links " + wheels + "\ndlwbone\n",
		Before: []string{"cd /; WHERE=$(pwd)", `echo "before:$WHERE:$(ls -d "$HOME/dlwb/c 1/venv" 2>/dev/null)" >>"$HOME/log"`},
		After:  []string{`python -c "import dlwbone; print('after', dlwbone.version)" >>"$HOME/log"`}}
	steps := []struct {
		name, want string
		skipped    bool
		change     func()
	}{
		{"first", "before:/: after 1.0", false, func() {}},
		{"unchanged", "", true, func() {}},
		{"another command after", "after 1.0 done", false, func() { spec.After = append(spec.After, `echo done >>"$HOME/log"`) }},
		{"other requirements", "before after 1.0 done", false, func() { spec.Content += "# more\n"; spec.Before = []string{`echo before >>"$HOME/log"`} }},
		{"unchanged again", "", true, func() {}},
		{"forced", "before after 1.0 done", false, func() { spec.Force = true }},
	}
	for _, s := range steps {
		s.change()
		r := l.must(spec)
		if got := ran(); got != s.want || r.Skipped != s.skipped {
			t.Errorf("%s: ran %q, skipped %v; want %q", s.name, got, r.Skipped, s.want)
		}
	}
}

func TestASetUpCommandThatFailsIsShownWithItsLastLinesAndTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLocal(t, bare(t))
	spec := Spec{Kind: System, Cluster: "c", Before: []string{"echo fine", "echo too much; echo 'no license' >&2; sh -c 'exit 3'", "touch never"}}
	for range 2 { // a failure is not taken for done
		f := l.mustFail(spec)
		contains(t, f.Error(), "command 2 of environment.before ended with exit code 3")
		if f.Command != spec.Before[1] || strings.Join(f.LastLines, "|") != "too much|no license" || f.ExitCode != 3 {
			t.Errorf("got %+v", f)
		}
	}
	noFile(t, filepath.Join(l.home, "dlwb/c/never"))
	spec.Before[1] = "exit 4" // ends the shell itself
	contains(t, l.mustFail(spec).Error(), "command 2", "exit code 4")
}
