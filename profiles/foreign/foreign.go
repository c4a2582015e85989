// Package foreign makes a profile of what people have written for other tools, and
// says line by line what of it a profile can't hold. It is pure: bytes in, text out.
package foreign

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/profiles"
)

// Left is a line that was not carried over.
type Left struct {
	Line int    `json:"line"`
	What string `json:"what"`
	Why  string `json:"why"`
}

// Imported is what a file came to.
type Imported struct {
	From    string // what kind of file it was
	Profile []byte // as YAML, with comments
	Left    []Left // in the order of their lines; line 0 is of no line
	// Secret are variables whose values look like secrets, and are in no profile.
	Secret []string
}

// ErrUnknown says that a file is of none of the kinds that are known.
var ErrUnknown = errors.New("it is none of: the config.yaml of ansible-ml, a Ray cluster, a SkyPilot task, an ssm command line, a Compose file, a devcontainer.json")

// kind is one kind of file: the keys that tell it, and what is taken of it.
type kind struct {
	name string
	is   func(*file) bool
	take func(*file)
}

var kinds = []kind{
	{"a Ray cluster", func(f *file) bool {
		return f.has("cluster_name") && (f.has("provider.type") || f.has("available_node_types") || f.has("head_start_ray_commands"))
	}, (*file).ray},
	{"the config.yaml of ansible-ml", func(f *file) bool { return f.has("instance_type") && f.has("instance_count") }, (*file).ansible},
	{"a Compose file", func(f *file) bool { return f.has("services") }, (*file).compose},
	{"a devcontainer.json", func(f *file) bool {
		return strings.Contains(f.name, "devcontainer") && (f.has("image") || f.has("build") || f.has("dockerFile"))
	}, (*file).devcontainer},
	{"a SkyPilot task", (*file).isSky, (*file).sky},
}

// file is one that is being imported.
type file struct {
	name  string
	root  *yaml.Node
	taken map[*yaml.Node]bool
	out   map[string]any // the profile, by the names of its keys
	left  []Left
	// secret are variables whose values look like secrets.
	secret []string
	lines  map[string]int // where the text of a value stands
}

// mostBytes bounds a file.
const mostBytes = 1 << 20

// Import makes a profile of a file. name is the path of the file, script the
// training script to name where the file has none.
func Import(name string, text []byte, script string) (Imported, error) {
	if len(text) > mostBytes {
		return Imported{}, fmt.Errorf("%s has more than %d bytes", name, mostBytes)
	}
	f := &file{name: filepath.ToSlash(name), taken: map[*yaml.Node]bool{}, out: map[string]any{}, lines: map[string]int{}}
	if at, line := ssmLine(string(text)); line != "" {
		f.ssm(at, line)
		return f.finish("an ssm command line", script)
	}
	all, err := documents(uncommented(f.name, text))
	if err != nil {
		return Imported{}, fmt.Errorf("%s: %w", name, err)
	}
	for i, root := range all {
		f.root = root
		k := slices.IndexFunc(kinds, func(k kind) bool { return k.is(f) })
		if k < 0 {
			continue
		}
		kinds[k].take(f)
		f.rest("", root)
		f.others(all, i)
		return f.finish(kinds[k].name, script)
	}
	if len(all) == 1 && f.has("dockerComposeFile") {
		return Imported{}, fmt.Errorf("%s: its service is in a Compose file: import that, %s", name, strings.Join(f.texts(at(f.root, "dockerComposeFile")), " or "))
	}
	return Imported{}, fmt.Errorf("%s: %w", name, ErrUnknown)
}

// finish writes the profile, by the way of the reader of profiles: what it refuses
// is never written.
func (f *file) finish(from, script string) (Imported, error) {
	f.clean()
	if f.out["run.command"] == nil {
		f.out["run.command"] = script
		f.note(0, "the training command", "the file has none that dlwb can start: check run.command")
	}
	f.here()
	p, err := f.profile(script)
	if err != nil {
		return Imported{}, err
	}
	slices.SortStableFunc(f.left, func(a, b Left) int { return a.Line - b.Line })
	return Imported{From: from, Profile: profiles.Write(p), Left: f.left, Secret: f.secret}, nil
}

// here takes the nodes of this machine where the file asks for machines and names
// none: a profile that nobody can start is of no use.
func (f *file) here() {
	for key := range f.out {
		if strings.HasPrefix(key, "machines.instance") {
			return
		}
	}
	if f.out["provider"] == paid {
		for _, key := range []string{"provider", "machines.spot", "machines.region", "machines.image", "machines.disk"} {
			delete(f.out, key)
		}
		f.note(0, "the machines", "the file names no type of machine, so the profile runs on this one: set provider: "+paid+" and machines.instance, such as g5.xlarge")
	}
}

