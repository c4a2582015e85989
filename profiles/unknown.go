package profiles

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/nearword"
)

// unknown reports a key that is not in the table: the nearest of its
// neighbours, or the place where a key of this name belongs.
func (d *decoder) unknown(group string, k *yaml.Node) {
	if len(d.errs) >= maxErrors { // nobody reads what more would be found
		return
	}
	what, where := "key "+quote(k.Value), "a profile"
	if group != "" {
		where = group
		what += " in " + group
	}
	fl := flaw{why: where + " has no such key"}
	if head, rest, tight := strings.Cut(k.Value, ":"); tight && k.Style == 0 && d.has(join(group, head)) && slices.Contains(keysOf[group], head) {
		d.faulty[join(group, head)] = true // it is not missing, only not told apart
		fl = flaw{why: "a colon needs a space after it", next: fmt.Sprintf("write %s: %s", head, excerpt(rest)), offset: utf8.RuneCountInString(head), width: 1}
		d.failAt(k, join(group, k.Value), quote(k.Value), fl)
		return
	}
	var elsewhere string // a key that only other providers have
	if fl.nearest = likelyKey(group, k.Value, d.has); fl.nearest == "" {
		elsewhere = likelyKey(group, k.Value, func(key string) bool { return !d.has(key) })
	}
	d.faulty[join(group, fl.nearest)] = true // it is not missing, only misspelt
	switch f := fieldByKey[group]; {
	case group != "" && slices.Contains(keysOf[""], k.Value) && d.has(k.Value): // its own name would be no advice
		fl.nearest, fl.next = "", fmt.Sprintf("%s stands at the top of a profile: write it beside %s", k.Value, group)
	case fl.nearest != "":
	case elsewhere != "":
		full := elsewhere
		if slices.Contains(keysOf[group], elsewhere) {
			full = join(group, elsewhere)
		}
		of := table[slices.IndexFunc(table, func(f *Field) bool { return f.within(full) })].Providers
		fl.next = fmt.Sprintf("%s is a key of provider %s, not of %s", elsewhere, strings.Join(of, ", "), d.provider)
	case f != nil && f.Default == k.Value: // a word that stands instead of a mapping
		fl.next = fmt.Sprintf("write %s: %s", last(group), k.Value)
	default:
		fl.next = where + " has " + strings.Join(d.keysOf(group), ", ")
	}
	d.failAt(k, join(group, k.Value), what, fl)
}

// has reports whether the provider that the profile names has a key, or one of
// those in the group of that name. Where it names none that there is, all have.
func (d *decoder) has(key string) bool {
	return slices.ContainsFunc(table, func(f *Field) bool {
		return f.within(key) && (d.provider == "" || f.Providers == nil || slices.Contains(f.Providers, d.provider))
	})
}

// within reports whether a field is a key or in the group of that name.
func (f *Field) within(key string) bool {
	rest, is := strings.CutPrefix(f.Key, key)
	return is && (rest == "" || rest[0] == '.')
}

// keysOf are the keys of a group that the provider has.
func (d *decoder) keysOf(group string) []string {
	return slices.DeleteFunc(slices.Clone(keysOf[group]), func(word string) bool { return !d.has(join(group, word)) })
}

// likelyKey is the key, of those that count, that a word in a group was meant to be:
// its last word where it is of the group.
func likelyKey(group, word string, counts func(key string) bool) string {
	near := slices.DeleteFunc(slices.Clone(keysOf[group]), func(word string) bool { return !counts(join(group, word)) })
	if near := nearword.Nearest(word, near); near != "" {
		return near
	}
	for _, f := range Fields {
		if parent(f.Key) == group && counts(f.Key) && (slices.Contains(f.Also, nearword.Fold(word)) || slices.Contains(f.Also, word)) {
			return last(f.Key)
		}
	}
	for _, f := range Fields { // the right key in the wrong place
		if counts(f.Key) && (last(f.Key) == word || slices.Contains(f.Also, word)) {
			return f.Key
		}
	}
	return ""
}

// providerOf is the provider that a profile names, wherever in it, or the default;
// empty where there is none of that name.
func providerOf(root *yaml.Node) string {
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		if name := root.Content[i+1].Value; root.Content[i].Value == "provider" {
			if !slices.Contains(providers.Names(), name) {
				return ""
			}
			return name
		}
	}
	return providers.Default().Name
}
