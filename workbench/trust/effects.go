package trust

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/environment"
)

// Effect is one thing that a profile would do.
type Effect about.Effect

// The kinds of effects.
const (
	Connects = about.Connects
	Pays     = about.Pays
	Runs     = about.Runs
	Sends    = about.Sends
	Reads    = about.Reads
	Opens    = about.Opens
	Brings   = about.Brings
)

// effects works out, from the profile and nothing else, what it would do. What
// few profiles need comes first: nobody should have to look for it.
func effects(p *profiles.Profile, s *Subject, asked, outside []string) []Effect {
	e := &effectList{p: p, s: s}
	e.own(Connects)
	e.paid()
	e.programs()
	e.code(asked)
	e.inputs()
	e.variables()
	for _, kind := range []string{Sends, Reads, Opens, Brings} {
		e.own(kind)
	}
	for _, file := range outside {
		e.add(Reads, true, "%s, which is outside the project %s", file, s.Project)
	}
	if len(p.Forward) > 0 {
		e.add(Opens, false, "ports of this machine for %s, while the run is watched", profiles.ForwardsText(p.Forward))
	}
	t := providers.Named(p.Provider).Traits
	sealed := t.Sealed && !t.Kept // nothing comes from there by dlwb
	switch {
	case p.Results.S3 == "":
	case !sealed:
		e.add(Sends, true, "results and checkpoints to %s, with your AWS credentials", p.Results.S3)
	case t.KeptInS3:
		e.add(Brings, true, "what the run has written to %s, with your AWS credentials", p.Results.S3)
	}
	if len(p.Results.Paths) > 0 && !sealed {
		to := "dlwb's state directory"
		if p.Results.To != "" {
			to = p.Results.To + " beside the profile"
		}
		e.add(Brings, false, "%s of node0, into %s", strings.Join(p.Results.Paths, ", "), to)
	}
	slices.SortStableFunc(e.all, func(a, b Effect) int {
		switch {
		case a.Unusual == b.Unusual:
			return 0
		case a.Unusual:
			return -1
		}
		return 1
	})
	return e.all
}

type effectList struct {
	p   *profiles.Profile
	s   *Subject
	all []Effect
}

func (e *effectList) add(kind string, unusual bool, format string, args ...any) {
	e.all = append(e.all, Effect{Kind: kind, Unusual: unusual, Text: fmt.Sprintf(format, args...)})
}

// own are the effects of one kind that the options of the provider have.
func (e *effectList) own(kind string) {
	provider := providers.Named(e.p.Provider)
	if provider.Effects == nil {
		return
	}
	for _, effect := range provider.Effects(e.p.Own()) {
		if effect.Kind == kind {
			e.all = append(e.all, Effect(effect))
		}
	}
}

// paid are machines that cost money. What they cost is not asked before the
// profile is trusted.
func (e *effectList) paid() {
	p, m, provider := e.p, e.p.Machines, providers.Named(e.p.Provider)
	if provider.Pays == "" {
		if m.Image != "" {
			e.add(Runs, false, "containers of the image %s", m.Image)
		}
		e.own(Pays)
		return
	}
	what := m.Instance
	if what == "" {
		what = needText(m.Need)
	}
	text := fmt.Sprintf("%s: %d × %s in %s", provider.Pays, m.Count, what, orWord(strings.Join(m.Regions, ", "), "your default region"))
	if m.Spot {
		text += ", spot"
		if provider.PaysAlso != nil {
			text += provider.PaysAlso(p.Own())
		}
	}
	text += "; at most " + units.Duration(p.Limits.Lifetime) + " each"
	if p.Limits.Budget > 0 {
		text += " and " + units.USD(p.Limits.Budget) + " together"
	} else {
		text += ", without a budget"
	}
	e.add(Pays, p.Limits.Budget == 0, "%s", text)
	if m.Image != "" {
		e.add(Pays, strings.HasPrefix(m.Image, "ami-"), "the machines boot the image %s", m.Image)
	}
	e.own(Pays)
}

func needText(n profiles.Need) string {
	text := orWord(strings.Join(n.GPU, " or "), "any GPU")
	if n.GPUs > 0 {
		text = fmt.Sprintf("%d %s", n.GPUs, text)
	}
	if n.MaxPrice > 0 {
		text += " for at most " + units.PerHour(n.MaxPrice)
	}
	return "a machine with " + text
}