// nest makes mappings of keys with dots.
func nest(flat map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range flat {
		at, words := out, strings.Split(key, ".")
		for _, word := range words[:len(words)-1] {
			if at[word] == nil {
				at[word] = map[string]any{}
			}
			at = at[word].(map[string]any)
		}
		at[words[len(words)-1]] = value
	}
	return out
}

func (f *file) note(line int, what, why string) {
	f.left = append(f.left, Left{line, masked(what), why})
}

// set gives a key of the profile a value, unless there is none to give.
func (f *file) set(key string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	case int:
		if v == 0 {
			return
		}
	}
	f.out[key] = value
}

// at finds a value below a mapping by keys with dots; nil where there is none.
func at(n *yaml.Node, key string) *yaml.Node {
	for word := range strings.SplitSeq(key, ".") {
		if n = child(n, word); n == nil {
			return nil
		}
	}
	return n
}

func child(n *yaml.Node, word string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == word {
			return n.Content[i+1]
		}
	}
	return nil
}

func (f *file) has(key string) bool { return at(f.root, key) != nil }

// text takes a scalar; empty where it is none.
func (f *file) text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	f.taken[n] = true
	text := strings.TrimSpace(n.Value)
	f.lines[text] = n.Line
	return text
}

// texts takes a list of scalars, or one.
func (f *file) texts(n *yaml.Node) (all []string) {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		if text := f.text(n); text != "" {
			return []string{text}
		}
		return nil
	}
	for _, item := range n.Content {
		if text := f.text(item); n.Kind == yaml.SequenceNode && text != "" {
			all = append(all, text)
		}
	}
	return all
}

// take marks a value and all in it as carried over.
func (f *file) take(n *yaml.Node) {
	if n == nil {
		return
	}
	f.taken[n] = true
	for _, c := range n.Content {
		f.take(c)
	}
}

// rest says of everything that nobody took that it was not carried over.
func (f *file) rest(key string, n *yaml.Node) {
	switch {
	case f.taken[n] || n.Tag == "!!null" || n.Kind != yaml.ScalarNode && len(n.Content) == 0:
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			f.rest(strings.TrimPrefix(key+"."+n.Content[i].Value, "."), n.Content[i+1])
		}
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			if i > 0 && item.Kind == yaml.ScalarNode && !f.taken[item] && strings.HasPrefix(n.Content[i-1].Value, "-") && isSecret(n.Content[i-1].Value, item.Value) {
				f.note(item.Line, key+": "+hidden, reasonOf(key))
				continue
			}
			f.rest(key, item)
		}
	default:
		why := reasonOf(key)
		if strings.Contains(strings.TrimSpace(n.Value), "\n") {
			why = "it is a script: write it to a file, such as " + key[strings.LastIndexByte(key, '.')+1:] + ".sh, and name what it runs in the profile"
		}
		f.left = append(f.left, Left{n.Line, key + ": " + maskedOf(key, strings.TrimSpace(n.Value)), why})
	}
}

// reasonOf says why a key was not carried over.
func reasonOf(key string) string {
	if why := reasons[key[strings.LastIndexByte(key, '.')+1:]]; why != "" {
		return why
	}
	return "a profile has no key for it"
}

// reasons say of keys, by their last words, why they are not needed or what to do.
var reasons = map[string]string{
	"aws_ssh_key": "dlwb makes a key for each cluster", "KeyName": "dlwb makes a key for each cluster", "ssh_private_key": "dlwb makes a key for each cluster",
	"vpc_id": "the default VPC is used", "SubnetId": "a subnet of the default VPC is used", "SecurityGroupIds": "dlwb makes a security group for each cluster",
	"zone": "the zones of the region are tried in order", "availability_zone": "the zones of the region are tried in order",
	"virtualenv": "dlwb has its own place for it", "max_workers": "a cluster has as many nodes from its first moment as it needs",
	"head_start_ray_commands": "the engine starts it", "worker_start_ray_commands": "the engine starts it",
	"container_name": "dlwb names containers", "autostop": "see limits.idle", "run": "it is no one command that dlwb can start: see run.command",
	"env_file": "its variables are not read: name those that are needed in run.env",
	"mode":     "see data, which brings files to every node", "source": "see data, which brings files to every node",
}

var notName = pattern.New(`[^a-z0-9]+`)

// named sets the name of the experiment, in the form that names have.
func (f *file) named(text string) {
	text = strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-")
	f.set("name", strings.TrimRight(text[:min(len(text), 40)], "-"))
}
