package planning

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/environment"
)

// Python is what a run would start on one machine, as that machine has said.
type Python struct {
	Node   int    `json:"node"`
	Host   string `json:"host"`
	Python string `json:"python,omitempty"` // its path; empty: it is not there yet
	Torch  string `json:"torch,omitempty"`
	Text   string `json:"text,omitempty"`
	// Why and Next say what stands in the way; empty: nothing does.
	Why  string `json:"why,omitempty"`
	Next string `json:"next,omitempty"`
	// Unsure: the machine did not say.
	Unsure bool `json:"unsure,omitempty"`
}

// Pythons are those of the machines that could be asked, in their order.
type Pythons []Python

// environmentOf is what the environment step will be told, as far as it decides which
// Python is used.
func environmentOf(p *profiles.Profile, python string, modules []string) environment.Spec {
	e := p.Environment
	s := environment.Spec{Kind: e.Kind, File: e.File, There: e.IsNamed(), Python: e.Python, Optional: e.Optional, Cluster: p.Name, Modules: modules}
	if python != "" {
		s.Python = python
	}
	return s
}

// asking is the question by which machines tell which Python the environment step
// would find there: the same search.
func asking(p *profiles.Profile) func(string, []string) string {
	return func(python string, modules []string) string { return environmentOf(p, python, modules).AskLine() }
}

// heard reads the answers.
func heard(p *profiles.Profile, answers []cloud.Answer) (all Pythons) {
	for _, a := range answers {
		r, err := environmentOf(p, a.Python, a.Modules).Told(a.Printed)
		one := Python{Node: a.Node, Host: a.Name, Python: r.Python, Torch: r.Torch, Text: r.Text}
		var failure *environment.Failure
		switch {
		case errors.As(err, &failure):
			one.Why, one.Next = failure.Why, failure.Next
		case err != nil:
			one.Why, one.Unsure = err.Error(), true
		}
		all = append(all, one)
	}
	return all
}

// certain reports whether it is known which Python each of so many nodes starts: that
// of the machine, which nothing changes before. path is the one that all have; empty:
// they have different ones.
func (all Pythons) certain(p *profiles.Profile, nodes int) (path string, known bool) {
	e := p.Environment
	if len(all) != nodes || len(e.Before) > 0 || e.Kind != environment.System && e.Kind != environment.Conda {
		return "", false
	}
	path = all[0].Python
	for _, one := range all {
		if one.Python == "" || one.Why != "" {
			return "", false
		}
		if one.Python != path {
			path = ""
		}
	}
	return path, true
}

// findings say each thing once, with the machines of which it is true.
func (all Pythons) findings() (found []cloud.Finding) {
	where := map[cloud.Finding][]string{}
	for _, one := range all {
		f := cloud.Finding{OK: true, What: "Python", Text: one.Text}
		switch {
		case one.Unsure:
			f = cloud.Warning("Python", "warning: "+one.Why, "")
		case one.Why != "":
			f = cloud.Finding{What: "Python", Text: one.Why, Next: one.Next}
		}
		if where[f] == nil {
			found = append(found, f)
		}
		where[f] = append(where[f], one.Host)
	}
	for i, f := range found {
		if len(where[f]) < len(all) || len(all) == 1 {
			found[i].What = "Python on " + some(where[f])
		}
	}
	return found
}

// some names so many machines as a person reads.
func some(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
