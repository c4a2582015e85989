package foreign

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/remote/engine"
)

// compose takes the service of a Compose file that has GPUs, or its only one.
func (f *file) compose() {
	services := at(f.root, "services")
	name, service := "", (*yaml.Node)(nil)
	for i := 0; i+1 < len(services.Content); i += 2 {
		s := services.Content[i+1]
		if service == nil || hasGPU(s) && !hasGPU(service) {
			name, service = services.Content[i].Value, s
		}
	}
	f.named(name)
	f.image(service)
	f.variables(child(service, "environment"))
	f.started(child(service, "entrypoint"), child(service, "command"))
	f.volumes(child(service, "volumes"))
	f.ports(child(service, "ports"))
	// Containers of a run have these anyway.
	for _, key := range []string{"shm_size", "ipc", "runtime", "gpus", "network_mode", "deploy.resources.reservations.devices"} {
		f.take(at(service, key))
	}
	f.take(child(f.root, "version"))
}

// started takes what a service starts: its command, behind its entrypoint.
func (f *file) started(entry, command *yaml.Node) {
	text, line := "", 0
	for _, n := range []*yaml.Node{entry, command} {
		if n == nil {
			continue
		}
		words := engine.Join(f.texts(n))
		if n.Kind == yaml.ScalarNode {
			words = n.Value
		}
		f.take(n)
		text, line = text+" "+words, n.Line
	}
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		f.command(text, line)
	}
}

func hasGPU(service *yaml.Node) bool {
	if runtime := child(service, "runtime"); runtime != nil && runtime.Value == "nvidia" {
		return true
	}
	return child(service, "gpus") != nil || at(service, "deploy.resources.reservations.devices") != nil
}

// image takes an image, or the Dockerfile that one is built from.
func (f *file) image(n *yaml.Node) {
	if build := child(n, "build"); build != nil {
		context, dockerfile := f.text(child(build, "context")), f.text(child(build, "dockerfile"))
		if build.Kind == yaml.ScalarNode {
			context = f.text(build)
		}
		if strings.Contains(context, "://") || strings.HasPrefix(context, "git@") {
			f.note(build.Line, "build: "+context, "an image is built from the code that is here: clone it, or name the image")
			return
		}
		if dockerfile == "" {
			dockerfile = "Dockerfile"
		}
		f.set("environment.docker", path.Join(context, dockerfile))
		f.take(child(n, "image")) // what it is called once it is built
		return
	}
	f.set("environment.docker", f.text(child(n, "image")))
}

// volumes takes directories of the machine. The project's own is there anyway.
func (f *file) volumes(n *yaml.Node) {
	var mounts []string
	if n == nil {
		return
	}
	for _, item := range n.Content {
		from, _, _ := strings.Cut(item.Value, ":")
		switch {
		case from == "." || from == "./" || from == "${PWD}":
			f.take(item)
		case strings.HasPrefix(from, "/"):
			mounts = append(mounts, f.text(item))
		}
	}
	if _, is := f.out["environment.docker"]; !is && len(mounts) > 0 {
		f.note(n.Line, "volumes: "+strings.Join(mounts, " "), "only a container has mounts, and the profile has none")
		return
	}
	f.set("environment.mounts", mounts)
}

var portForm = pattern.New(`^(?:[\d.]+:)?(?:\d+:)?(\d+)$`)

// ports takes what is to be reached from here.
func (f *file) ports(n *yaml.Node) {
	var forward []string
	if n == nil {
		return
	}
	items := n.Content
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	}
	for _, item := range items {
		if m := portForm.FindStringSubmatch(item.Value); m != nil {
			forward = append(forward, m[1])
			f.take(item)
		}
	}
	f.set("forward", forward)
}

// devcontainer takes a devcontainer.json.
func (f *file) devcontainer() {
	f.named(f.text(at(f.root, "name")))
	f.image(f.root)
	if file := f.text(at(f.root, "dockerFile")); file != "" {
		f.set("environment.docker", file)
	}
	if file, ok := f.out["environment.docker"].(string); ok && f.out["environment.docker"] != nil && child(f.root, "image") == nil {
		f.set("environment.docker", path.Join(path.Base(path.Dir(f.name)), file))
	}
	f.variables(at(f.root, "containerEnv"))
	f.ports(at(f.root, "forwardPorts"))
	f.script(at(f.root, "postCreateCommand"), "environment.after")
	f.features(at(f.root, "features"))
	if args := at(f.root, "runArgs"); args != nil {
		for i, item := range args.Content {
			if strings.HasPrefix(item.Value, "--gpus") || strings.HasPrefix(item.Value, "--ipc") || strings.HasPrefix(item.Value, "--shm-size") ||
				i > 0 && item.Value != "" && item.Value[0] != '-' && f.taken[args.Content[i-1]] {
				f.take(item)
			}
		}
	}
}

