package foreign

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/profiles"
)

// roundsMost bounds how often something is left out.
const roundsMost = 20

// profile is what the reader of profiles makes of the keys. What it refuses is left
// out and named: one value that another tool allows costs no more than itself.
func (f *file) profile(script string) (*profiles.Profile, error) {
	for range roundsMost {
		text, err := yaml.Marshal(nest(f.out))
		if err != nil {
			return nil, err
		}
		p, err := profiles.ParseToShow(filepath.Join(filepath.Dir(f.name), profiles.FileName), text)
		if err == nil {
			return p, nil
		}
		if !f.leaveOut(err, script) {
			return nil, fmt.Errorf("what %s says makes no profile: %w", f.name, err)
		}
	}
	return nil, fmt.Errorf("what %s says makes no profile", f.name)
}

// leaveOut leaves out the keys that a reader of profiles finds fault with.
func (f *file) leaveOut(err error, script string) (some bool) {
	var all profiles.Errors
	var one *profiles.Error
	switch {
	case errors.As(err, &all):
	case errors.As(err, &one):
		all = profiles.Errors{one}
	}
	for _, e := range all {
		key := f.keyOf(e.Key)
		if key == "" || key == "run.command" && f.out[key] == script {
			continue
		}
		value := f.out[key]
		f.note(f.lines[fmt.Sprint(value)], cut(fmt.Sprintf("%s: %v", key, value)), "a profile can't hold it: "+e.Why)
		delete(f.out, key)
		some = true
		if key == "run.command" {
			f.out[key] = script
		}
		if key == "machines.hosts" || key == "provider" { // a provider is nothing without its machines
			delete(f.out, "provider")
		}
	}
	f.here()
	return some
}

// keyOf is the key that was set of which one is, or is a part.
func (f *file) keyOf(key string) string {
	for _, set := range slices.Sorted(maps.Keys(f.out)) {
		if key != "" && (set == key || strings.HasPrefix(key, set+".") || strings.HasPrefix(set, key+".")) {
			return set
		}
	}
	return ""
}

// cut is the first line of a text.
func cut(text string) string {
	first, _, more := strings.Cut(text, "\n")
	if more {
		first += " …"
	}
	return first
}