func orWord(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// here reports whether the nodes are processes of this machine.
func (e *effectList) here() bool { return providers.Named(e.p.Provider).Traits.SharedHost }

// programs are what is started, and where.
func (e *effectList) programs() {
	p, here := e.p, e.here()
	where := "on the nodes"
	if here {
		where = "on this machine, as you"
	}
	if p.Environment.Python != "" && !environment.IsVersion(p.Environment.Python) {
		when := ""
		if here {
			when = ", for a plan too"
		}
		e.add(Runs, here, "%s as Python, %s%s", p.Environment.Python, where, when)
	}
	e.own(Runs)
	e.made(where, here)
	e.add(Runs, here, "%s, %s", p.Run.Command, where)
	if p.Run.OnNotice != "" {
		e.add(Runs, false, "%s, when a node is about to be taken away", p.Run.OnNotice)
	}
}

// made is what the making of the environment runs.
func (e *effectList) made(where string, here bool) {
	env := e.p.Environment
	for _, line := range env.Before {
		e.add(Runs, true, "%s, %s, before the environment is made", line, where)
	}
	if environment.IsVersion(env.Python) {
		e.add(Runs, here, "uv, which installs Python %s where it is missing, %s", env.Python, where)
	}
	switch {
	case env.IsImage():
		e.add(Runs, here, "containers of the image %s, %s", env.File, where)
	case env.File != "":
		e.add(Runs, here, "what %s installs, %s", env.File, where)
	}
	for _, line := range env.After {
		e.add(Runs, true, "%s, %s, after the environment is made", line, where)
	}
	of := "every node"
	if here {
		of = "this machine"
	}
	for _, mount := range env.Mounts {
		e.add(Opens, true, "%s of %s to the training", mount, of)
	}
}

// code is what of this machine's files goes to the nodes.
func (e *effectList) code(asked []string) {
	to := "the nodes"
	if e.here() {
		to = "directories of the nodes on this machine"
	}
	own := filepath.Dir(e.s.Path)
	switch dir := e.s.CodeDir; {
	case !within(dir, e.s.Project):
		e.add(Sends, true, "%s to %s: a directory outside the project %s", dir, to, e.s.Project)
	case !within(dir, own):
		e.add(Sends, true, "%s to %s: a directory outside the profile's own, %s", dir, to, own)
	default:
		e.add(Sends, false, "%s to %s, without what its ignore files leave out", dir, to)
	}
	for _, rule := range e.p.Code.Exclude {
		if strings.HasPrefix(rule, "!") {
			e.add(Sends, true, "what code.exclude wants sent although ignore files leave it out: %s", rule)
		}
	}
	for i, name := range asked {
		if i == mostNamed {
			e.add(Sends, true, "%d more files that look like secrets, asked for in the same way", len(asked)-i)
			break
		}
		e.add(Sends, true, "%s is asked for by a rule of the project; it looks like a secret, and only your own settings let it go", name)
	}
}

// inputs are what the training reads besides its code, and where it comes from.
func (e *effectList) inputs() {
	own := filepath.Dir(e.s.Path)
	for _, c := range e.p.Data {
		if path := e.p.ChannelPath(c); path != "" {
			real := realPath(path)
			e.add(Sends, !within(real, own), "%s to the nodes, whatever ignore files say, as the channel %s", real, c.Name)
			continue
		}
		by := "by the nodes"
		if c.Scheme() == "s3" {
			by = "with your AWS credentials, for the nodes"
		}
		e.add(Reads, true, "%s, %s, as the channel %s", secretfile.Address(c.From), by, c.Name)
	}
	for _, name := range e.p.After {
		e.add(Reads, false, "the results of %s, a profile that is trusted by itself, and sends them to the nodes", e.p.AfterPath(name))
	}
	if dir := e.p.StateDir(); dir != "" {
		e.add(Brings, false, "the state of every node, into %s, and sends it to new ones", dir)
	}
}

// mostNamed is how many things of a kind are named one by one where a person
// reads: a flood of one kind must not bury the others.
const mostNamed = 20

var reference = pattern.New(`\$\{env:([^}]*)\}`)

// variables are the variables of the user's shell that the training gets.
func (e *effectList) variables() {
	for _, v := range e.p.Run.Env {
		for _, m := range reference.FindAllStringSubmatch(v.Ref, -1) {
			e.add(Reads, true, "the variable %s of your shell, and gives its value to the training as %s", m[1], v.Name)
		}
	}
}