// features are installed into an image by the program of dev containers, also those
// that have no settings.
func (f *file) features(n *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	f.take(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		f.note(n.Content[i].Line, "features."+n.Content[i].Value, "an image has it only where its Dockerfile installs it")
	}
}

// ssmLine finds the command line of simple_sagemaker in a text, with the line that
// it begins at.
func ssmLine(text string) (line int, command string) {
	for i, l := range strings.Split(text, "\n") {
		if m := ssmStart.FindStringSubmatch(l); m != nil {
			rest := strings.Join(strings.Split(text, "\n")[i:], "\n")
			rest = strings.ReplaceAll(rest, "\\\n", " ")
			command, _, _ = strings.Cut(rest, "\n")
			return i + 1, strings.TrimSpace(command)
		}
	}
	return 0, ""
}

var ssmStart = pattern.New(`^\s*(?:\$ )?ssm\s+(?:run|shell)\b`)

// ssm takes a command line of simple_sagemaker.
func (f *file) ssm(line int, command string) {
	command = strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(command, "$ ")), "&")
	command, _, _ = strings.Cut(command, " > ")
	plain := ofShell.ReplaceAllString(command, "") // the directory of the script, as a rule
	if plain != command {
		f.note(line, command, "the variables of the shell in it are left out: check the paths")
	}
	words, err := engine.Split(plain)
	if err != nil {
		f.note(line, command, err.Error())
		return
	}
	f.set("provider", paid)
	f.set("machines.spot", true) // its default
	var own []string
	shell := words[1] == "shell"
	entry := ""
	for i := 2; i < len(words); i++ {
		word := words[i]
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		i++ // most have a value
		switch word {
		case "-p", "--project_name":
			f.named(value)
		case "-t", "--task_name":
			f.note(line, word+" "+value, "a run has an id of its own")
		case "-e", "--entry_point", "--cmd_line":
			entry = value
		case "--it", "--instance_type":
			f.set("machines.instance", strings.TrimPrefix(value, "ml."))
		case "--ic", "--instance_count":
			f.count(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, 0)
		case "-s", "--source_dir":
			f.set("code.dir", value)
		case "-i", "--input_path":
			f.channel("data", value)
			i += f.spread(line, words, i)
		case "--iis", "--input_s3":
			if i+1 < len(words) {
				f.channel(value, words[i+1])
				i++
			}
			i += f.spread(line, words, i)
		case "-v", "--volume_size":
			f.set("machines.disk", sized(value, "GB"))
		case "-o", "--output_path":
			f.set("results.to", "results/{run}")
			f.note(line, word+" "+value, "results come to results/RUN beside the profile")
		case "--no_spot":
			i--
			delete(f.out, "machines.spot")
		case "--":
			own = words[i:]
			i = len(words)
		default:
			if strings.HasPrefix(value, "-") {
				value, i = "", i-1
			}
			f.note(line, strings.TrimSpace(word+" "+value), "a profile has no key for it")
		}
	}
	if shell {
		f.command(entry, line)
	} else if entry != "" {
		f.set("run.command", engine.Join(f.withoutSecrets(append([]string{entry}, own...), line)))
	}
}

// ofShell are variables of a shell, with the slash behind them.
var ofShell = pattern.New(`\$(?:\w+|\{\w+\}|@)/?`)

// channel adds an input.
func (f *file) channel(name, from string) {
	data, _ := f.out["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	if from != "" {
		data[name], f.out["data"] = from, data
	}
}

// spread names how an input was to be spread over the nodes, and gives how many words
// that is: each node has all of it.
func (f *file) spread(line int, words []string, at int) int {
	if at+1 < len(words) && (words[at+1] == "ShardedByS3Key" || words[at+1] == "FullyReplicated") {
		f.note(line, words[at+1], "every node has the whole input")
		return 1
	}
	return 0
}
