package history

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/workbench/event"
)

// runFilter is alternatives, each of conditions that must all hold.
type runFilter [][]condition

// condition compares one thing of a run with a value.
type condition struct {
	name, op, value string
	not             bool
}

var conditionForm = pattern.New(`^(?i:(not)\s+)?([^\s<>=!~"]+)\s*(<=|>=|!=|==|=|<|>|~|!~)\s*(?:"([^"]*)"|(\S+))\s*`)

var joinForm = pattern.New(`^(?i)(and|or|&&|\|\|)\s+`)

// parseFilter reads conditions such as: loss<2 and engine=torchrun or starred=yes
func parseFilter(text string) (runFilter, error) {
	rest := strings.TrimSpace(text)
	if rest == "" {
		return nil, nil
	}
	filter := runFilter{nil}
	for {
		m := conditionForm.FindStringSubmatch(rest)
		if m == nil {
			return nil, &event.Fault{What: fmt.Sprintf("read the filter %q", text), Node: -1,
				Why:  fmt.Sprintf("a condition should stand at %q", rest),
				Next: `write name, =, !=, <, <=, >, >= or ~ (contains), and a value: 'loss<2 and engine=torchrun', 'note~"too high"'`}
		}
		c := condition{name: m[2], op: m[3], value: m[4] + m[5], not: m[1] != ""}
		if c.op == "==" {
			c.op = "="
		}
		if err := c.check(text); err != nil {
			return nil, err
		}
		filter[len(filter)-1] = append(filter[len(filter)-1], c)
		if rest = rest[len(m[0]):]; rest == "" {
			return filter, nil
		}
		j := joinForm.FindStringSubmatch(rest)
		if j == nil {
			return nil, &event.Fault{What: fmt.Sprintf("read the filter %q", text), Node: -1,
				Why: fmt.Sprintf("and or or should stand at %q", rest), Next: "put and between conditions, and quotes around values with blanks"}
		}
		rest = rest[len(j[0]):]
		if w := strings.ToLower(j[1]); w == "or" || w == "||" {
			filter = append(filter, nil)
		}
	}
}

// check refuses a value that can't be compared with what it is for.
func (c condition) check(text string) error {
	f := fieldOf(c.name)
	kind := isAmount
	if f != nil {
		kind = kindOf(c.name)
	}
	if kind == isText || c.op == "~" || c.op == "!~" {
		if c.op == "<" || c.op == ">" || c.op == "<=" || c.op == ">=" {
			return &event.Fault{What: fmt.Sprintf("read the filter %q", text), Node: -1, Why: c.name + " is a text", Next: "compare it with =, != or ~"}
		}
		return nil
	}
	if _, ok := parseDatum(kind, c.value); !ok {
		return &event.Fault{What: fmt.Sprintf("read the filter %q", text), Node: -1,
			Why:  fmt.Sprintf("%s can't be compared with %q", c.name, c.value),
			Next: "write " + map[datumKind]string{isAmount: "a number", isSeconds: "a duration: 90s, 10m, 2h, 3d", isTime: "a day or a time: 2026-03-01, 2026-03-01T12:00"}[kind]}
	}
	return nil
}

// kindOf is what kind of value a field has.
func kindOf(name string) datumKind {
	switch name {
	case "exit", "world_size", "cost":
		return isAmount
	case "age", "took":
		return isSeconds
	case "started":
		return isTime
	}
	return isText
}

// parseDatum reads a value of a kind.
func parseDatum(kind datumKind, text string) (float64, bool) {
	switch kind {
	case isSeconds:
		if days, ok := strings.CutSuffix(text, "d"); ok {
			v, err := strconv.ParseFloat(days, 64)
			return v * 24 * 3600, err == nil
		}
		if d, err := time.ParseDuration(text); err == nil {
			return d.Seconds(), true
		}
	case isTime:
		for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
			if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
				return float64(t.Unix()), true
			}
		}
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	return v, err == nil
}

// names are the fields and series that a filter asks for.
func (f runFilter) names() []string {
	var names []string
	for _, all := range f {
		for _, c := range all {
			names = append(names, c.name)
		}
	}
	return names
}

func (f runFilter) accepts(l *lookup, r event.RunInfo) bool {
	for _, all := range f {
		ok := true
		for _, c := range all {
			ok = ok && c.holds(l.of(r, c.name)) != c.not
		}
		if ok {
			return true
		}
	}
	return len(f) == 0
}

// holds reports whether a condition holds for a value. For one that is missing
// none does.
func (c condition) holds(d datum) bool {
	if d.kind == missing {
		return false
	}
	if d.kind == isText || c.op == "~" || c.op == "!~" {
		have, want := strings.ToLower(d.text), strings.ToLower(c.value)
		if d.kind != isText {
			have = fmt.Sprint(d.number)
		}
		switch c.op {
		case "=":
			return have == want
		case "!=":
			return have != want
		case "!~":
			return !strings.Contains(have, want)
		}
		return strings.Contains(have, want)
	}
	v, ok := parseDatum(d.kind, c.value)
	switch {
	case !ok:
		return false
	case c.op == "=":
		return d.number == v || d.number != d.number && v != v
	case c.op == "!=":
		return d.number != v
	case c.op == "<":
		return d.number < v
	case c.op == "<=":
		return d.number <= v
	case c.op == ">":
		return d.number > v
	}
	return d.number >= v
}
