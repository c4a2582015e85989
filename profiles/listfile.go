package profiles

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/nearword"
)

// ListKey is a key of a file of settings whose values are lists of words.
type ListKey struct {
	Key     string // "secrets.send"
	Doc     string // one sentence
	Example string // a value, as YAML
	// Check says what is wrong with a value, and what would be right; nil
	// takes all.
	Check func(text string) (why, next string)
}

// ParseLists reads a file of settings: two levels of keys, and a list of words
// for each. It is as strict as the reader of profiles, and its faults are
// Errors in the same manner. noun is what messages call the file. An empty file
// sets nothing.
func ParseLists(path, noun string, text []byte, keys []ListKey) (map[string][]string, error) {
	src := newSource(path, []byte(strings.TrimPrefix(string(text[:min(len(text), MaxSize+4)]), "\uFEFF")))
	src.noun = noun
	if len(text) <= MaxSize && bare(src.lines) {
		return map[string][]string{}, nil
	}
	errs, fatal := src.checkText()
	if fatal {
		return nil, errs.finish(src)
	}
	root, errs := src.readTree()
	r := &listReader{shape: shape{src: src, errs: errs}, keys: keys, found: map[string][]string{}}
	if root != nil {
		r.groups(root)
	}
	if err := r.errs.finish(src); err != nil {
		return nil, err
	}
	return r.found, nil
}

// bare reports whether a file says nothing.
func bare(lines []string) bool {
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

type listReader struct {
	shape
	keys  []ListKey
	found map[string][]string
}

func (r *listReader) groups(root *yaml.Node) {
	var names []string
	for _, k := range r.keys {
		names = append(names, parent(k.Key))
	}
	r.each(root, "the file", func(k, v *yaml.Node) {
		if !slices.Contains(names, k.Value) {
			r.unknown(k, "key "+quote(k.Value), r.src.noun+" have no such key", names)
			return
		}
		r.lists(k.Value, v)
	})
}

func (r *listReader) lists(group string, n *yaml.Node) {
	var names []string
	for _, k := range r.keys {
		if parent(k.Key) == group {
			names = append(names, last(k.Key))
		}
	}
	r.each(n, group, func(k, v *yaml.Node) {
		for _, key := range r.keys {
			if key.Key == join(group, k.Value) {
				r.list(key, v)
				return
			}
		}
		r.unknown(k, "key "+quote(k.Value)+" in "+group, group+" has no such key", names)
	})
}

// each calls f for each key and value of a mapping.
func (r *listReader) each(n *yaml.Node, what string, f func(k, v *yaml.Node)) {
	if n.Kind == yaml.AliasNode {
		return // reported as an alias
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n, what, "this is a "+kindName(n)+", and a mapping is needed", "write key: value lines")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode {
			f(k, n.Content[i+1])
		}
	}
}

func (r *listReader) unknown(k *yaml.Node, what, why string, names []string) {
	e := r.src.fault(k.Line, k.Column, what, why, "")
	if e.Nearest = nearword.Nearest(k.Value, names); e.Nearest == "" {
		e.Next = "known are " + strings.Join(unique(names), ", ")
	}
	e.width = utf8.RuneCountInString(k.Value)
	r.errs = append(r.errs, e)
}

func (r *listReader) list(key ListKey, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, key.Key, "this is a "+kindName(n)+", and a list is needed", "such as "+last(key.Key)+": "+key.Example)
		return
	}
	for _, item := range n.Content {
		why, next := "it is no word", "such as "+key.Example
		if item.Kind == yaml.ScalarNode && item.Tag != "!!null" {
			why, next = "", ""
			if fl := oneLine(item.Value); fl.why != "" {
				why, next = fl.why, fl.next
			} else if key.Check != nil {
				why, next = key.Check(item.Value)
			}
		}
		if why != "" {
			r.fail(item, fmt.Sprintf("%s %s", key.Key, quote(item.Value)), why, next)
			continue
		}
		r.found[key.Key] = append(r.found[key.Key], item.Value)
	}
}

func unique(list []string) (once []string) {
	for _, v := range list {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}
