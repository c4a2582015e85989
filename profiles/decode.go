package profiles

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// mark is the place of a key and of its value.
type mark struct {
	keyLine, keyColumn, line, column, width int
	quoted                                  bool
}

// decoder fills a profile from a tree. It reports what it does not
// understand and goes on.
type decoder struct {
	shape
	p      *Profile
	lookup func(string) (string, bool) // the variables of the shell
	// given are the keys that stand in the file and are known; faulty are those
	// with a fault of their own, for which nothing more needs to be said.
	given, faulty map[string]bool
	provider      string // that the file names; empty where there is none of that name
}

// Load reads the profile at path. Faults of the file are Errors.
func Load(path string) (*Profile, error) { return loadWith(path, os.LookupEnv) }

// LoadToShow is Load for a profile that is only looked at: its references to
// variables of the shell are not followed, and each stands for itself.
func LoadToShow(path string) (*Profile, error) { return loadWith(path, anyVariable) }

// ParseToShow is Parse for a profile that is only looked at, as in LoadToShow.
func ParseToShow(path string, text []byte) (*Profile, error) { return parse(path, text, anyVariable) }

// Resolve is the same profile with its references followed.
func (p *Profile) Resolve() (*Profile, error) { return Parse(p.Path, []byte(p.Source)) }

func anyVariable(name string) (string, bool) { return "${env:" + name + "}", true }

func loadWith(path string, lookup func(string) (string, bool)) (*Profile, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", path, err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, missingProfile(path, err)
	}
	if st.IsDir() {
		return nil, fmt.Errorf("read profile %s: it is a directory; name a file in it, such as %s", path, filepath.Join(path, FileName))
	}
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	defer func() { _ = f.Close() }()
	src, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	p, err := parse(path, src, lookup)
	if p != nil {
		p.Path = abs
	}
	return p, err
}

func missingProfile(path string, err error) error {
	if !os.IsNotExist(err) {
		return fmt.Errorf("read profile: %w", err)
	}
	hint := "`dlwb init` writes one for the present directory"
	if near := nearestFile(filepath.Dir(path), filepath.Base(path), isYAML); near != "" {
		hint = fmt.Sprintf("did you mean %s? %s", quote(near), hint)
	}
	return fmt.Errorf("read profile %s: %w; %s", path, os.ErrNotExist, hint)
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Parse reads a profile from its text. path is what messages call it, and its
// directory gives the experiment its name when the text does not. All faults
// of the text come at once, as Errors.
func Parse(path string, text []byte) (*Profile, error) {
	return parse(path, text, os.LookupEnv)
}

func parse(path string, text []byte, lookup func(string) (string, bool)) (*Profile, error) {
	src := newSource(path, []byte(strings.TrimPrefix(string(text[:min(len(text), MaxSize+4)]), "\uFEFF")))
	errs, fatal := src.checkText()
	if fatal {
		return nil, errs.finish(src)
	}
	root, errs := src.readTree()
	if root == nil {
		return nil, errs.finish(src)
	}
	p := defaults()
	p.Path, p.Source = path, string(text)
	d := &decoder{shape: shape{src: src, errs: errs}, p: p, lookup: lookup, given: map[string]bool{}, faulty: map[string]bool{}}
	p.marks = map[string]mark{}
	d.provider = providerOf(root)
	d.group("", root)
	p.shareOptions()
	d.together(root)
	if err := d.errs.finish(src); err != nil {
		return nil, err
	}
	if p.Name == "" {
		p.Name = nameFor(path)
	}
	return p, nil
}

// defaults is a profile in which every key has its default.
func defaults() *Profile {
	p := &Profile{}
	p.makeOptions()
	d := &decoder{shape: shape{src: newSource("", nil)}, p: p, faulty: map[string]bool{}}
	for _, f := range Fields {
		if f.Default != "" {
			f.Type.parse(d, f, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Default}, f.ref(p))
		}
	}
	p.shareOptions()
	return p
}

// group reads a mapping of keys.
func (d *decoder) group(key string, n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		return // reported as an alias
	}
	if n.Kind != yaml.MappingNode {
		d.wrongKind(key, n, "mapping")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.Value != "<<" {
			d.entry(key, k, n.Content[i+1])
		}
	}
}

