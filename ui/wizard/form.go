package wizard

import (
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/planning"
)

// field is one value of a draft. It is a text, one of a few words, or a flag.
type field struct {
	step        step
	key         string // in the profile
	label, hint string
	own         bool // a key of the provider's own, which Draft.Own has
	text        func(*planning.Draft) *string
	words       []string // what the text may be; none: anything
	flag        func(*planning.Draft) *bool
	shown       func(*Wizard) bool     // nil: always
	known       func(*Wizard) []string // what completes it; nil: nothing
}

// formFields are the fields of all questions, in order.
var formFields = []field{
	{step: wizNodes, key: "machines.count", label: "nodes", hint: "how many machines", text: func(d *planning.Draft) *string { return &d.Count }},
	{step: wizNodes, key: "machines.instance", label: "machine", hint: "the type of each machine, as the provider calls it", shown: func(z *Wizard) bool { return !z.paid() && z.has("machines.instance") },
		text: func(d *planning.Draft) *string { return &d.Instance }},
	{step: wizNodes, key: "machines.region", label: "region", hint: "several are tried in order; empty: your default", shown: func(z *Wizard) bool { return !z.paid() && z.has("machines.region") },
		text: func(d *planning.Draft) *string { return &d.Region }},
	{step: wizNodes, key: "machines.spot", label: "spot", hint: "spare capacity: cheaper, and may be taken away", shown: func(z *Wizard) bool { return z.has("machines.spot") || z.paid() },
		flag: func(d *planning.Draft) *bool { return &d.Spot }},
	{step: wizNodes, key: "machines.spot_fallback", label: "fallback", hint: "on demand when there is no spare capacity anywhere",
		shown: func(z *Wizard) bool { return z.has("machines.spot_fallback") && z.draft.Spot },
		flag:  func(d *planning.Draft) *bool { return &d.Fallback }},
	{step: wizNodes, key: "machines.disk", label: "disk", hint: "of each node, such as 200GB; empty: what the image needs and room to work", shown: func(z *Wizard) bool { return z.has("machines.disk") },
		text: func(d *planning.Draft) *string { return &d.Disk }},
	{step: wizNodes, key: "machines.image", label: "image", hint: "an alias or an id; empty: the newest image with PyTorch", shown: func(z *Wizard) bool { return z.has("machines.image") },
		text: func(d *planning.Draft) *string { return &d.Image }},

	{step: wizEnvironment, key: "environment", label: "Python", hint: "system: what is on the node; venv: packages from a requirements file",
		words: []string{"system", "venv"}, text: func(d *planning.Draft) *string { return &d.Environment }},
	{step: wizEnvironment, key: "environment.venv", label: "packages", hint: "the requirements file, in the directory", known: filesNamed(".txt", ".toml", ".lock"),
		shown: func(z *Wizard) bool { return z.draft.Environment == "venv" }, text: func(d *planning.Draft) *string { return &d.File }},

	{step: wizTraining, key: keyDir, label: "directory", hint: "of the code; the profile is written there", known: (*Wizard).directories, text: func(d *planning.Draft) *string { return &d.Dir }},
	{step: wizTraining, key: "name", label: "name", hint: "of the experiment and its cluster", text: func(d *planning.Draft) *string { return &d.Name }},
	{step: wizTraining, key: "run.command", label: "command", hint: "such as  train.py --epochs 10", known: filesNamed(".py", ".sh"), text: func(d *planning.Draft) *string { return &d.Command }},
	{step: wizTraining, key: "run.engine", label: "engine", hint: engine.Auto + ": " + engine.AutoIs,
		words: engine.Choices(), text: func(d *planning.Draft) *string { return &d.Engine }},
	{step: wizTraining, key: "results.paths", label: "results", hint: "brought home at the end; several with commas", text: func(d *planning.Draft) *string { return &d.Results }},

	{step: wizLimits, key: "limits.budget", label: "budget", hint: "such as 20USD: the machines end when it is spent; empty: none", text: func(d *planning.Draft) *string { return &d.Budget }},
	{step: wizLimits, key: "limits.lifetime", label: "lifetime", hint: "such as 8h: the machines end so long after their start", text: func(d *planning.Draft) *string { return &d.Lifetime }},
	{step: wizLimits, key: "limits.idle", label: "idle", hint: "such as 30m: they end after so long without a run, a login or work on a GPU", text: func(d *planning.Draft) *string { return &d.Idle }},
}

// keyDir stands for the directory, which is in no profile.
const keyDir = "directory"

// stepOf is the question that a key of the profile belongs to.
func stepOf(key string) step {
	for _, f := range formFields {
		if f.key == key {
			return f.step
		}
	}
	if len(providers.Having(key)) > 0 && key != "machines.region" && key != "machines.instance" {
		return wizNodes
	}
	switch key {
	case "provider":
		return wizProvider
	case "machines.region":
		return wizRegion
	case "machines.instance":
		return wizMachine
	}
	return wizReview
}

// fields are those of the present question.
func (z *Wizard) fields() []*field {
	out := z.ownFields(true)
	for i := range formFields {
		if f := &formFields[i]; f.step == z.step && (f.shown == nil || f.shown(z)) {
			out = append(out, z.worded(f))
		}
	}
	return append(out, z.ownFields(false)...)
}

// hintsFrom is the width from which each field has its hint beside it; below
// that, the picked one has it under the form.
const hintsFrom = 110

