package hosts

import (
	"slices"
	"strings"
)

// Known implements cloud.Knower.
func (p *Provider) Known(key string) []string {
	if key != "machines.hosts" {
		return nil
	}
	return p.Aliases()
}

// Aliases are the hosts that the user's ssh configuration names, in its order.
// Patterns are no hosts.
func (p *Provider) Aliases() []string {
	r, err := p.resolver()
	if err != nil {
		return nil
	}
	return aliases(r.config, nil)
}

// aliases adds the names in the lines of a configuration to others.
func aliases(lines []line, names []string) []string {
	for _, l := range lines {
		names = aliases(l.included, names)
		if l.key != "host" {
			continue
		}
		for _, name := range l.args {
			if !strings.ContainsAny(name, "*?!") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
