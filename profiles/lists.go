package profiles

import (
	"fmt"
	"net/netip"
	"path"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
)

// listType makes a type of a list of texts. With alone, one value may stand
// for a list of one.
func listType(name, doc string, alone bool, item func(*Field) schema, read func(f *Field, text string) (string, flaw)) *Type {
	t := &Type{Name: name, Doc: doc}
	t.Schema = func(f *Field) schema {
		list := schema{"type": "array", "items": item(f), "minItems": 1, "uniqueItems": true}
		if alone {
			return schema{"oneOf": []any{item(f), list}}
		}
		return list
	}
	t.parse = func(d *decoder, f *Field, n *yaml.Node, into any) {
		items := n.Content
		switch {
		case n.Kind == yaml.ScalarNode && alone:
			items = []*yaml.Node{n}
		case n.Kind == yaml.ScalarNode:
			d.flaw(f.Key, n, flaw{why: "this is one value, and a list is needed", next: "write it in brackets: [" + excerpt(n.Value) + "]"})
			return
		case n.Kind != yaml.SequenceNode:
			d.wrongKind(f.Key, n, "list")
			return
		case len(items) == 0:
			d.flaw(f.Key, n, flaw{why: "the list is empty", next: "leave the key out"})
			return
		}
		if all, ok := d.items(f, items, read); ok {
			*into.(*[]string) = all
		}
	}
	t.format = func(_ *Field, from any) string { return writeList(*from.(*[]string)) }
	return t
}

// items reads the items of a list, each once.
func (d *decoder) items(f *Field, items []*yaml.Node, read func(*Field, string) (string, flaw)) (all []string, ok bool) {
	ok = true
	seen := map[string]bool{}
	for _, n := range items {
		text, scalar := d.scalar(f.Key, n)
		if !scalar {
			ok = false
			continue
		}
		v, fl := text, oneLine(text)
		if fl.why == "" {
			v, fl = read(f, text)
		}
		if fl.why == "" && seen[v] && f.Key != "environment.before" && f.Key != "environment.after" { // a shell may do a thing twice
			fl = flaw{why: "it is in the list twice", next: "keep one of the two"}
		}
		if fl.why != "" {
			d.flaw(f.Key, n, fl)
			ok = false
			continue
		}
		seen[v] = true
		all = append(all, v)
	}
	return all, ok
}