// drawForm shows the fields of a question, each with what is wrong with it, in h rows:
// what is picked is among them, and its hint stays below.
func (z *Wizard) drawForm(l text.Look, w, h int) []string {
	rows, at := z.formRows(l, w)
	var hint []string
	if fields := z.fields(); w < hintsFrom && z.picked < len(fields) {
		hint = append(hint, "")
		for _, row := range text.Wrap(fields[z.picked].hint, w) {
			hint = append(hint, l.Styles.Dim.Of(row))
		}
	}
	below := z.foundRows(l, w)
	if len(rows)+len(hint)+len(below) <= h {
		return append(append(rows, hint...), below...)
	}
	if len(hint) > h/2 {
		hint = nil
	}
	room := h - len(hint)
	top := max(at-max(room-2, 0), 0) // the last row may say how many there are below
	return append(l.Scrolled(append(rows, below...), top, room), hint...)
}

// formRows are the fields and the way on, and in which row the picked one ends.
func (z *Wizard) formRows(l text.Look, w int) (out []string, at int) {
	s := l.Styles
	fields := z.fields()
	for i, f := range fields {
		out = append(out, z.fieldRow(l, f, i == z.picked, w))
		if why := z.faults[f.key]; why != "" {
			for _, row := range text.Wrap("✗ "+why, max(w-2-z.labelWidth(), 1)) {
				out = append(out, strings.Repeat(" ", 2+z.labelWidth())+s.Bad.Of(row))
			}
		}
		if i == z.picked {
			at = len(out) - 1
		}
	}
	out = append(out, "", l.PickRow(z.picked >= len(fields), "go on to the next step", "", w))
	if z.picked >= len(fields) {
		at = len(out) - 1
	}
	return out, at
}

// foundRows are what was found in the directory.
func (z *Wizard) foundRows(l text.Look, w int) (out []string) {
	if z.step != wizTraining || len(z.notes) == 0 {
		return nil
	}
	out = append(out, "", l.Styles.Dim.Of("found there"))
	for _, n := range z.notes {
		out = append(out, text.Hang("  ", n, text.Ink{}, w)...)
	}
	return out
}

// labelWidth is that of the labels of the present question.
func (z *Wizard) labelWidth() int {
	w := 12
	for _, f := range z.fields() {
		w = max(w, text.Wide(f.label)+1)
	}
	return min(w, 18)
}

func (z *Wizard) fieldRow(l text.Look, f *field, picked bool, w int) string {
	s := l.Styles
	label, value := text.Fit(f.label, z.labelWidth()), ""
	switch {
	case f.flag != nil && *f.flag(&z.draft):
		value = "yes"
	case f.flag != nil:
		value = "no"
	default:
		value = text.Word(f.value(&z.draft))
	}
	if len(f.words) > 0 || f.flag != nil {
		value = "‹ " + value + " ›"
	}
	mark := "  "
	if picked {
		mark, label = s.Picked.Of("› "), s.Picked.Of(label)
	}
	if w < hintsFrom {
		return text.Cut(mark+label+value, w)
	}
	valueW := text.Clamp(text.Wide(value), 18, max(w/2, 18))
	return text.Cut(mark+label+text.Fit(value, valueW)+"  "+s.Dim.Of(f.hint), w)
}

// editField asks for the picked value, turns a flag or goes on.
func (z *Wizard) editField() tea.Cmd {
	fields := z.fields()
	if z.picked >= len(fields) {
		return z.Next()
	}
	f := fields[z.picked]
	if f.flag != nil || len(f.words) > 0 {
		z.turnField(1)
		return nil
	}
	var known []string
	if f.known != nil {
		known = f.known(z)
	}
	z.screen.Ask(Prompt{Label: f.label, Line: line.New(f.value(&z.draft), known...), Done: func(text string) tea.Cmd {
		if f.key == keyDir && text != z.draft.Dir {
			return z.readDraft(text)
		}
		f.set(&z.draft, text)
		z.judge()
		if z.faults[f.key] == "" {
			z.picked++
		}
		return nil
	}})
	return nil
}

// Paths are completed where they are typed, rather than picked by bubbles'
// filepicker: that puts names as they are on the screen, with their newlines and
// escapes, and reads all of a directory first, 1.3 s for 100,000 files.

// filesNamed are the files of the directory whose names end so.
func filesNamed(ends ...string) func(*Wizard) []string {
	return func(z *Wizard) (out []string) {
		for _, p := range z.paths {
			if slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(p, end) }) {
				out = append(out, p)
			}
		}
		return out
	}
}

// directories are those below the directory, and the one above.
func (z *Wizard) directories() []string {
	out := []string{filepath.Dir(z.draft.Dir)}
	for _, p := range z.paths {
		if name, is := strings.CutSuffix(p, "/"); is {
			out = append(out, filepath.Join(z.draft.Dir, name))
		}
	}
	return out
}

// turnField goes to the next or the previous of a few values.
func (z *Wizard) turnField(d int) {
	fields := z.fields()
	if z.picked >= len(fields) {
		return
	}
	switch f := fields[z.picked]; {
	case f.flag != nil:
		v := f.flag(&z.draft)
		*v = !*v
	case len(f.words) > 0:
		i := max(slices.Index(f.words, f.value(&z.draft)), 0)
		f.set(&z.draft, f.words[(i+d+len(f.words))%len(f.words)])
	}
	z.judge()
}

// Turn is left and right: among values, or among what is compared.
func (z *Wizard) Turn(d int) tea.Cmd {
	switch z.step {
	case wizMachine:
		z.market.Turn(d)
	case wizProvider, wizRegion, wizReview:
	default:
		z.turnField(d)
	}
	return nil
}
