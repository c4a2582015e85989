package profiles

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
)

// optionTypes are the types of values that options of providers have.
var optionTypes = map[about.Kind]*Type{about.Word: wordType, about.Flag: flagType, about.Count: countType,
	about.Networks: networksType, about.Words: wordsType, about.Dollars: priceType, about.Pairs: pairsType, about.Script: scriptType,
	about.HostList: hostsType, about.HostKeys: hostKeysType}

// withOptions puts the options of providers among the keys that are common. What
// several providers call the same is one key: a profile keeps it when its provider
// changes.
func withOptions(common []*Field, all []about.Provider) []*Field {
	fields := slices.Clone(common)
	for _, p := range all {
		before := map[string]string{} // the option of a group that was put in last
		for _, o := range p.Options {
			group := parent(o.Key)
			if at := slices.IndexFunc(fields, func(f *Field) bool { return f.Key == o.Key }); at >= 0 {
				fields[at].Also = union(fields[at].Also, o.Also)
				before[group] = o.Key
				continue
			}
			after := cmp.Or(o.After, before[group], lastOf(common, group))
			at := slices.IndexFunc(fields, func(f *Field) bool { return f.Key == after })
			fields, before[group] = slices.Insert(fields, at+1, fieldOf(p, o)), o.Key
		}
	}
	return fields
}

// lastOf is the last of the keys of a group.
func lastOf(fields []*Field, group string) (key string) {
	for _, f := range fields {
		if parent(f.Key) == group {
			key = f.Key
		}
	}
	return key
}

// fieldOf is the field of an option.
func fieldOf(p about.Provider, o about.Option) *Field {
	return &Field{Key: o.Key, Type: optionTypes[o.Kind], Default: o.Default, Min: o.Min, Max: o.Max, Also: o.Also, Doc: o.Doc, Example: o.Example,
		ref: func(profile *Profile) any { return o.Place(profile.options(p)) }}
}

// Own is what the profile says in the options of its provider, in the struct
// that the provider has for them; nil where it has none.
func (p *Profile) Own() any { return p.options(providers.Named(p.Provider)) }

// options are the options of a provider. A profile that was not read from a text
// has none: they are at their zero values.
func (p *Profile) options(of about.Provider) any {
	switch own, is := p.own[of.Name]; {
	case is:
		return own
	case of.New != nil:
		return of.New()
	}
	return nil
}

// named is how many machines the profile names; 0 where it names none.
func (p *Profile) named() int {
	if of := providers.Named(p.Provider); of.Named != nil {
		return of.Named(p.options(of))
	}
	return 0
}

// Head is the type of the machine that comes before the others and on which no rank
// trains; empty: there is none.
func (p *Profile) Head() string {
	if of := providers.Named(p.Provider); of.Head != nil {
		return of.Head(p.options(of))
	}
	return ""
}

// Nodes is how many nodes the cluster has, with its head.
func (p *Profile) Nodes() int {
	if p.Head() != "" {
		return p.Machines.Count + 1
	}
	return p.Machines.Count
}

// makeOptions makes room for the options of all providers: which of them a
// profile names may be read after its options.
func (p *Profile) makeOptions() {
	p.own = map[string]any{}
	for _, of := range providers.All {
		if of.New != nil {
			p.own[of.Name] = of.New()
		}
	}
}

// shareOptions gives each provider what was read into the place of the first that
// has the key.
func (p *Profile) shareOptions() {
	first := map[string]reflect.Value{}
	for _, of := range providers.All {
		for _, o := range of.Options {
			place := reflect.ValueOf(o.Place(p.own[of.Name])).Elem()
			if from, is := first[o.Key]; is {
				place.Set(from)
			} else {
				first[o.Key] = place
			}
		}
	}
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, word := range b {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// sameOptions reports whether two profiles say the same to every provider.
func sameOptions(a, b *Profile) bool {
	return !slices.ContainsFunc(providers.All, func(p about.Provider) bool { return !reflect.DeepEqual(a.options(p), b.options(p)) })
}
