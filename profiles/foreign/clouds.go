package foreign

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
)

// paid is the provider whose machines these files ask for.
var paid = providers.Priced()[0]

// ansible takes the config.yaml of the article.
func (f *file) ansible() {
	f.set("provider", paid)
	f.named(f.text(at(f.root, "instance_tag")))
	f.set("machines.instance", f.text(at(f.root, "instance_type")))
	f.count(at(f.root, "instance_count"), 0)
	f.set("machines.region", f.text(at(f.root, "region")))
	f.set("machines.image", f.text(at(f.root, "ami_id")))
	f.set("environment.python", f.text(at(f.root, "python.version")))
}

// count sets the number of nodes: that of a value, and some more.
func (f *file) count(n *yaml.Node, more int) {
	if number, err := strconv.Atoi(f.text(n)); err == nil {
		f.set("machines.count", number+more)
	} else if more > 0 {
		f.set("machines.count", more)
	}
}

// ray takes a cluster file of Ray.
func (f *file) ray() {
	f.named(f.text(at(f.root, "cluster_name")))
	kind := at(f.root, "provider.type")
	if kind == nil {
		kind = &yaml.Node{Kind: yaml.ScalarNode}
	}
	switch {
	case kind.Value == "aws":
		f.take(kind)
		f.set("provider", paid)
		f.set("machines.region", f.text(at(f.root, "provider.region")))
		f.rayNodes()
	case f.has("provider.head_ip"):
		f.take(kind)
		f.set("provider", providers.Having("machines.hosts")[0])
		hosts := append(f.texts(at(f.root, "provider.head_ip")), f.texts(at(f.root, "provider.worker_ips"))...)
		if user := f.text(at(f.root, "auth.ssh_user")); user != "" {
			for i := range hosts {
				hosts[i] = user + "@" + hosts[i]
			}
		}
		f.set("machines.hosts", hosts)
	case kind.Value != "":
		f.take(kind)
		f.note(kind.Line, "provider.type: "+kind.Value, "dlwb makes no machines there: the profile runs on this one; set provider, and machines")
	}
	f.set("environment.docker", f.text(at(f.root, "docker.image")))
	f.idle(at(f.root, "idle_timeout_minutes"))
	f.set("environment.before", append(f.shellLines(at(f.root, "initialization_commands")), f.shellLines(at(f.root, "setup_commands"))...))
}

// rayNodes takes the types of nodes: a profile has one, and that of a head. It is the
// workers', of whom there are more.
func (f *file) rayNodes() {
	types, head := at(f.root, "available_node_types"), f.text(at(f.root, "head_node_type"))
	if types == nil {
		f.rayBefore2()
		return
	}
	chosen, count := child(types, head), 0
	for i := 0; i+1 < len(types.Content); i += 2 {
		if types.Content[i].Value == head {
			continue
		}
		if number, err := strconv.Atoi(f.text(child(types.Content[i+1], "min_workers"))); err == nil && number > 0 {
			chosen, count = types.Content[i+1], count+number
		}
	}
	more := 1
	if count > 0 {
		more = f.rayHead(child(child(types, head), "node_config"), child(chosen, "node_config"))
	}
	if least := at(f.root, "min_workers"); count == 0 && least != nil { // of all types together
		f.count(least, 1)
	} else {
		f.set("machines.count", count+more)
	}
	f.rayMachine(child(chosen, "node_config"))
}

// rayLauncher is how a job is handed to a Ray: the engine of that command is Ray's.
var rayLauncher = strings.Fields("ray job submit")

// rayHead takes a head of another type than the workers', which trains nothing. It
// returns how many nodes the head is among those that do.
func (f *file) rayHead(head, workers *yaml.Node) int {
	instance := child(head, "InstanceType")
	if instance == nil || child(workers, "InstanceType") == nil || instance.Value == child(workers, "InstanceType").Value {
		return 1
	}
	f.set("machines.head_instance", f.text(instance))
	f.set("run.engine", engine.Launcher(rayLauncher))
	return 0
}

// rayBefore2 takes the nodes as files for Ray before 2.0 have them.
func (f *file) rayBefore2() {
	head, workers := at(f.root, "head_node"), at(f.root, "worker_nodes")
	if head == nil && workers == nil {
		return
	}
	least, more := at(f.root, "min_workers"), 1
	if least != nil && least.Value != "0" {
		more = f.rayHead(head, workers)
	}
	f.count(least, more)
	if child(workers, "InstanceType") == nil {
		workers = head
	}
	f.rayMachine(workers)
}

// rayMachine takes what an instance is like.
func (f *file) rayMachine(config *yaml.Node) {
	f.set("machines.instance", f.text(child(config, "InstanceType")))
	f.machineImage(child(config, "ImageId"))
	if f.text(at(config, "InstanceMarketOptions.MarketType")) == "spot" {
		f.set("machines.spot", true)
	}
	if disks := child(config, "BlockDeviceMappings"); disks != nil && len(disks.Content) > 0 {
		f.take(child(disks.Content[0], "DeviceName"))
		if size := f.text(at(disks.Content[0], "Ebs.VolumeSize")); size != "" {
			f.set("machines.disk", sized(size, "GiB"))
		}
	}
}

