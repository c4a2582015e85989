package profiles

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	hosts "github.com/dlwb/dlwb/cloud/hosts/options"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/pattern"
)

// mostGPU is the highest number of a GPU.
const mostGPU = 63

var userForm = pattern.New(`^[A-Za-z_][\w.-]*$`)

// peerForm is an address without a user: a name, an IPv4 or a bare IPv6 address, or
// one of them with a port.
var peerForm = pattern.New(`^(\[[0-9A-Fa-f:.]+\](:\d{1,5})?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9])?(:\d{1,5})?)$`)

// hostMapKeys are the keys of a host that is a mapping.
var hostMapKeys = []string{"host", "user", "port", "gpus", "dir", "python", "host_key", "peer"}

// hostMap reads a host that is a mapping. The node that it returns stands for
// it in a list of texts; nil when something is wrong with it, which is reported.
func (d *decoder) hostMap(f *Field, n *yaml.Node) (*yaml.Node, hosts.HostOption) {
	given := map[string]*yaml.Node{}
	var o hosts.HostOption
	ok := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || given[k.Value] != nil {
			ok = false // reported with the shape
			continue
		}
		given[k.Value] = v
		ok = d.hostKeyValue(f, k, v, &o) && ok
	}
	host := given["host"]
	if host == nil {
		d.failAt(n, f.Key, f.Key, flaw{why: "this host has no host", next: "write {host: gpu1, gpus: [0, 1]}"})
		return nil, o
	}
	if !ok {
		return nil, o
	}
	one := *host
	name, own := ownssh.Cut(host.Value)
	who, port := cutHost(name)
	if v := given["port"]; v != nil && own {
		d.flaw(join(f.Key, "port"), v, flaw{why: "your own ssh takes the port from its configuration", next: "say Port in ~/.ssh/config"})
		return nil, o
	}
	for _, part := range []struct{ key, already string }{{"user", who}, {"port", port}} {
		if v := given[part.key]; v != nil && part.already != "" {
			d.flaw(join(f.Key, part.key), v, flaw{why: "host has it already: " + part.already, next: "keep one of the two"})
			return nil, o
		}
	}
	if v := given["user"]; v != nil {
		one.Value = v.Value + "@" + name
		if own {
			one.Value = ownssh.Prefix + one.Value
		}
	}
	if v := given["port"]; v != nil {
		one.Value += ":" + v.Value
	}
	return &one, o
}

// cutHost gives the user and the port of user@host:port; empty: there is none.
// IPv6 stands in brackets.
func cutHost(text string) (user, port string) {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		user, text = text[:i], text[i+1:]
	}
	text = text[strings.LastIndexByte(text, ']')+1:]
	_, port, _ = strings.Cut(text, ":")
	return user, port
}

// hostKeyValue reads one key of a host.
func (d *decoder) hostKeyValue(f *Field, k, v *yaml.Node, o *hosts.HostOption) bool {
	key := join(f.Key, k.Value)
	if k.Value == "gpus" {
		return d.gpuNumbers(key, v, o)
	}
	if !slices.Contains(hostMapKeys, k.Value) {
		fl := flaw{why: "a host has no such key", nearest: nearword.Nearest(k.Value, hostMapKeys)}
		if fl.nearest == "" {
			fl.next = "a host has " + strings.Join(hostMapKeys, ", ")
		}
		return d.keyFlaw(f.Key, k, fl)
	}
	text, ok := d.scalar(key, v)
	if !ok {
		return false
	}
	fl := oneLine(text)
	if fl.why == "" {
		fl = readHostOption(o, k.Value, text)
	}
	if fl.why != "" {
		d.flaw(key, v, fl)
	}
	return fl.why == ""
}