// entry reads one key and its value.
func (d *decoder) entry(group string, k, v *yaml.Node) {
	key := join(group, k.Value)
	f := fieldByKey[key]
	if f == nil && !isGroup(key) || k.Value == "" {
		d.unknown(group, k)
		return
	}
	if d.given[key] {
		return // the second of two, which is reported
	}
	d.given[key] = true
	d.mark(key, k, v)
	switch {
	case v.Kind == yaml.AliasNode:
	case v.Kind == yaml.ScalarNode && v.Value == "" && v.Style == 0 || v.Tag == "!!null":
		d.failAt(k, key, key, flaw{why: "it has no value", next: "give one, or leave the key out"})
	case isGroup(key) && (f == nil || v.Kind == yaml.MappingNode):
		d.group(key, v)
	default:
		f.Type.parse(d, f, v, f.ref(d.p))
	}
}

func (d *decoder) mark(key string, k, v *yaml.Node) {
	d.p.marks[key] = mark{keyLine: k.Line, keyColumn: k.Column, line: v.Line, column: v.Column,
		width: utf8.RuneCountInString(v.Value), quoted: quoted(v)}
}

// scalar returns the text of a single value.
func (d *decoder) scalar(key string, n *yaml.Node) (string, bool) {
	text, ok := d.scalarMaybeEmpty(key, n)
	if ok && n.Tag == "!!null" {
		d.flaw(key, n, flaw{why: "it has no value", next: "give one, or leave the key out"})
		return "", false
	}
	return text, ok
}

func (d *decoder) scalarMaybeEmpty(key string, n *yaml.Node) (string, bool) {
	if n.Kind == yaml.AliasNode {
		return "", false // reported as an alias
	}
	if n.Kind != yaml.ScalarNode {
		d.wrongKind(key, n, "single value")
		return "", false
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return strings.TrimRight(n.Value, "\n"), true // the end of the block is no part of the value
	}
	return n.Value, true
}

func (d *decoder) wrongKind(key string, n *yaml.Node, want string) {
	what, next := key, "write key: value lines"
	if want == "single value" {
		next = "write one value"
	}
	if f := fieldByKey[key]; f != nil {
		next = "such as " + last(key) + ": " + f.Example
	} else if words := d.keysOf(key); len(words) > 0 {
		next = "its keys are " + strings.Join(words, ", ")
	}
	if key == "" {
		what = "the profile"
	}
	d.failAt(n, key, what, flaw{why: fmt.Sprintf("this is a %s, and a %s is needed", kindName(n), want), next: next})
}

// flaw reports what is wrong with a value.
func (d *decoder) flaw(key string, n *yaml.Node, fl flaw) {
	what := key
	if n.Kind == yaml.ScalarNode && tokenIn(n.Value) == "" {
		what += " " + quote(n.Value)
	}
	d.failAt(n, key, what, fl)
}

// keyFlaw reports what is wrong with a key that is not in the table. It
// returns false, for those who ask whether all went well.
func (d *decoder) keyFlaw(key string, k *yaml.Node, fl flaw) bool {
	d.failAt(k, join(key, k.Value), key+" "+quote(k.Value), fl)
	return false
}

