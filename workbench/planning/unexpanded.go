package planning

import (
	"fmt"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/profiles"
)

// forAShell is what a shell would put something else in the place of: a variable, or
// the home directory where a path begins.
var forAShell = pattern.New(`\$[A-Za-z_]|(?:^|:)~(?:/|$)`)

// unexpandedWarnings name variables whose values look written for a shell. No shell
// sees them: a training that gets '$HOME/out' as a path writes into a directory of that
// name, where nobody looks. It is no fault of the profile, as a value may have a $.
func unexpandedWarnings(p *profiles.Profile) (all []string) {
	for _, v := range p.Run.Env {
		if !v.Secret && forAShell.MatchString(v.Value) {
			all = append(all, fmt.Sprintf("run.env.%s is %s as it stands, no shell expands it: write the value out, "+
				"or set it in run.command: sh -c '%s=… exec python train.py'", v.Name, v.Value, v.Name))
		}
	}
	return all
}
