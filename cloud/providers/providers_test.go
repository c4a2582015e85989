package providers

import (
	"reflect"
	"slices"
	"testing"

	"github.com/dlwb/dlwb/cloud/about"
)

func TestTheTableOfProvidersIsSound(t *testing.T) {
	meant := map[string]string{}
	for _, p := range All {
		for _, word := range append([]string{p.Name}, p.Also...) {
			if meant[word] != "" {
				t.Errorf("%s means %s and %s", word, meant[word], p.Name)
			}
			meant[word] = p.Name
		}
		if p.Planned != "" && (!slices.Contains(Usable(), p.Planned) || p.Traits != about.Traits{}) {
			t.Errorf("%s has no code: it has no traits, and what comes nearest can be used, not %q", p.Name, p.Planned)
		}
		if p.Planned == "" && p.Doc == "" {
			t.Errorf("%s: nothing tells who chooses it what it is", p.Name)
		}
		if (p.Traits.Priced || p.Traits.Budgeted) != (p.Pays != "") {
			t.Errorf("%s: what is paid for is told of a provider that costs money, and of no other", p.Name)
		}
		for _, key := range p.Needs {
			if !p.Has(key) {
				t.Errorf("%s needs %s and does not have it", p.Name, key)
			}
		}
	}
	if Default().Traits != (about.Traits{SharedHost: true, SharedUplink: true}) {
		t.Errorf("a profile that names no provider costs nothing and runs here, and it is %+v", Default())
	}
}

func TestAnUnknownProviderHasNoTraits(t *testing.T) {
	if p := Named("none"); p.Name != "none" || p.Traits != (about.Traits{}) {
		t.Errorf("%+v", p)
	}
}

// What a profile says under one key is given to each provider that has the key: they
// have to mean the same kind of value by it.
func TestAKeyOfSeveralProvidersIsOfOneKind(t *testing.T) {
	kinds := map[string]reflect.Type{}
	for _, p := range All {
		for _, o := range p.Options {
			if p.New == nil {
				continue
			}
			kind := reflect.TypeOf(o.Place(p.New()))
			if first, is := kinds[o.Key]; is && first != kind {
				t.Errorf("%s is a %v, and a %v for %s", o.Key, first, kind, p.Name)
			}
			kinds[o.Key] = kind
		}
	}
}