// faultyIn reports whether a key, or one below it, has a flaw.
func (d *decoder) faultyIn(key string) bool {
	for k := range d.faulty {
		if k == key || strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// failAt reports a flaw at a node, or within its value where that stands in the
// file as it is.
func (d *decoder) failAt(n *yaml.Node, key, what string, fl flaw) {
	if len(d.errs) >= maxErrors {
		return
	}
	d.faulty[key] = true
	e := &Error{Path: d.src.path, Line: n.Line, Column: n.Column, Key: key, What: what, Why: fl.why, Nearest: fl.nearest, Next: fl.next,
		width: utf8.RuneCountInString(n.Value)}
	if quoted(n) {
		e.width += 2
	}
	if fl.width > 0 && d.verbatim(n) {
		e.Column += fl.offset
		if quoted(n) {
			e.Column++
		}
		e.width = fl.width
	}
	d.errs = append(d.errs, e)
}

func quoted(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
}

// verbatim reports whether the value stands at its place character by character.
func (d *decoder) verbatim(n *yaml.Node) bool {
	line := []rune(d.src.line(n.Line))
	at := n.Column - 1
	if quoted(n) {
		at++
	}
	return at >= 0 && at <= len(line) && strings.HasPrefix(string(line[at:]), n.Value)
}

// together checks what only several keys together can tell.
func (d *decoder) together(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		return
	}
	d.required(root)
	d.foreignKeys()
	var kinds []string
	for _, kind := range []string{"venv", "conda", "docker"} {
		if d.given["environment."+kind] {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 1 {
		d.failKey("environment", flaw{why: "it has " + strings.Join(kinds, " and ") + ", and Python comes from one place", next: "keep one of them"})
	}
	if env := d.p.Environment; d.given["environment.mounts"] && len(env.Mounts) > 0 && len(kinds) < 2 && env.Kind != "docker" && !d.faulty["environment.docker"] {
		d.failKey("environment.mounts", flaw{why: "only a container has mounts, and there is none: ranks of " + env.Kind + " see the node's own files", next: "add docker: IMAGE, or leave the key out"})
	}
	d.options()
	d.sweep()
	m := &d.p.Machines
	if l := d.p.Limits; d.given["limits.idle"] && l.Idle > l.Lifetime {
		d.failKey("limits.idle", flaw{why: "the cluster ends before, after its lifetime of " + writeDuration(l.Lifetime), next: "make it shorter, or the lifetime longer"})
	}
	if mapping := d.given["machines.instance.gpu"] || d.given["machines.instance.gpus"]; d.given["machines.instance"] && m.Instance == "" && !mapping &&
		(d.given["machines.instance.memory"] || d.given["machines.instance.max_price"]) {
		d.failKey("machines.instance", flaw{why: "it names no GPU", next: "add gpus: 1, or gpu: A10G"})
	}
}

// options checks what the options of the provider say together.
func (d *decoder) options() {
	if named := d.p.named(); named > 0 {
		if !d.given["machines.count"] {
			d.p.Machines.Count = named
		}
		if d.p.Machines.Count > named {
			d.failKey("machines.count", flaw{why: fmt.Sprintf("there are only %d hosts", named), next: "name more hosts, or leave the key out"})
		}
	}
	if of := providers.Named(d.p.Provider); of.Check != nil {
		for _, f := range of.Check(d.p.options(of)) {
			d.failKey(f.Key, flaw{why: f.Why, next: f.Next})
		}
	}
}

// failKey reports a flaw at a key that was given.
func (d *decoder) failKey(key string, fl flaw) {
	m := d.p.marks[key]
	d.failAt(&yaml.Node{Line: m.keyLine, Column: m.keyColumn, Value: last(key)}, key, key, fl)
}

// required reports the keys that are missing, at the group they belong to.
func (d *decoder) required(root *yaml.Node) {
	for _, f := range Fields {
		group := parent(f.Key)
		if d.given[f.Key] || d.faulty[f.Key] || d.faulty[group] {
			continue
		}
		fl := flaw{why: "it is missing"}
		switch {
		case slices.Contains(f.RequiredFor, "*"):
		case slices.Contains(f.RequiredFor, d.p.Provider) && !d.faulty["provider"]:
			fl.why += ", and " + d.p.Provider + " needs it"
		default:
			continue
		}
		fl.next = fmt.Sprintf("write %s: {%s: %s}", group, last(f.Key), f.Example)
		if d.given[group] {
			fl.next = fmt.Sprintf("add %s: %s to %s", last(f.Key), f.Example, group)
			m := d.p.marks[group]
			d.failAt(&yaml.Node{Line: m.keyLine, Column: m.keyColumn, Value: group}, f.Key, f.Key, fl)
			continue
		}
		d.failAt(&yaml.Node{Line: root.Line, Column: root.Column}, f.Key, f.Key, fl)
	}
}

// foreignKeys reports the keys that the provider does not have.
func (d *decoder) foreignKeys() {
	if d.faulty["provider"] {
		return
	}
	for _, f := range Fields {
		if !d.given[f.Key] || f.Providers == nil || slices.Contains(f.Providers, d.p.Provider) {
			continue
		}
		if g := parent(f.Key); d.given[g] && fieldByKey[g] != nil && !slices.Contains(fieldByKey[g].Providers, d.p.Provider) {
			continue // said once, of the group
		}
		d.failKey(f.Key, flaw{why: "the provider " + d.p.Provider + " does not have it",
			next: "it belongs to " + strings.Join(f.Providers, ", ")})
	}
}

var notInNames = pattern.New(`[^a-z0-9]+`)

// validName makes a valid name out of any text; "" when nothing is left of it.
func validName(text string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.Trim(name[:min(len(name), 40)], "-")
}

// nameFor is the name of an experiment whose profile gives none: that of the
// directory it lies in.
func nameFor(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		if name := validName(filepath.Base(filepath.Dir(abs))); name != "" {
			return name
		}
	}
	return "experiment"
}
