package profiles

import (
	"path/filepath"
	"strings"
)

// RunWord stands for the id of the run in a profile's run and results.
const RunWord = "{run}"

// anyRun is a pattern for a path with the id of any run of a profile.
func anyRun(p, profile string) string {
	return strings.ReplaceAll(p, RunWord, profile+"-[0-9][0-9][0-9][0-9]-[0-9]*")
}

// NotSent are rules for what of the code directory is not sent, besides what its
// ignore files name: what the profile leaves out, the results, which are made on
// the nodes and would meet older ones, and dlwb's state directory where somebody
// has put it there: it holds keys, and changes all the time.
func (p *Profile) NotSent(state string) []string {
	exclude := append([]string{}, p.Code.Exclude...)
	if rel, err := filepath.Rel(p.CodeDir(), state); err == nil && filepath.IsLocal(rel) {
		exclude = append(exclude, "/"+filepath.ToSlash(rel))
	}
	for _, path := range p.Results.Paths {
		exclude = append(exclude, "/"+anyRun(path, p.Name))
	}
	if p.Results.Checkpoints != "" { // what is here is older than what is there
		exclude = append(exclude, "/"+anyRun(p.Results.Checkpoints, p.Name))
	}
	for _, name := range p.inputsHere() { // they come to the nodes by themselves
		if rel, err := filepath.Rel(p.CodeDir(), name); err == nil && filepath.IsLocal(rel) && rel != "." {
			exclude = append(exclude, "/"+filepath.ToSlash(rel))
		}
	}
	if p.Results.To != "" {
		to := filepath.Join(filepath.Dir(p.Path), filepath.FromSlash(p.Results.To))
		if abs, err := filepath.Abs(to); err == nil {
			to = abs
		}
		if rel, err := filepath.Rel(p.CodeDir(), to); err == nil && filepath.IsLocal(rel) && rel != "." {
			exclude = append(exclude, "/"+anyRun(filepath.ToSlash(rel), p.Name))
		}
	}
	return exclude
}

// inputsHere are the paths of this machine that come to the nodes beside the code.
func (p *Profile) inputsHere() (all []string) {
	for _, c := range p.Data {
		if path := p.ChannelPath(c); path != "" {
			all = append(all, path)
		}
	}
	if p.State != "" {
		all = append(all, p.StateDir())
	}
	return all
}