func writeList(all []string) string {
	if len(all) == 0 {
		return ""
	}
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = yamlText(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

var (
	textsType = listType("list of texts", "[a, b]", false, stringSchema(""),
		func(_ *Field, text string) (string, flaw) { return text, flaw{} })
	wordsType = listType("list of words", "one word, or a list", true, stringSchema(`^\S+$`),
		func(_ *Field, text string) (string, flaw) {
			if strings.ContainsAny(text, " \t") {
				return "", flaw{why: "it has a space", next: "write several in brackets: [a, b]"}
			}
			return text, flaw{}
		})
	pathsType = listType("list of paths", "paths that are relative, with /, and not out of the directory", false, stringSchema(""),
		func(_ *Field, text string) (string, flaw) { return path.Clean(text), insidePath(text) })
	regionsType = listType("regions", "one region, or a list", true, stringSchema(regionForm.String()),
		func(_ *Field, text string) (string, flaw) {
			if regionForm.MatchString(text) {
				return text, flaw{}
			}
			fl := flaw{why: "this is no region", next: "a region is like us-east-1"}
			if zone := text[:max(len(text)-1, 0)]; regionForm.MatchString(zone) {
				fl.why, fl.nearest = "this is a zone, not a region", zone
			}
			return "", fl
		})
	networksType = listType("networks", "one address or network, or a list", true, stringSchema(""),
		func(_ *Field, text string) (string, flaw) {
			if a, err := netip.ParseAddr(text); err == nil {
				return a.String(), flaw{}
			}
			n, err := netip.ParsePrefix(text)
			switch {
			case err != nil:
				return "", flaw{why: "this is neither an address nor a network", next: "198.51.100.7, or 203.0.113.0/24"}
			case n.Bits() < widestNetwork:
				return "", flaw{why: fmt.Sprintf("a /%d is too much of the internet to open ssh to", n.Bits()), next: "the networks that you come from, such as 203.0.113.0/24"}
			}
			return n.Masked().String(), flaw{}
		})
	modelsType = modelList()
)

// widestNetwork is the shortest prefix of a network that a port may be open to.
const widestNetwork = 8

// modelList is the type of GPU models: a list, or one text with | between them.
func modelList() *Type {
	t := listType("GPU models", "one model, several with | between them, or a list", true, stringSchema(""),
		func(_ *Field, text string) (string, flaw) {
			if !modelForm.MatchString(text) {
				return "", flaw{why: "this is no GPU model", next: "such as A10G, or A10G|L4"}
			}
			return text, flaw{}
		})
	list := t.parse
	t.parse = func(d *decoder, f *Field, n *yaml.Node, into any) {
		if n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "|") {
			list(d, f, n, into)
			return
		}
		split := *n
		split.Kind, split.Content = yaml.SequenceNode, nil
		for text := range strings.SplitSeq(n.Value, "|") {
			one := *n
			one.Value = strings.TrimSpace(text)
			split.Content = append(split.Content, &one)
		}
		list(d, f, &split, into)
	}
	return t
}

// forwardForm is a port, or one with an HTTP server.
var forwardForm = pattern.New(`^([0-9]+)(/http)?$`)

// forwardNode is what stands before what is not on node 0.
var forwardNode = pattern.New(`^node([0-9]{1,5}):`)

// SplitForward takes a forward apart: the number of its node, 0 where none is named,
// and what of that node is meant.
func SplitForward(text string) (node int, what string) {
	m := forwardNode.FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	node, _ = strconv.Atoi(m[1]) // five digits
	return node, text[len(m[0]):]
}

// JoinForward is a forward as profiles name it: what SplitForward takes apart.
func JoinForward(node int, what string) string {
	if node == 0 {
		return what
	}
	return fmt.Sprintf("node%d:%s", node, what)
}

// ForwardsText are forwards in words, with the nodes on which they are.
func ForwardsText(all []string) string {
	var nodes []int
	on := map[int][]string{}
	for _, text := range all {
		node, what := SplitForward(text)
		if on[node] == nil {
			nodes = append(nodes, node)
		}
		on[node] = append(on[node], what)
	}
	parts := make([]string, len(nodes))
	for i, node := range nodes {
		parts[i] = fmt.Sprintf("%s of node%d", strings.Join(on[node], ", "), node)
	}
	return strings.Join(parts, ", and ")
}

var forwardType = listType("list of forwards", "jupyter, tensorboard, a port, or with `/http` a port with an HTTP server, of another node than node 0 with `node1:` before it", false, func(*Field) schema {
	return schema{"oneOf": []any{schema{"type": "integer", "minimum": 1, "maximum": 65535},
		schema{"type": "string", "pattern": `^(node[0-9]{1,5}:)?(jupyter|tensorboard|[0-9]{1,5}/http)$`}, schema{"type": "string", "pattern": `^node[0-9]{1,5}:[0-9]{1,5}$`}}}
}, func(_ *Field, text string) (string, flaw) {
	node, text := SplitForward(text)
	if text == "jupyter" || text == "tensorboard" {
		return JoinForward(node, text), flaw{}
	}
	if m := forwardForm.FindStringSubmatch(text); m != nil {
		port, err := strconv.Atoi(m[1])
		if err != nil || port < 1 || port > 65535 {
			return "", flaw{why: "a port is a number from 1 to 65535", next: "such as 8265"}
		}
		return JoinForward(node, strconv.Itoa(port)+m[2]), flaw{}
	}
	if port, kind, ok := strings.Cut(text, "/"); ok && forwardForm.MatchString(port) {
		return "", flaw{why: "there is no such kind of port", nearest: JoinForward(node, port+"/http"), next: kind + " is none; /http is, and a port without it is raw TCP"}
	}
	near := nearword.Nearest(text, []string{"jupyter", "tensorboard"})
	if near != "" {
		near = JoinForward(node, near)
	}
	return "", flaw{why: "nothing with this name can be forwarded", nearest: near,
		next: "name jupyter, tensorboard, or a port, of node 0 or with node1: before it of another"}
})

// systemType is `environment: system`; the other environments are mappings.
var systemType = &Type{
	Name: "environment", Doc: "`system`, or a mapping with one of venv, conda and docker",
	Schema: func(*Field) schema { return schema{"const": "system"} },
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		text, ok := d.scalar(f.Key, n)
		if !ok {
			return
		}
		if text == "system" {
			into.(*Environment).Kind = "system"
			return
		}
		fl := flaw{why: "there is no such environment", nearest: nearword.Nearest(text, []string{"system", "venv", "conda", "docker"}),
			next: "system, or a mapping such as {venv: requirements.txt}"}
		if kind, ok := fieldByKey[join(f.Key, text)]; ok && kind.Type == kindType {
			fl = flaw{why: "it needs to know from what", next: fmt.Sprintf("write {%s: %s}", text, kind.Example)}
		}
		d.flaw(f.Key, n, fl)
	},
	format: func(_ *Field, from any) string { // the mapping stands for itself
		if e := from.(*Environment); reflect.DeepEqual(*e, Environment{Kind: "system"}) {
			return "system"
		}
		return ""
	},
}

// kindType is a kind of environment: its name is the key, its value a file or
// an image.
var kindType = &Type{
	Name: "file", Doc: "a path in the code directory, or a container image", Schema: stringSchema(""),
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		text, ok := d.scalar(f.Key, n)
		if !ok {
			return
		}
		fl := oneLine(text)
		switch {
		case fl.why != "":
		case last(f.Key) == "conda" && isCondaName(text): // it lies on the nodes
		case last(f.Key) != "docker":
			fl = plainPath(text)
		case strings.HasPrefix(text, "-"):
			fl = flaw{why: "an image's name does not begin with a dash", next: "write it as docker pull has it: OWNER/NAME:TAG"}
		}
		if fl.why != "" {
			d.flaw(f.Key, n, fl)
			return
		}
		e := into.(*Environment)
		e.Kind, e.File = last(f.Key), text
	},
	format: func(f *Field, from any) string {
		if e := from.(*Environment); e.Kind == last(f.Key) {
			return yamlText(e.File)
		}
		return ""
	},
}
