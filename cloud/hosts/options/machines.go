package options

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/internal/ownssh"
)

// Machines are the options that only machines of one's own have.
type Machines struct {
	// Hosts are the machines, in order, as host, user@host or user@host:port, or
	// ssh:host for one by the user's own ssh.
	// The first ones are used, as many as there are nodes.
	Hosts []string
	// HostOptions is what some of them have of their own, by host as in Hosts.
	HostOptions map[string]HostOption
	// HostKeys are the host keys, or their fingerprints, that the user vouches
	// for, by host as in Hosts.
	HostKeys map[string]string
	// Modules are loaded on each of them, with commas between them.
	Modules string
}

// Loads are the names of the modules.
func (m Machines) Loads() (names []string) {
	for name := range strings.SplitSeq(m.Modules, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// HostOption is what one host has of its own.
type HostOption struct {
	GPUs    []int  // those that may be used, as nvidia-smi numbers them; nil: all
	Dir     string // an absolute directory there that takes the code and the environment; empty: the home directory
	Python  string // the interpreter to start from; empty: as for the others
	Peer    string // where the other hosts reach it: an address, or one with a port; empty: that is found out
	HostKey string `json:"-"` // a public key or a fingerprint; empty: none is given
}

// KeyOf is the host key that the user vouches for: a public key ("ssh-ed25519
// AAAA…") or its fingerprint ("SHA256:…"); empty where there is none.
func (m Machines) KeyOf(host string) string {
	if key := m.HostOptions[host].HostKey; key != "" {
		return key
	}
	return m.HostKeys[host]
}

var table = []about.Option{
	{Key: "machines.hosts", Kind: about.HostList, Also: []string{"addresses"},
		Doc: "The machines, each as `host`, `user@host` or `user@host:port`, with names of `~/.ssh/config` too, or as `ssh:host` for your own ssh and the connection that it keeps open (a second factor), or as a mapping such as `{host: gpu1, gpus: [0, 1], dir: /data/ada, peer: 10.0.0.5}`; `\"gpu[1-4]\"` stands for four; the first is the head.", Example: "[ada@gpu1, ada@gpu2]",
		Place: about.In(func(m *Machines) *Machines { return m })},
	{Key: "machines.host_keys", Kind: about.HostKeys, Also: []string{"host_key", "fingerprints"},
		Doc: "Host keys that the profile vouches for where `known_hosts` has none; one that nothing else vouches for is told once, and later no other is taken for that host. One that `known_hosts` contradicts is refused.", Example: "{gpu1: 'SHA256:jEAq2UQnQYCkLxVWeVfhdG0Ga1RpYQ3Gxu3eLDZqCkg'}",
		Place: about.In(func(m *Machines) *map[string]string { return &m.HostKeys })},
	{Key: "machines.modules", Asked: true, Also: []string{"module"},
		Doc: "Modules of Environment Modules or Lmod that are loaded before the environment is set up and before the ranks start, with commas between them.", Example: "python/3.11,cuda/12.4",
		Place: about.In(func(m *Machines) *string { return &m.Modules })},
}

// named is how many machines the profile names.
func named(own any) int { return len(about.Own[Machines](own).Hosts) }

// check tells what only several keys together show to be wrong.
func check(own any) (faults []about.Fault) {
	m := about.Own[Machines](own)
	for _, host := range slices.Sorted(maps.Keys(m.HostOptions)) {
		if m.HostOptions[host].HostKey != "" && m.HostKeys[host] != "" {
			faults = append(faults, about.Fault{Key: "machines.host_keys", Why: host + " has its host_key in machines.hosts", Next: "keep one of the two"})
		}
	}
	for _, host := range m.Hosts {
		if _, own := ownssh.Cut(host); own && m.KeyOf(host) != "" {
			faults = append(faults, about.Fault{Key: "machines.hosts", Why: "the host key of " + host + " is what your own ssh checks", Next: "leave host_key out: its known_hosts counts"})
		}
	}
	return faults
}

// mostNamed is how many hosts are named one by one where a person reads: a flood
// of them must not bury what else a profile would do.
const mostNamed = 20

// effects are the machines that are connected to, and what is started there for
// one of them alone. Those whose keys the profile itself vouches for come first:
// nothing else would ask about them.
func effects(own any) (all []about.Effect) {
	m := about.Own[Machines](own)
	add := func(kind string, unusual bool, format string, args ...any) {
		all = append(all, about.Effect{Kind: kind, Unusual: unusual, Text: fmt.Sprintf(format, args...)})
	}
	var known, byOwn []string
	for _, host := range m.Hosts {
		if name, is := ownssh.Cut(host); is {
			byOwn = append(byOwn, name)
			continue
		}
		if key := m.KeyOf(host); key != "" {
			add(about.Connects, true, "%s by ssh; the profile itself vouches for its host key, %s", host, shortKey(key))
			continue
		}
		known = append(known, host)
	}
	if len(known) > 0 {
		add(about.Connects, false, "%s by ssh; known_hosts, or you, vouch for the host keys", namedOf(known))
	}
	if len(byOwn) > 0 {
		add(about.Connects, false, "%s by your own ssh, with what its configuration says of it", namedOf(byOwn))
	}
	if m.Modules != "" {
		add(about.Runs, false, "module load %s, on each of them", strings.Join(m.Loads(), " "))
	}
	for _, host := range slices.Sorted(maps.Keys(m.HostOptions)) {
		if python := m.HostOptions[host].Python; python != "" {
			add(about.Runs, false, "%s as Python, on %s", python, host)
		}
	}
	return all
}

// namedOf are hosts in a sentence.
func namedOf(hosts []string) string {
	if over := len(hosts) - mostNamed; over > 0 {
		hosts = append(hosts[:mostNamed:mostNamed], fmt.Sprintf("and %d more", over))
	}
	return strings.Join(hosts, ", ")
}

func shortKey(key string) string {
	if strings.HasPrefix(key, "SHA256:") {
		return key
	}
	words := strings.Fields(key)
	if len(words) < 2 {
		return key
	}
	return words[0] + " …" + words[1][max(0, len(words[1])-16):]
}
