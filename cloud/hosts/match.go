package hosts

import (
	"slices"
	"strings"
)

// answers are what a configuration says about one host: for each key the first
// value that was found, as ssh has it, or all of them for the keys that add up.
type answers struct {
	name   string // as it was asked for
	user   string // asked for with the name; empty: not
	values map[string][]string
	// ignored are the conditions that dlwb does not evaluate, with their
	// places: a key behind one may be missing here.
	ignored []string
	// final: what is read is read once more, because a Match final asks for that.
	final, wantsFinal bool
	found             string // where the host is, as was read the first time
}

// addsUp are the keys of which every line counts.
var addsUp = []string{"identityfile", "certificatefile"}

// ask looks up what a configuration says about a host.
func ask(config []line, name, user string) *answers {
	a := &answers{name: name, user: user, values: map[string][]string{}}
	a.read(config)
	if a.wantsFinal {
		a.final, a.found = true, a.hostName()
		a.read(config) // what has a value keeps it
	}
	return a
}

func (a *answers) read(lines []line) {
	active, name := true, a.name
	if a.final {
		name = a.found
	}
	for _, l := range lines {
		switch l.key {
		case "host":
			active = matchesList(l.args, name)
		case "match":
			active = a.match(l)
		case "include":
			if active {
				a.read(l.included)
			}
		default:
			if active {
				a.note(l)
			}
		}
	}
}

// note keeps a value. A jump and a command to connect with exclude each other:
// the first of either counts.
func (a *answers) note(l line) {
	key := l.key
	if key == "proxycommand" && a.values["proxyjump"] != nil || key == "proxyjump" && a.values["proxycommand"] != nil {
		return
	}
	if slices.Contains(addsUp, key) {
		if !slices.Contains(a.values[key], l.args[0]) {
			a.values[key] = append(a.values[key], l.args[0])
		}
	} else if a.values[key] == nil {
		a.values[key] = l.args
	}
}

// get is the first word of a value; empty when there is none.
func (a *answers) get(key string) string {
	if v := a.values[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// match evaluates the conditions of a Match line, all of which must hold.
func (a *answers) match(l line) bool {
	holds := true
	for i := 0; i < len(l.args); i++ {
		word, negated := strings.CutPrefix(strings.ToLower(l.args[i]), "!")
		word, value, inWord := strings.Cut(word, "=")
		if word == "all" {
			holds = holds && !negated
			continue
		}
		if word == "canonical" || word == "final" {
			a.wantsFinal = a.wantsFinal || word == "final"
			holds = holds && a.final != negated
			continue
		}
		if inWord {
			value = l.args[i][strings.IndexByte(l.args[i], '=')+1:]
		} else if i++; i < len(l.args) {
			value = l.args[i]
		}
		is, known := a.condition(word, value)
		if !known {
			if place := l.fault("Match %s", word).Error(); !slices.Contains(a.ignored, place) {
				a.ignored = append(a.ignored, place)
			}
			holds = false // a final behind it counts
			continue
		}
		holds = holds && is != negated
	}
	return holds
}

// condition evaluates one condition. Commands are never run to find out.
func (a *answers) condition(word, patterns string) (is, known bool) {
	list := strings.Split(patterns, ",")
	switch word {
	case "host":
		return matchesList(list, a.hostName()), true
	case "originalhost":
		return matchesList(list, a.name), true
	case "user":
		return matchesList(list, a.userName()), true
	case "localuser":
		return matchesList(list, localUser()), true
	}
	return false, false
}

// matchesList reports whether a name matches one of several patterns and none
// of those that begin with !.
func matchesList(patterns []string, name string) bool {
	matched := false
	for _, p := range patterns {
		p, negated := strings.CutPrefix(p, "!")
		if !matches(p, name) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

// matches holds a name against a pattern of *, which stands for anything, and
// ?, which stands for one character.
func matches(pattern, name string) bool {
	star, from := -1, 0 // the last star, and how far it has eaten
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