// variables takes plain variables. One that refers to another is left: it may be a
// secret, and where it comes from is for a person to say.
func (f *file) variables(n *yaml.Node) {
	if n == nil {
		return
	}
	add := func(name, value string, node *yaml.Node) {
		if profiles.LooksSecret(name, value) && !strings.Contains(value, "$") {
			f.take(node)
			f.secret = append(f.secret, name)
			f.note(node.Line, name, "its value looks like a secret: write "+name+`: "${env:`+name+`}" in run.env, and export `+name)
			return
		}
		if name != "" && value != "" && !strings.Contains(value, "$") && !strings.ContainsAny(value, "\n") {
			f.setVariable(name, value)
			f.take(node)
		}
	}
	for i, item := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			name, value, _ := strings.Cut(item.Value, "=")
			add(name, value, item)
		case i%2 == 1:
			add(n.Content[i-1].Value, item.Value, item)
		}
	}
}

// blocks are words of a shell that go over lines.
var blocks = pattern.New(`(?m)^\s*(?:if|for|while|until|case|function)\b|<<|\(\)\s*\{|^\s*[{(]`)

// lines are the commands of a script, one a line; none where it has blocks.
func lines(script string) (all []string) {
	if blocks.MatchString(script) || openQuote(script) {
		return nil
	}
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// script takes the lines of a script into a list of the profile.
func (f *file) script(n *yaml.Node, key string) {
	if n == nil {
		return
	}
	all := lines(n.Value)
	if n.Kind != yaml.ScalarNode || len(all) == 0 {
		return
	}
	f.take(n)
	f.set(key, f.openLines(all, n.Line))
}

// preparing is a line of a run script that a profile needs no place for: where the
// head is, the engine knows.
var preparing = pattern.New(`^(?:echo\b|set -|(?:export )?(?:MASTER_ADDR|MASTER_PORT|HEAD_IP|head_ip|master_addr|NUM_NODES|num_nodes)=)`)

// launch takes the one command of a run script.
func (f *file) launch(n *yaml.Node) {
	if n == nil {
		return
	}
	var commands, exports []string
	for _, line := range lines(n.Value) {
		switch {
		case preparing.MatchString(line):
		case strings.HasPrefix(line, "export ") && !strings.Contains(line, "$"):
			exports = append(exports, line)
		default:
			commands = append(commands, strings.TrimSuffix(line, " || exit 1"))
		}
	}
	if len(commands) != 1 {
		return // rest says so
	}
	f.take(n)
	for _, line := range exports {
		if !f.exports(line, n.Line) {
			f.note(n.Line, line, "it needs a shell: write it to a script, and run that")
		}
	}
	f.command(commands[0], n.Line)
}

// launcher is what starts ranks, up to the script: the engine does that.
var launcher = pattern.New(`^(?:python3? -m torch\.distributed\.(?:run|launch)|torchrun)\s+((?:-{1,2}[a-z_-]+(?:[= ]\S+)?\s+)*?)([^-\s]\S*\.py\b.*|-m\s.*)$`)

// command sets the training command, without the launcher in front of it.
func (f *file) command(text string, line int) {
	text = f.behindVariables(text, line)
	if m := launcher.FindStringSubmatch(text); m != nil {
		f.set("run.engine", engine.Resolve(engine.Auto, true))
		text = m[2]
		if flags := strings.TrimSpace(m[1]); flags != "" {
			f.note(line, flags, "the engine gives torchrun its nodes, ranks and port")
		}
	}
	text, plain := f.openCommand(text, line)
	if !plain {
		f.note(line, text, "it needs a shell: write it to a script, and run that")
		return
	}
	f.set("run.command", text)
}

// sized is a size as a profile has it: other tools leave the unit out.
func sized(number, unit string) string { return number + unit }

// shellLines are commands of a list, each of which may be a small script.
func (f *file) shellLines(n *yaml.Node) (all []string) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return f.texts(n)
	}
	for _, item := range n.Content {
		switch {
		case item.Kind != yaml.ScalarNode:
		case !strings.Contains(strings.TrimSpace(item.Value), "\n"):
			all = append(all, f.texts(item)...)
		case len(lines(item.Value)) > 0:
			f.take(item)
			all = append(all, lines(item.Value)...)
		}
	}
	return all
}

// openQuote reports whether a quoted text of a script goes over its lines.
func openQuote(script string) bool {
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		quote, before := rune(0), ' '
		for _, r := range line {
			switch {
			case quote == 0 && r == '#' && (before == ' ' || before == '\t'), quote == 0 && before == '\\':
				if r == '#' {
					quote = '#'
				}
			case quote == 0 && (r == '"' || r == '\''):
				quote = r
			case r == quote && (quote == '\'' || before != '\\'):
				quote = 0
			}
			before = r
		}
		if quote == '"' || quote == '\'' {
			return true
		}
	}
	return false
}
