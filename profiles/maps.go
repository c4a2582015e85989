package profiles

import (
	"errors"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/pattern"
)

// rankVariables are set by dlwb for each rank.
var rankVariables = []string{"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"}

var (
	variableForm  = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	referenceForm = pattern.New(`\$\{([^}]*)\}?`)
	metricForm    = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9_./@ -]{0,63}$`)
)

var envType = &Type{
	Name: "variables", Doc: "a mapping of names to values; `${env:NAME}` is the value of a variable of the shell that starts dlwb",
	Schema: func(*Field) schema {
		return schema{"type": "object", "propertyNames": schema{"pattern": variableForm.String()},
			"additionalProperties": schema{"type": []string{"string", "number", "boolean"}}}
	},
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		var all []Var
		ok := d.entries(f.Key, n, func(k, v *yaml.Node) bool {
			text, ok := d.scalarMaybeEmpty(join(f.Key, k.Value), v)
			if !ok {
				return false
			}
			one, ok := d.variable(f.Key, k, v, text)
			all = append(all, one)
			return ok
		})
		if ok {
			*into.(*[]Var) = all
		}
	},
	format: func(_ *Field, from any) string {
		var parts []string
		for _, v := range *from.(*[]Var) {
			value := v.Value
			if v.Secret {
				value = v.Ref // never the value
			}
			parts = append(parts, v.Name+": "+yamlText(value))
		}
		return writeMap(parts)
	},
}

// pairsType is a mapping of names to values that mean nothing here.
var pairsType = &Type{
	Name: "names and values", Doc: "a mapping of names to values",
	Schema: func(*Field) schema {
		return schema{"type": "object", "additionalProperties": schema{"type": []string{"string", "number", "boolean"}}}
	},
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		all := map[string]string{}
		ok := d.entries(f.Key, n, func(k, v *yaml.Node) bool {
			text, ok := d.scalarMaybeEmpty(join(f.Key, k.Value), v)
			if fl := oneLine(k.Value); ok && fl.why != "" {
				return d.keyFlaw(f.Key, k, fl)
			}
			all[k.Value] = text
			return ok
		})
		if ok {
			*into.(*map[string]string) = all
		}
	},
	format: func(_ *Field, from any) string {
		var parts []string
		all := *from.(*map[string]string)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			parts = append(parts, yamlText(name)+": "+yamlText(all[name]))
		}
		return writeMap(parts)
	},
}

// entries calls read for each key and value of a mapping, and reports whether
// all went well.
func (d *decoder) entries(key string, n *yaml.Node, read func(k, v *yaml.Node) bool) bool {
	if n.Kind != yaml.MappingNode {
		d.wrongKind(key, n, "mapping")
		return false
	}
	if len(n.Content) == 0 {
		d.flaw(key, n, flaw{why: "the mapping is empty", next: "leave the key out"})
		return false
	}
	ok := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode {
			d.mark(join(key, k.Value), k, n.Content[i+1])
			ok = read(k, n.Content[i+1]) && ok
		}
	}
	return ok
}

// variable checks one environment variable and puts in what it refers to.
func (d *decoder) variable(key string, k, v *yaml.Node, text string) (Var, bool) {
	name := k.Value
	switch {
	case !variableForm.MatchString(name):
		return Var{}, d.keyFlaw(key, k, flaw{why: "this is no name of a variable", next: "letters, digits and _; the first is no digit"})
	case slices.Contains(rankVariables, name) || strings.HasPrefix(name, "DLWB_"):
		next := "remove it"
		if name == "MASTER_PORT" {
			next = "remove it, and set run.master_port"
		}
		return Var{}, d.keyFlaw(key, k, flaw{why: "dlwb sets this itself, for each rank", next: next})
	}
	if tokenIn(text) != "" { // already reported, wherever it stands
		return Var{}, false
	}
	if strings.Contains(text, "${") {
		return d.reference(join(key, name), v, Var{Name: name, Ref: text, Secret: true})
	}
	if why := secretLiteral(name, text); why != "" {
		d.hide(v)
		d.failAt(v, join(key, name), join(key, name), flaw{why: why, next: fmt.Sprintf(`write "${env:%s}", and export %s before starting dlwb`, name, name)})
		return Var{}, false
	}
	switch {
	case strings.ContainsAny(text, "\n\r"):
		d.flaw(join(key, name), v, flaw{why: "it has more than one line", next: "write it on one line"})
		return Var{}, false
	case strings.Contains(text, "\x00"):
		d.flaw(join(key, name), v, flaw{why: "it has a NUL byte, where a variable ends", next: "remove it"})
		return Var{}, false
	}
	return Var{Name: name, Value: text}, true
}

// reference puts the values of the shell's variables in the place of the
// references to them.
func (d *decoder) reference(key string, n *yaml.Node, v Var) (Var, bool) {
	ok := true
	v.Value = referenceForm.ReplaceAllStringFunc(v.Ref, func(ref string) string {
		name, isEnv := strings.CutPrefix(strings.TrimSuffix(ref[2:], "}"), "env:")
		fl := flaw{offset: utf8.RuneCountInString(v.Ref[:strings.Index(v.Ref, ref)]), width: len(ref)}
		value, set := d.lookup(name)
		switch {
		case !strings.HasSuffix(ref, "}"):
			fl.why, fl.next = "the reference is not closed", "write ${env:NAME}"
		case !isEnv && variableForm.MatchString(name):
			fl.why, fl.nearest = "only ${env:NAME} is known here", "${env:"+name+"}"
		case !isEnv || !variableForm.MatchString(name):
			fl.why, fl.next = "this is no reference", "write ${env:NAME}"
		case !set:
			fl.why, fl.next = name+" is not set in the shell that started dlwb", "export "+name+"=… and start dlwb again"
		case strings.ContainsAny(value, "\n\r\x00"):
			fl.why, fl.next = "the value of "+name+" has more than one line", "give the training a file instead"
		default:
			return value
		}
		d.failAt(n, key, key+" "+quote(ref), fl)
		ok = false
		return ""
	})
	return v, ok
}

func writeMap(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// The limits of the regular expressions. RE2 runs in linear time, but a few
// nested repeats in a line of text make a program of millions of steps.
const (
	maxMetrics = 64
	maxPattern = 500
	maxSteps   = 2000
)

var metricsType = &Type{
	Name: "metrics", Doc: "a mapping of names to regular expressions (RE2) with one group, which is the value; write them in single quotes",
	Schema: func(*Field) schema {
		return schema{"type": "object", "maxProperties": maxMetrics, "propertyNames": schema{"pattern": metricForm.String()},
			"additionalProperties": schema{"type": "string", "maxLength": maxPattern}}
	},
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		if len(n.Content) > 2*maxMetrics {
			d.failAt(n, f.Key, f.Key, flaw{why: fmt.Sprintf("there are more than %d", maxMetrics), next: "key: value and key=value lines are found by themselves"})
			return
		}
		var all []Metric
		ok := d.entries(f.Key, n, func(k, v *yaml.Node) bool {
			if !metricForm.MatchString(k.Value) {
				return d.keyFlaw(f.Key, k, flaw{why: "this is no name of a metric", next: "letters, digits, and _ . / @ - inside; such as val/acc"})
			}
			key := join(f.Key, k.Value)
			text, ok := d.scalar(key, v)
			if !ok {
				return false
			}
			if fl := checkRegex(text); fl.why != "" {
				d.flaw(key, v, fl)
				return false
			}
			all = append(all, Metric{Name: k.Value, Regex: text})
			return true
		})
		if ok {
			*into.(*[]Metric) = all
		}
	},
	format: func(_ *Field, from any) string {
		var parts []string
		for _, m := range *from.(*[]Metric) {
			parts = append(parts, yamlText(m.Name)+": "+yamlText(m.Regex))
		}
		return writeMap(parts)
	},
}

func checkRegex(text string) flaw {
	if len(text) > maxPattern {
		return flaw{why: fmt.Sprintf("it is longer than %d characters", maxPattern), next: "look for the few words next to the value"}
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return regexFlaw(text, err)
	}
	if steps(re) > maxSteps {
		return flaw{why: "its repeats multiply to too many", next: "use * or + in place of a great {n}"}
	}
	switch n := re.MaxCap(); n {
	case 1:
		return flaw{}
	case 0:
		return flaw{why: "it has no group, and the group is the value", next: `put the number in brackets, such as (\d+\.\d+)`}
	default:
		return flaw{why: fmt.Sprintf("it has %d groups, and one is the value", n), next: "keep ( ) for the value and write (?: ) for the others"}
	}
}

// steps is about how long the program of an expression is.
func steps(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpLiteral {
		n += len(re.Rune)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<30)
}

// regexWords are the faults of RE2 in other words.
var regexWords = map[syntax.ErrorCode][2]string{
	syntax.ErrMissingParen:          {"a bracket ( is not closed", `add ), or write \( for the character`},
	syntax.ErrUnexpectedParen:       {"a bracket ) was never opened", `write \) for the character`},
	syntax.ErrMissingBracket:        {"a bracket [ is not closed", `add ], or write \[ for the character`},
	syntax.ErrMissingRepeatArgument: {"there is nothing before it that could be repeated", `write a backslash before it for the character`},
	syntax.ErrInvalidRepeatOp:       {"one repeat follows another", "keep one of them"},
	syntax.ErrInvalidRepeatSize:     {"RE2 repeats at most 1000 times", "use * or +"},
	syntax.ErrTrailingBackslash:     {"it ends with a backslash", `write \\ for the character`},
	syntax.ErrInvalidEscape:         {"RE2 does not know this escape", `write \\ for a backslash; a group can't be referred to`},
	syntax.ErrInvalidCharRange:      {"the range is no range", "give the smaller character first"},
	syntax.ErrInvalidPerlOp:         {"RE2 knows no lookahead, lookbehind or conditions", "leave it out: only the group counts, the text around it may match too"},
	syntax.ErrInvalidNamedCapture:   {"the name of the group is not valid", "write ( ) without a name"},
	syntax.ErrNestingDepth:          {"it is nested too deep", "look for the few words next to the value"},
	syntax.ErrLarge:                 {"its repeats multiply to too many", "use * or + in place of a great {n}"},
}

func regexFlaw(text string, err error) flaw {
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return flaw{why: err.Error()}
	}
	words, ok := regexWords[bad.Code]
	if !ok {
		words = [2]string{"RE2: " + bad.Code.String(), "see the syntax of RE2"}
	}
	fl := flaw{why: words[0], next: words[1]}
	if bad.Expr != text { // the piece at fault
		fl.why = quote(bad.Expr) + ": " + fl.why
		fl.offset = utf8.RuneCountInString(text[:max(strings.Index(text, bad.Expr), 0)])
		fl.width = utf8.RuneCountInString(bad.Expr)
	}
	return fl
}
