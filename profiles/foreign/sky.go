package foreign

import (
	"cmp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/pattern"
)

// isSky reports whether a file is a task of SkyPilot; one that only asks for machines
// is too.
func (f *file) isSky() bool {
	r := at(f.root, "resources")
	if f.has("run") && (r != nil || f.has("setup") || f.has("num_nodes") || f.has("file_mounts")) {
		return true
	}
	for _, key := range []string{"accelerators", "cloud", "infra", "instance_type", "use_spot", "any_of", "ordered", "candidates"} {
		if child(r, key) != nil {
			return true
		}
	}
	return false
}

// sky takes a task of SkyPilot.
func (f *file) sky() {
	f.named(f.text(at(f.root, "name")))
	f.set("provider", paid)
	f.count(at(f.root, "num_nodes"), 0)
	f.codeDir(at(f.root, "workdir"))
	f.resources(at(f.root, "resources"))
	f.variables(at(f.root, "envs"))
	f.script(at(f.root, "setup"), "environment.after")
	f.launch(at(f.root, "run"))
}

// codeDir takes a directory of code. One in the home directory is another's home on
// another machine, and a repository is cloned by hand.
func (f *file) codeDir(n *yaml.Node) {
	if n == nil || n.Kind != yaml.ScalarNode {
		return
	}
	if strings.HasPrefix(n.Value, "~") || strings.Contains(n.Value, "://") {
		f.take(n)
		f.note(n.Line, "workdir: "+n.Value, "put the profile into that directory, or name it in code.dir")
		return
	}
	f.set("code.dir", f.text(n))
}

// resources takes what a task of SkyPilot says of its machines.
func (f *file) resources(r *yaml.Node) {
	if f.elsewhere(r) {
		for _, key := range []string{"region", "zone", "instance_type", "image_id"} {
			if n := child(r, key); n != nil && !strings.HasPrefix(n.Value, "docker:") {
				f.take(n)
				f.note(n.Line, "resources."+key+": "+n.Value, "it is of a cloud where dlwb makes no machines")
			}
		}
	}
	if kind := child(r, "instance_type"); kind != nil && !f.taken[kind] {
		f.set("machines.instance", f.text(kind))
	}
	f.accelerators(child(r, "accelerators"))
	f.choice(r)
	if region := child(r, "region"); region != nil && !f.taken[region] {
		f.set("machines.region", f.text(region))
	}
	if spot := child(r, "use_spot"); spot != nil && spot.Value == "true" {
		f.take(spot)
		f.set("machines.spot", true)
	}
	if m := diskSize.FindStringSubmatch(scalar(child(r, "disk_size"))); m != nil {
		f.text(child(r, "disk_size"))
		unit := cmp.Or(strings.TrimSuffix(strings.ToUpper(m[2]), "B"), "G")
		f.set("machines.disk", sized(m[1], unit+"B"))
	}
	if image := child(r, "image_id"); image != nil && strings.HasPrefix(image.Value, "docker:") {
		f.set("environment.docker", strings.TrimPrefix(f.text(image), "docker:"))
	} else if image != nil && image.Kind == yaml.ScalarNode && !f.taken[image] {
		f.machineImage(image)
	}
	f.ports(child(r, "ports"))
	stop := child(r, "autostop")
	if stop != nil && stop.Kind == yaml.MappingNode {
		f.take(child(stop, "down"))
		stop = child(stop, "idle_minutes")
	}
	f.idle(stop)
}

// diskSize is a size, in GB where it has no unit.
var diskSize = pattern.New(`(?i)^(\d+)([gt]?b?)$`)

func scalar(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// elsewhere takes where the machines are, and reports whether that is another cloud.
func (f *file) elsewhere(r *yaml.Node) bool {
	cloud, region := child(r, "cloud"), ""
	if infra := child(r, "infra"); infra != nil && infra.Kind == yaml.ScalarNode {
		cloud = infra
	}
	if cloud == nil || cloud.Kind != yaml.ScalarNode {
		return false
	}
	name, rest, _ := strings.Cut(cloud.Value, "/")
	region, _, _ = strings.Cut(rest, "/")
	f.take(cloud)
	if strings.EqualFold(name, "aws") {
		if region != "*" {
			f.set("machines.region", region)
		}
		return false
	}
	if name != "*" && name != "" {
		f.note(cloud.Line, "resources: "+cloud.Value, "dlwb makes no machines there: look at provider and machines")
	}
	return name != "*"
}

// choice takes the GPUs of alternatives, where all of them want as many.
func (f *file) choice(r *yaml.Node) {
	for _, key := range []string{"any_of", "ordered", "candidates"} {
		all := child(r, key)
		if all == nil || all.Kind != yaml.SequenceNode {
			continue
		}
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range all.Content {
			if gpu := child(item, "accelerators"); gpu != nil && gpu.Kind == yaml.ScalarNode {
				list.Content = append(list.Content, gpu)
			}
		}
		if len(list.Content) > 0 {
			f.accelerators(list)
		}
	}
}

// accelerators takes A100:8, {A100: 8}, and several of which any will do.
func (f *file) accelerators(n *yaml.Node) {
	if n == nil || f.out["machines.instance"] != nil || f.out["machines.instance.gpu"] != nil {
		return
	}
	var models, numbers []string
	add := func(text, number string) {
		model, behind, found := strings.Cut(text, ":")
		if found {
			number = behind
		}
		models, numbers = append(models, strings.TrimSuffix(model, "+")), append(numbers, number)
	}
	switch n.Kind {
	case yaml.ScalarNode:
		add(n.Value, "")
	case yaml.SequenceNode:
		for _, item := range n.Content {
			add(item.Value, "")
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			add(n.Content[i].Value, n.Content[i+1].Value)
		}
	}
	var alike []string
	for i := range models {
		if models[i] != "" && cmp.Or(numbers[i], "1") == cmp.Or(numbers[0], "1") && !strings.HasPrefix(models[i], "tpu") {
			alike = append(alike, models[i])
		}
	}
	if len(alike) == 0 {
		return
	}
	if len(alike) == len(models) {
		f.take(n)
	}
	f.set("machines.instance.gpu", alike)
	if gpus, err := strconv.Atoi(numbers[0]); err == nil {
		f.set("machines.instance.gpus", gpus)
	}
}

// minutes are a time, with a unit or without.
var minutes = pattern.New(`^(\d+)(m|h|d)?$`)

// idle takes after how many minutes without work machines end.
func (f *file) idle(n *yaml.Node) {
	m := minutes.FindStringSubmatch(scalar(n))
	if m == nil || strings.Trim(m[1], "0") == "" {
		return // rest says so
	}
	if m[2] == "" {
		m[2] = "m"
	}
	f.take(n)
	f.set("limits.idle", m[1]+m[2])
}

// machineImage takes an image of machines. Others have names of their own for some.
func (f *file) machineImage(n *yaml.Node) {
	if strings.HasPrefix(scalar(n), "ami-") {
		f.set("machines.image", f.text(n))
	}
}
