package wizard

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/workbench/planning"
)

// ownFields are the keys of the draft's provider that the wizard asks for: what its
// profiles can't be without, where needed is set, or else what many have.
func (z *Wizard) ownFields(needed bool) (out []*field) {
	if z.step != wizNodes {
		return nil
	}
	p := providers.Named(z.draft.Provider)
	for _, o := range p.Options {
		if needs := slices.Contains(p.Needs, o.Key); needs != needed || !needs && !o.Asked {
			continue
		}
		f := &field{step: wizNodes, key: o.Key, label: strings.ReplaceAll(o.Name(), "_", " "), hint: hintOf(o), own: true}
		f.known = func(z *Wizard) []string { return z.screen.Bench.Known(z.draft.Provider, o.Key) }
		if o.Kind == about.Flag {
			f.words = []string{"", "true"}
		}
		out = append(out, f)
	}
	return out
}

// hintOf is the first sentence on an option, without marks, and how it is written.
func hintOf(o about.Option) string {
	hint, _, _ := strings.Cut(strings.TrimSuffix(o.Doc, "."), ". ")
	if o.Example != "" {
		hint = "such as " + strings.Trim(o.Example, "[]{}") + ": " + hint
	}
	return strings.ReplaceAll(hint, "`", "")
}

// value is what a draft has in a field that is no flag.
func (f *field) value(d *planning.Draft) string {
	if f.own {
		return d.Own[f.key]
	}
	return *f.text(d)
}

// set puts a value into a draft.
func (f *field) set(d *planning.Draft, value string) {
	if f.own {
		d.SetOwn(f.key, value)
		return
	}
	*f.text(d) = value
}

// chooseProvider takes the picked provider. Where its profiles name their machines
// one by one, all of them are used unless a number is given.
func (z *Wizard) chooseProvider(name string) {
	z.draft.Provider = name
	switch named := providers.Named(name).Named != nil; {
	case named && z.draft.Count == "1":
		z.draft.Count = ""
	case !named && z.draft.Count == "":
		z.draft.Count = "1"
	}
	z.judge()
}

// has reports whether the provider's profiles have a key that is chosen elsewhere
// where there are offers.
func (z *Wizard) has(key string) bool { return providers.Named(z.draft.Provider).Has(key) }

// worded is a field as it reads for the draft's provider.
func (z *Wizard) worded(f *field) *field {
	own, provider := *f, providers.Named(z.draft.Provider)
	switch {
	case f.key == "machines.count" && provider.Named != nil:
		own.hint += "; empty: all that are named"
	case f.key == "machines.image" && !provider.Traits.Leased:
		own.hint = "the container image that the ranks run in"
	}
	return &own
}