// readHostOption takes up one value, and says what is wrong with it.
func readHostOption(o *hosts.HostOption, key, text string) flaw {
	switch key {
	case "user":
		if !userForm.MatchString(text) {
			return flaw{why: "this is no name of a user", next: "such as ada"}
		}
	case "port":
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != text {
			return flaw{why: "a port is a number from 1 to 65535", next: "such as 22"}
		}
	case "dir":
		if fl := plainPath(text); fl.why != "" {
			return fl
		}
		if !path.IsAbs(text) || path.Clean(text) == "/" || strings.TrimSpace(text) != text {
			return flaw{why: "it is a directory of the host, from / on, and not / itself", next: "such as /data/ada"}
		}
		o.Dir = path.Clean(text)
	case "python":
		if strings.ContainsAny(text, " \t") {
			return flaw{why: "it has a space", next: "give one path or name, without arguments"}
		}
		o.Python = text
	case "peer":
		if !peerForm.MatchString(text) {
			return flaw{why: "this is no address of a host", next: "write the one by which the other hosts reach it, such as 10.0.0.5, 10.0.0.5:2222 or [fd00::5]:22"}
		}
		o.Peer = text
	case "host_key":
		if !hostKeyForm.MatchString(text) {
			return flaw{why: "this is no host key", next: "write SHA256:… as ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub shows it there"}
		}
		o.HostKey = text
	}
	return flaw{}
}

// gpuNumbers reads the numbers of GPUs.
func (d *decoder) gpuNumbers(key string, n *yaml.Node, o *hosts.HostOption) bool {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.failAt(n, key, key, flaw{why: "these are the numbers of its GPUs, as nvidia-smi -L lists them", next: "write [0, 1]"})
		return false
	}
	ok := true
	var gpus []int
	for _, item := range n.Content {
		text, scalar := d.scalar(key, item)
		number, err := strconv.Atoi(text)
		switch {
		case !scalar:
			ok = false
		case err != nil || number < 0 || number > mostGPU:
			d.flaw(key, item, flaw{why: fmt.Sprintf("a GPU has a number from 0 to %d", mostGPU), next: "as nvidia-smi -L lists them"})
			ok = false
		case slices.Contains(gpus, number):
			d.flaw(key, item, flaw{why: "it is in the list twice", next: "keep one of the two"})
			ok = false
		}
		gpus = append(gpus, number)
	}
	o.GPUs = gpus
	return ok
}

// writeHosts gives hosts as YAML: those with options as mappings.
func writeHosts(m *hosts.Machines) string {
	if len(m.Hosts) == 0 {
		return ""
	}
	items := make([]string, len(m.Hosts))
	for i, host := range m.Hosts {
		items[i] = yamlText(host)
		o, ok := m.HostOptions[host]
		if !ok {
			continue
		}
		parts := []string{"host: " + yamlText(host)}
		if len(o.GPUs) > 0 {
			numbers := make([]string, len(o.GPUs))
			for j, g := range o.GPUs {
				numbers[j] = strconv.Itoa(g)
			}
			parts = append(parts, "gpus: ["+strings.Join(numbers, ", ")+"]")
		}
		for _, kv := range [][2]string{{"dir", o.Dir}, {"python", o.Python}, {"host_key", o.HostKey}, {"peer", o.Peer}} {
			if kv[1] != "" {
				parts = append(parts, kv[0]+": "+yamlText(kv[1]))
			}
		}
		items[i] = "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// hostSchema is the JSON schema of one entry of a list of hosts.
func hostSchema(*Field) schema {
	text := schema{"type": "string", "pattern": hostsForm.String()}
	word := schema{"type": "string", "minLength": 1}
	return schema{"oneOf": []any{text, schema{
		"type": "object", "required": []string{"host"}, "additionalProperties": false,
		"properties": schema{
			"host": text, "user": schema{"type": "string", "pattern": userForm.String()},
			"port": schema{"type": "integer", "minimum": 1, "maximum": 65535},
			"gpus": schema{"type": "array", "minItems": 1, "uniqueItems": true, "items": schema{"type": "integer", "minimum": 0, "maximum": mostGPU}},
			"dir":  schema{"type": "string", "pattern": "^/."}, "python": word,
			"host_key": schema{"type": "string", "pattern": hostKeyForm.String()},
			"peer":     schema{"type": "string", "pattern": peerForm.String()},
		},
	}}}
}
