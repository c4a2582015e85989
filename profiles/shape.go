package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// readTree parses the text to a tree of YAML nodes and finds everything in it
// that a profile has no use for: aliases, anchors, tags, merge keys, further
// documents, keys given twice. The root is nil when there is nothing to read.
func (s *source) readTree() (root *yaml.Node, errs Errors) {
	dec := yaml.NewDecoder(bytes.NewReader(s.text))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, Errors{s.fault(1, 1, "the file", "it is empty", "the least profile is run: {command: train.py}")}
	case err != nil:
		return nil, Errors{s.explain(err)}
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		errs = append(errs, s.fault(more.Line, more.Column, "a second document", "a profile is one document",
			"remove the \"---\" line above and what follows, or make it a file of its own"))
	case !errors.Is(err, io.EOF):
		errs = append(errs, s.explain(err))
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, append(errs, s.fault(1, 1, "the file", "it holds no settings", "write key: value lines"))
	}
	root = doc.Content[0]
	sh := &shape{src: s, errs: errs}
	sh.check(root, 1)
	return root, sh.errs
}

// shape walks a tree. It does not follow aliases, so it ends soon.
type shape struct {
	src  *source
	errs Errors
}

func (sh *shape) fail(n *yaml.Node, what, why, next string) {
	if len(sh.errs) >= maxErrors {
		return
	}
	e := sh.src.fault(n.Line, n.Column, what, why, next)
	e.width = max(1, utf8.RuneCountInString(n.Value))
	sh.errs = append(sh.errs, e)
}

func (sh *shape) check(n *yaml.Node, depth int) {
	switch {
	case depth > MaxDepth:
		sh.errs = append(sh.errs, sh.src.tooDeep(n.Line, n.Column))
		return
	case n.Kind == yaml.AliasNode:
		sh.fail(n, quote("*"+n.Value), "aliases are not allowed in a profile", "write the value out")
		return
	case n.Anchor != "":
		sh.fail(n, quote("&"+n.Anchor), "anchors are not allowed in a profile", "remove it, and write the value out where it is used")
	case n.Style&yaml.TaggedStyle != 0:
		sh.fail(n, quote(n.Tag), "tags are not allowed in a profile", "leave the tag out")
	}
	if n.Kind == yaml.ScalarNode {
		sh.secret(n)
	}
	if n.Kind == yaml.MappingNode {
		sh.keys(n)
	}
	for _, c := range n.Content {
		sh.check(c, depth+1)
	}
}

// keys checks the keys of a mapping: each a plain word, each once.
func (sh *shape) keys(n *yaml.Node) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind == yaml.AliasNode: // reported as an alias
		case k.Kind != yaml.ScalarNode:
			sh.fail(k, "a key", "it is a "+kindName(k)+", not a word", "write key: value")
		case k.Value == "<<" && k.Style == 0:
			sh.fail(k, `"<<"`, "merge keys are not allowed in a profile", "write the keys out")
		case first[k.Value] > 0:
			sh.fail(k, "key "+quote(k.Value), fmt.Sprintf("it is already given in line %d", first[k.Value]), "keep one of the two")
		default:
			first[k.Value] = k.Line
		}
	}
}

// secret reports a token that stands in the file in the clear.
func (sh *shape) secret(n *yaml.Node) {
	t := tokenIn(n.Value)
	if t == "" {
		return
	}
	sh.hide(n)
	sh.fail(n, "a secret", "this looks like "+t, "keep it out of the file: put it into run.env as ${env:NAME}, and export NAME before starting dlwb")
}

// hide keeps a value from being shown with a message about its line.
func (sh *shape) hide(n *yaml.Node) {
	for i := range strings.Count(n.Value, "\n") + 1 {
		if i == 0 {
			sh.src.secret[n.Line] = n.Column
		} else {
			sh.src.secret[n.Line+i] = 1
		}
	}
}

// kindName is what a node is called in messages.
func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	case yaml.AliasNode:
		return "alias"
	}
	return "single value"
}
