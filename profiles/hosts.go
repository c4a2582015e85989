package profiles

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	hosts "github.com/dlwb/dlwb/cloud/hosts/options"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/pattern"
)

// mostHosts bounds what one entry may stand for.
const mostHosts = 1000

var (
	// rangeForm are numbers in the name of a host: [1-4], [01-16], [1,3,5-7].
	rangeForm = pattern.New(`\[([0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*)\]`)
	// hostsForm is an entry: a host, or a range of them.
	hostsForm = hostPattern(`([A-Za-z0-9_]|` + rangeForm.String() + `)`)
	// hostForm is one host.
	hostForm = hostPattern(`[A-Za-z0-9_]`)
)

// hostPattern matches user@host:port, ssh: in front of it or not, with what the host begins and ends with.
func hostPattern(edge string) *regexp.Regexp {
	name := edge + `(([.-]|` + edge + `)*` + edge + `)?`
	return regexp.MustCompile(`^(ssh:)?([A-Za-z_][\w.-]*@)?(` + name + `|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?\])(:[0-9]{1,5})?$`)
}

// hostsType is a list of hosts, in which one entry may stand for many.
var hostsType = hostList()

func hostList() *Type {
	t := listType("list of hosts", "each host, user@host or user@host:port, or ssh:host for one by your own ssh, or a mapping with `host` and what the host has of its own: "+
		"`user`, `port`, `gpus` (numbers), `dir`, `python`, `host_key`, `peer` (where the other hosts reach it); gpu[1-4] stands for four", false, hostSchema, readHost)
	list := t.parse
	t.parse = func(d *decoder, f *Field, n *yaml.Node, into any) {
		m := into.(*hosts.Machines)
		if n.Kind != yaml.SequenceNode {
			list(d, f, n, &m.Hosts)
			return
		}
		if len(n.Content) == 0 {
			list(d, f, n, &m.Hosts)
			return
		}
		spread := *n
		spread.Content = nil
		options := map[string]hosts.HostOption{}
		for _, item := range n.Content {
			d.spreadHost(f, item, &spread, options)
		}
		if len(spread.Content) > 0 {
			list(d, f, &spread, &m.Hosts)
		}
		if len(options) > 0 {
			m.HostOptions = options
		}
	}
	t.format = func(_ *Field, from any) string { return writeHosts(from.(*hosts.Machines)) }
	return t
}

// spreadHost puts the hosts that an item stands for into a list of texts, and
// what they have of their own into options.
func (d *decoder) spreadHost(f *Field, item *yaml.Node, into *yaml.Node, options map[string]hosts.HostOption) {
	text, option := item, hosts.HostOption{}
	isMap := item.Kind == yaml.MappingNode
	if isMap {
		if text, option = d.hostMap(f, item); text == nil {
			return
		}
	}
	names, fl := spreadHosts(text.Value)
	if fl.why != "" {
		d.flaw(f.Key, text, fl)
		return
	}
	for _, name := range names {
		one := *text
		if text.Kind == yaml.ScalarNode {
			one.Value = name
		}
		into.Content = append(into.Content, &one)
		if isMap && !reflect.DeepEqual(option, hosts.HostOption{}) {
			options[name] = option
		}
	}
}

// spreadHosts are the hosts that an entry stands for, in order: the last range
// of several runs fastest. One without a range stands for itself.
func spreadHosts(text string) ([]string, flaw) {
	if name, own := ownssh.Cut(text); own {
		all, fl := spreadHosts(name)
		for i := range all {
			all[i] = ownssh.Prefix + all[i]
		}
		return all, fl
	}
	at := rangeForm.FindStringSubmatchIndex(text)
	if at == nil || !hostsForm.MatchString(text) {
		return []string{text}, flaw{}
	}
	rest, fl := spreadHosts("x" + text[at[1]:]) // an x, so that it is an entry by itself
	if fl.why != "" {
		return nil, fl
	}
	var all []string
	for part := range strings.SplitSeq(text[at[2]:at[3]], ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, _ := strconv.Atoi(from)
		last, _ := strconv.Atoi(to)
		if last < first {
			return nil, flaw{why: "the range [" + part + "] runs backwards", next: "write [" + to + "-" + from + "]"}
		}
		if (last-first+1)*len(rest)+len(all) > mostHosts {
			return nil, flaw{why: fmt.Sprintf("it stands for more than %d hosts", mostHosts), next: "make the range smaller"}
		}
		for i := first; i <= last; i++ {
			number := fmt.Sprintf("%0*d", len(from), i)
			for _, r := range rest {
				all = append(all, text[:at[0]]+number+r[1:])
			}
		}
	}
	return all, flaw{}
}

func readHost(_ *Field, text string) (string, flaw) {
	m := hostForm.FindStringSubmatch(text)
	if m == nil {
		return "", flaw{why: "this is no address", next: "write host, user@host or user@host:port; IPv6 in brackets; or ssh:host, by your own ssh"}
	}
	if name, own := ownssh.Cut(text); own && !ownssh.Plain(name) {
		return "", flaw{why: "your own ssh takes a host from its configuration, and no port or address in brackets here", next: "say HostName and Port in ~/.ssh/config, and write ssh:host or ssh:user@host"}
	}
	if port, _ := strconv.Atoi(strings.TrimPrefix(m[len(m)-1], ":")); m[len(m)-1] != "" && (port < 1 || port > 65535) {
		return "", flaw{why: "a port is a number from 1 to 65535", next: "such as " + m[3] + ":22"}
	}
	return text, flaw{}
}

// hostKeyForm is a public key as in known_hosts, or its fingerprint as ssh shows
// it.
var hostKeyForm = pattern.New(`^((ssh|ecdsa)-[a-z0-9-]+ AAAA[A-Za-z0-9+/]+={0,2}( .*)?|SHA256:[A-Za-z0-9+/]{43})$`)

// hostKeysType is a mapping of hosts to their keys.
var hostKeysType = &Type{
	Name: "host keys", Doc: "a mapping of hosts, as in `machines.hosts`, to public keys or fingerprints (`SHA256:…`)",
	Schema: func(*Field) schema {
		return schema{"type": "object", "propertyNames": schema{"pattern": hostForm.String()},
			"additionalProperties": schema{"type": "string", "pattern": hostKeyForm.String()}}
	},
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		all := map[string]string{}
		ok := d.entries(f.Key, n, func(k, v *yaml.Node) bool {
			text, ok := d.scalar(join(f.Key, k.Value), v)
			if !ok {
				return false
			}
			all[k.Value] = text
			if !hostForm.MatchString(k.Value) {
				return d.keyFlaw(f.Key, k, flaw{why: "this is no address", next: "write the host as it stands in machines.hosts"})
			}
			if !hostKeyForm.MatchString(text) {
				d.flaw(join(f.Key, k.Value), v, flaw{why: "this is no host key", next: "write SHA256:… as ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub shows it there"})
				return false
			}
			return true
		})
		if ok {
			*into.(*map[string]string) = all
		}
	},
	format: func(_ *Field, from any) string {
		var parts []string
		all := *from.(*map[string]string)
		for _, host := range slices.Sorted(maps.Keys(all)) {
			parts = append(parts, yamlText(host)+": "+yamlText(all[host]))
		}
		return writeMap(parts)
	},
}
