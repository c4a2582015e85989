package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/workbench/event"
)

// runFilter is alternatives, each of conditions that must all hold.
type runFilter [][]condition

// condition compares one thing of a run with a value.
type condition struct {
	name, op, value string
	not             bool
	column          int // of the value in the filter, in characters from 1
}

var (
	conditionForm = pattern.New(`^(?i:(not)\s+)?([^\s<>=!~"]+)\s*(<=|>=|!=|==|=|<|>|~|!~)\s*(?:"([^"]*)"|(\S+))\s*`)
	// dayForm is a condition on the day as people say it.
	dayForm  = pattern.New(`^(?i:(not)\s+)?(?i:(since|on|before|after))\s+(?:"([^"]*)"|([^\s<>=!~"]\S*))\s*`)
	joinForm = pattern.New(`^(?i)(and|or|&&|\|\|)\s+`)
)

// dayOps are what the words of dayForm mean for when a run began.
var dayOps = map[string]string{"since": ">=", "on": "=", "before": "<", "after": ">"}

// badFilter is the fault of a filter at a column of it.
func badFilter(text string, column int, why, next string) error {
	return &BadQuery{&event.Fault{What: fmt.Sprintf("read the filter %q at column %d", text, column), Node: -1, Why: why, Next: next}}
}

// parseFilter reads conditions such as: loss<2 and engine=torchrun or starred=yes
func parseFilter(text string) (runFilter, error) {
	rest := strings.TrimSpace(text)
	if rest == "" {
		return nil, nil
	}
	text = rest
	at := func(rest string) int { return utf8.RuneCountInString(text[:len(text)-len(rest)]) + 1 }
	filter := runFilter{nil}
	for {
		c, next, ok := readCondition(rest)
		if !ok {
			return nil, badFilter(text, at(rest), fmt.Sprintf("a condition should stand at %q", rest),
				`write name, =, !=, <, <=, >, >= or ~ (contains), and a value: 'loss<2 and engine=torchrun', 'note~"too high"', 'since 2026-03-01'`)
		}
		c.column = at(rest[strings.LastIndex(rest[:len(rest)-len(next)], c.value):])
		filter[len(filter)-1] = append(filter[len(filter)-1], c)
		if rest = next; rest == "" {
			return filter, nil
		}
		j := joinForm.FindStringSubmatch(rest)
		if j == nil {
			return nil, badFilter(text, at(rest), fmt.Sprintf("and or or should stand at %q", rest), "put and between conditions, and quotes around values with blanks")
		}
		rest = rest[len(j[0]):]
		if w := strings.ToLower(j[1]); w == "or" || w == "||" {
			filter = append(filter, nil)
		}
	}
}

// readCondition reads one condition, and returns what stands behind it.
func readCondition(text string) (c condition, rest string, ok bool) {
	if m := conditionForm.FindStringSubmatch(text); m != nil {
		c = condition{name: m[2], op: m[3], value: m[4] + m[5], not: m[1] != ""}
		if c.op == "==" {
			c.op = "="
		}
		return c, text[len(m[0]):], true
	}
	if m := dayForm.FindStringSubmatch(text); m != nil {
		return condition{name: "started", op: dayOps[strings.ToLower(m[2])], value: m[3] + m[4], not: m[1] != ""}, text[len(m[0]):], true
	}
	return c, text, false
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
			return badFilter(text, c.column, c.name+" is a text", "compare it with =, != or ~")
		}
		return nil
	}
	if _, _, ok := parseDatum(kind, c.value); !ok {
		return badFilter(text, c.column, fmt.Sprintf("%s can't be compared with %q", c.name, c.value),
			"write "+map[datumKind]string{isAmount: "a number", isSeconds: "a duration: 90s, 10m, 2h, 3d",
				isTime: "a day or a time: 2026-03-01, 2026-03-01T12:00, today, yesterday"}[kind])
	}
	return nil
}

