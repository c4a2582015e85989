package planning

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/inputs"
)

// Give adds channels to what comes to the nodes.
func (p *Plan) Give(more ...inputs.Channel) {
	p.Inputs = append(p.Inputs, more...)
	p.Data = append([]string{}, inputs.Text(p.Inputs)...)
}

// DataText is what comes to the nodes besides the code, in a line.
func (p *Plan) DataText() string {
	var names []string
	for _, c := range p.Inputs {
		names = append(names, c.Name)
	}
	if p.State != "" {
		names = append(names, "state")
	}
	return strings.Join(names, ", ")
}

// stepsWith are the steps of a profile: those that lead to training, and what follows.
func stepsWith(toLaunch []string, p *profiles.Profile) []string {
	steps := slices.DeleteFunc(slices.Clone(toLaunch), func(step string) bool { return step == cloud.StepBuild && p.ImageFile() == "" })
	if i := slices.Index(steps, event.StepSync); i >= 0 && inputs.Given(p) {
		steps = slices.Insert(steps, i+1, event.StepData)
	}
	return append(steps, event.StepTrain, event.StepFetch, event.StepDown)
}

// inputsInside holds what channels send from here to the profile's own directory, as
// the code is held: a profile may be a stranger's.
func (m *Maker) inputsInside(p *profiles.Profile) error {
	user, err := m.owner.Settings(p.Path)
	if err != nil {
		return err
	}
	for _, c := range p.Data {
		key := "data." + c.Name
		real, err := filepath.EvalSymlinks(p.ChannelPath(c))
		if p.ChannelPath(c) == "" || err != nil {
			continue // what is missing is said by those who look for it
		}
		if p.Path != "" && !m.mayLieAt(real, p, user) {
			return profiles.Errors{p.Fault(key, fmt.Sprintf("%s %q", key, c.From),
				fmt.Sprintf("it is %s, outside of %s, where the profile lies: a profile may send only what lies there or below", real, filepath.Dir(p.Path)),
				"", fmt.Sprintf("move it there, or allow it: --allow-code %s, or code.allow in %s", shellword.Join(filepath.Dir(real)), user.Path))}
		}
	}
	return nil
}

// SharedWith says that the cluster of a profile is that of another project, by the path
// of the profile that made it; none: it is the same project's, which may share it among
// its profiles.
func SharedWith(madeBy string, p *profiles.Profile) []string {
	theirs, ours := unlinked(filepath.Dir(madeBy)), unlinked(filepath.Dir(p.Path))
	if p.Path == "" || madeBy == "" || within(theirs, ours) || within(ours, theirs) {
		return nil
	}
	return []string{"cluster " + p.Name + " was made by " + madeBy + ", and is used here too, with the files and checkpoints on it: set name in this profile to have your own"}
}

// unlinked is a path without symbolic links, as far as it is there.
func unlinked(path string) string {
	if is, err := filepath.EvalSymlinks(path); err == nil {
		return is
	}
	return path
}

// within reports whether a directory is another one, or lies in it.
func within(dir, other string) bool {
	rel, err := filepath.Rel(other, dir)
	return err == nil && filepath.IsLocal(rel)
}

// flowWarnings say which command does what dlwb run does not.
func flowWarnings(p *profiles.Profile) (all []string) {
	if p.Sweep.Given() {
		all = append(all, "the profile has a sweep, by "+p.Sweep.Method+": dlwb sweep runs its trials; dlwb run starts the command once, as it stands")
	}
	if len(p.After) > 0 {
		all = append(all, "it comes after "+strings.Join(p.After, ", ")+": dlwb chain runs them and brings their results; dlwb run starts without")
	}
	return all
}
