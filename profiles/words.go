package profiles

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The types of words that options of providers have: a list, and a mapping.
var (
	wordsType = listType("list of words", "one word, or a list", true, stringSchema(`^\S+$`),
		func(f *Field, text string) (string, flaw) {
			if strings.ContainsAny(text, " \t") {
				return "", flaw{why: "it has a space", next: "such as " + f.Example}
			}
			return text, flaw{}
		})
	pairsType = &Type{
		Name: "words by words", Doc: "a mapping of words to words",
		Schema: func(*Field) schema {
			return schema{"type": "object", "propertyNames": schema{"pattern": `^\S+$`}, "additionalProperties": schema{"type": "string", "pattern": `^\S*$`}}
		},
		parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
			all := map[string]string{}
			ok := d.entries(f.Key, n, func(k, v *yaml.Node) bool {
				text, ok := d.scalar(join(f.Key, k.Value), v)
				if !ok {
					return false
				}
				if strings.ContainsAny(k.Value, " \t\n") {
					return d.keyFlaw(f.Key, k, flaw{why: "it has a space", next: "such as " + f.Example})
				}
				if strings.ContainsAny(text, " \t\n") {
					d.flaw(join(f.Key, k.Value), v, flaw{why: "it has a space", next: "such as " + f.Example})
					return false
				}
				all[k.Value] = text
				return true
			})
			if ok {
				*into.(*map[string]string) = all
			}
		},
		format: func(_ *Field, from any) string {
			var parts []string
			all := *from.(*map[string]string)
			for _, k := range slices.Sorted(maps.Keys(all)) {
				parts = append(parts, yamlText(k)+": "+yamlText(all[k]))
			}
			return writeMap(parts)
		},
	}
)