// check refuses values that can't be compared, and words that no run can be: a
// filter by one would find nothing, and say nothing. What is on record counts too,
// as another dlwb may have known it.
func (f runFilter) check(l *lookup, runs []event.RunInfo, text string) error {
	for _, c := range slices.Concat(f...) {
		if err := c.check(text); err != nil {
			return err
		}
		of := fieldOf(c.name)
		if of == nil || of.words == nil || c.op != "=" && c.op != "!=" {
			continue
		}
		is := func(word string) bool { return strings.EqualFold(word, c.value) }
		if slices.ContainsFunc(of.words, is) || slices.ContainsFunc(runs, func(r event.RunInfo) bool { return is(l.of(r, c.name).text) }) {
			continue
		}
		next := "it is one of " + strings.Join(of.words, ", ")
		near := nearword.Nearest(c.value, of.words)
		if meant := otherWords()[nearword.Fold(c.value)]; slices.Contains(of.words, meant) {
			near = meant
		}
		if near != "" {
			next = "did you mean " + near + "? " + next
		}
		return badFilter(text, c.column, fmt.Sprintf("%s is never %q", c.name, c.value), next)
	}
	return nil
}

// otherWords are what people call an end or a provider elsewhere, without what Fold
// takes away.
func otherWords() map[string]string {
	words := map[string]string{"success": "succeeded", "successful": "succeeded", "ok": "succeeded", "done": "succeeded", "completed": "succeeded",
		"error": "failed", "crashed": "failed", "canceled": "stopped", "cancelled": "stopped", "aborted": "stopped", "interrupted": "stopped",
		"timeout": "time-limit", "outofmemory": "oom", "active": "running", "true": "yes", "false": "no", "1": "yes", "0": "no"}
	for _, p := range providers.All {
		for _, word := range p.Also {
			words[nearword.Fold(word)] = p.Name
		}
	}
	return words
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

// parseDatum reads a value of a kind: from where it begins to before where it ends.
// Only a day or a time has some length.
func parseDatum(kind datumKind, text string) (from, to float64, ok bool) {
	switch kind {
	case isSeconds:
		if days, ok := strings.CutSuffix(text, "d"); ok {
			v, err := strconv.ParseFloat(days, 64)
			return v * 24 * 3600, v * 24 * 3600, err == nil
		}
		if d, err := time.ParseDuration(text); err == nil {
			return d.Seconds(), d.Seconds(), true
		}
	case isTime:
		from, to, ok := parseTime(text)
		return float64(from.Unix()), float64(to.Unix()), ok
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	return v, v, err == nil
}

// parseTime reads a day or a time of this place: all of the day, of the minute, of
// the second.
func parseTime(text string) (from, to time.Time, ok bool) {
	day := now().Local()
	switch strings.ToLower(text) {
	case "yesterday":
		text = day.AddDate(0, 0, -1).Format(time.DateOnly)
	case "today":
		text = day.Format(time.DateOnly)
	}
	for _, form := range []struct {
		text string
		long time.Duration
	}{{time.RFC3339, time.Second}, {"2006-01-02T15:04:05", time.Second}, {"2006-01-02 15:04:05", time.Second}, {"2006-01-02T15:04", time.Minute}, {"2006-01-02 15:04", time.Minute}} {
		if t, err := time.ParseInLocation(form.text, text, time.Local); err == nil {
			return t, t.Add(form.long), true
		}
	}
	t, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	return t, t.AddDate(0, 0, 1), err == nil // a day may have 23 hours
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
		if d.kind == isTime {
			have = strings.ToLower(time.Unix(int64(d.number), 0).Local().Format("2006-01-02T15:04:05"))
		} else if d.kind != isText {
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
	from, to, ok := parseDatum(d.kind, c.value)
	is := d.number == from || d.number > from && d.number < to || d.number != d.number && from != from
	switch {
	case !ok:
		return false
	case c.op == "=":
		return is
	case c.op == "!=":
		return !is
	case c.op == "<":
		return d.number < from
	case c.op == "<=":
		return d.number < from || is
	case c.op == ">":
		return d.number > from && !is
	}
	return d.number >= from
}
