package profiles

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Flatten gives every key of a profile's text with its value as it stands there,
// in order: run.command, machines.count. References stay references. Of a text
// that is no YAML it gives nothing.
func Flatten(source string) [][2]string {
	var doc yaml.Node
	if len(source) > MaxSize || yaml.Unmarshal([]byte(strings.TrimPrefix(source, "\uFEFF")), &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	var all [][2]string
	flatten("", doc.Content[0], 0, &all)
	return all
}

// deepest bounds how deep a text is looked into; no profile is deeper.
const deepest = 16

func flatten(key string, n *yaml.Node, depth int, all *[][2]string) {
	switch {
	case n.Kind == yaml.MappingNode && depth < deepest:
		for i := 0; i+1 < len(n.Content); i += 2 {
			flatten(join(key, n.Content[i].Value), n.Content[i+1], depth+1, all)
		}
	case n.Kind == yaml.SequenceNode:
		var items []string
		for _, item := range n.Content {
			items = append(items, item.Value)
		}
		*all = append(*all, [2]string{key, strings.Join(items, ", ")})
	case n.Kind == yaml.ScalarNode:
		*all = append(*all, [2]string{key, n.Value})
	}
}
