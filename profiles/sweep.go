package profiles

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
)

// Sweep is a search over parameters of the training command.
type Sweep struct {
	Method     string // grid, list or random
	Parameters []Parameter
	List       [][]Setting // of the method list
	Trials     int         // at most; 0: all that the method has
	Seed       int
	Metric     string // a series of the trials; empty: none
	Mode       string // min or max
	Parallel   int    // trials at once; 0: as many as have room
	Nodes      int    // that a trial has
	GPUs       int    // that a trial of one node has; 0: all of its node
	Arguments  string // how a parameter is written behind the command
	Stop       string // none, median or halving
	Warmup     int    // values of the metric that no trial is stopped before
}

// Given reports whether the profile has a sweep.
func (s Sweep) Given() bool { return len(s.Parameters) > 0 || len(s.List) > 0 }

// Setting is a parameter with its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Parameter is what a sweep varies: some values, or a distribution.
type Parameter struct {
	Name      string
	Kind      string // in parameterKinds; "values" for a list
	Values    []string
	Low, High float64 // of a distribution
}

// The kinds of parameters.
const (
	ParameterValues     = "values"
	ParameterUniform    = "uniform"
	ParameterLogUniform = "loguniform"
	ParameterInt        = "int"
	ParameterLogInt     = "logint"
)

// parameterKinds are the words of a distribution.
var parameterKinds = []string{ParameterValues, ParameterUniform, ParameterLogUniform, ParameterInt, ParameterLogInt}

// MostTrials bounds a sweep.
const MostTrials = 10_000

const (
	mostParameters = 32
	mostValues     = 1000
)

var parameterForm = pattern.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// stays is the flaw of what can't be a value of a parameter.
func parameterFlaw(text string) flaw {
	if fl := oneLine(text); fl.why != "" {
		return fl
	}
	if strings.Contains(text, "${") {
		return flaw{why: "references are known in run.env only", next: "write the value out"}
	}
	return flaw{}
}

var settingSchema = schema{"type": []string{"string", "number", "boolean"}}

var parametersType = &Type{
	Name: "parameters", Doc: "a mapping of names to a list of values, or to a distribution: {uniform: [LOW, HIGH]}, {loguniform: …}, {int: …} and {logint: …}, both ends included",
	Schema: func(*Field) schema {
		list := schema{"type": "array", "items": settingSchema, "minItems": 1, "uniqueItems": true}
		ends := schema{"type": "array", "items": schema{"type": []string{"string", "number"}}, "minItems": 2}
		kinds := schema{ParameterValues: list}
		for _, k := range parameterKinds[1:] {
			kinds[k] = ends
		}
		return schema{"type": "object", "maxProperties": mostParameters, "propertyNames": schema{"pattern": parameterForm.String()},
			"additionalProperties": schema{"oneOf": []any{list, schema{"type": "object", "maxProperties": 1, "properties": kinds, "additionalProperties": false}}}}
	},
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		var all []Parameter
		variables := map[string]string{}
		ok := d.entries(f.Key, n, func(k, v *yaml.Node) bool {
			if len(all) == mostParameters {
				return d.keyFlaw(f.Key, k, flaw{why: "there are too many parameters", next: "vary fewer at once"})
			}
			if !d.parameterName(f.Key, k, variables) {
				return false
			}
			p := Parameter{Name: k.Value}
			ok := d.parameter(join(f.Key, k.Value), v, &p)
			all = append(all, p)
			return ok
		})
		if ok {
			*into.(*[]Parameter) = all
		}
	},
	format: func(_ *Field, from any) string {
		var parts []string
		for _, p := range *from.(*[]Parameter) {
			parts = append(parts, yamlText(p.Name)+": "+p.yaml())
		}
		return writeMap(parts)
	},
}

// ParameterVariable is the environment variable of a parameter by its name.
func ParameterVariable(name string) string {
	return "DLWB_PARAM_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// parameterName checks a name. variables has those of the parameters before it, each
// with its name.
func (d *decoder) parameterName(key string, k *yaml.Node, variables map[string]string) bool {
	if parameterForm.MatchString(k.Value) {
		v := ParameterVariable(k.Value)
		if other, is := variables[v]; is && other != k.Value {
			return d.keyFlaw(key, k, flaw{why: fmt.Sprintf("a trial would find it in %s, as it does %s", v, other), next: "give one of them another name"})
		}
		variables[v] = k.Value
		return true
	}
	return d.keyFlaw(key, k, flaw{why: "this is no name of a parameter", next: "letters, digits, _ . and -; the first is a letter, such as lr"})
}

func (p Parameter) yaml() string {
	if p.Kind == ParameterValues {
		return writeList(p.Values)
	}
	return writeMap([]string{fmt.Sprintf("%s: [%s, %s]", p.Kind, number(p.Low), number(p.High))})
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// parameter reads what one parameter may be.
func (d *decoder) parameter(key string, v *yaml.Node, p *Parameter) bool {
	if v.Kind != yaml.MappingNode {
		p.Kind = ParameterValues
		return d.parameterValues(key, v, p)
	}
	if len(v.Content) != 2 {
		d.failAt(v, key, key, flaw{why: "a parameter has one list or one distribution", next: "such as {loguniform: [0.0001, 0.1]}"})
		return false
	}
	return d.entries(key, v, func(k, v *yaml.Node) bool {
		p.Kind = k.Value
		switch k.Value {
		case ParameterValues:
			return d.parameterValues(join(key, k.Value), v, p)
		case ParameterUniform, ParameterLogUniform, ParameterInt, ParameterLogInt:
			return d.parameterEnds(join(key, k.Value), v, p)
		}
		return d.keyFlaw(key, k, flaw{why: "there is no such distribution", nearest: nearword.Nearest(k.Value, parameterKinds), next: "one of " + strings.Join(parameterKinds, ", ")})
	})
}

func (d *decoder) parameterValues(key string, v *yaml.Node, p *Parameter) bool {
	if v.Kind != yaml.SequenceNode {
		d.flaw(key, v, flaw{why: "a list of values is needed", next: "write it in brackets: [16, 32], or a distribution: {loguniform: [0.0001, 0.1]}"})
		return false
	}
	if n := len(v.Content); n == 0 || n > mostValues {
		d.flaw(key, v, flaw{why: fmt.Sprintf("it has %d values", n), next: fmt.Sprintf("write 1 to %d", mostValues)})
		return false
	}
	values, ok := d.items(&Field{Key: key}, v.Content, func(_ *Field, text string) (string, flaw) { return text, parameterFlaw(text) })
	p.Values = values
	return ok
}

// parameterEnds reads the two ends of a distribution.
func (d *decoder) parameterEnds(key string, v *yaml.Node, p *Parameter) bool {
	if v.Kind != yaml.SequenceNode || len(v.Content) != 2 {
		d.flaw(key, v, flaw{why: "a distribution has two ends", next: "write [LOW, HIGH]"})
		return false
	}
	for i, at := range []*float64{&p.Low, &p.High} {
		n := v.Content[i]
		text, ok := d.scalar(key, n)
		if !ok {
			return false
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
			d.flaw(key, n, flaw{why: "this is no number", next: "such as 0.001, or 1e-3"})
			return false
		}
		*at = value
	}
	fl := flaw{}
	whole := p.Kind == ParameterInt || p.Kind == ParameterLogInt
	switch log := p.Kind == ParameterLogUniform || p.Kind == ParameterLogInt; {
	case p.Low >= p.High:
		fl = flaw{why: "the lower end comes first", next: fmt.Sprintf("write [%s, %s]", number(min(p.Low, p.High)), number(max(p.Low, p.High)))}
	case log && p.Low <= 0:
		fl = flaw{why: "a logarithm needs ends above 0", next: "raise the lower end, such as 1e-6"}
	case whole && (p.Low != math.Trunc(p.Low) || p.High != math.Trunc(p.High) || math.Abs(p.Low) > 1e15 || p.High > 1e15):
		fl = flaw{why: "its ends are whole numbers", nearest: strings.ReplaceAll(p.Kind, "int", "uniform"), next: "leave the fractions out"}
	}
	if fl.why != "" {
		d.failAt(v, key, key, fl)
	}
	return fl.why == ""
}

// settingsType is a list of trials, each with its parameters.
var settingsType = &Type{
	Name: "list of settings", Doc: "a list of mappings, one for each trial: [{lr: 0.1, layers: 2}, {lr: 0.01, layers: 4}]",
	Schema: func(*Field) schema {
		return schema{"type": "array", "minItems": 1, "items": schema{"type": "object", "maxProperties": mostParameters,
			"propertyNames": schema{"pattern": parameterForm.String()}, "additionalProperties": settingSchema}}
	},
	parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
		if n.Kind != yaml.SequenceNode {
			d.wrongKind(f.Key, n, "list")
			return
		}
		if len(n.Content) == 0 || len(n.Content) > MostTrials {
			d.flaw(f.Key, n, flaw{why: fmt.Sprintf("it has %d trials", len(n.Content)), next: fmt.Sprintf("write 1 to %d", MostTrials)})
			return
		}
		var all [][]Setting
		ok := true
		for _, item := range n.Content {
			var one []Setting
			variables := map[string]string{}
			ok = d.entries(f.Key, item, func(k, v *yaml.Node) bool {
				text, ok := d.scalar(join(f.Key, k.Value), v)
				if !ok || !d.parameterName(f.Key, k, variables) {
					return false
				}
				if fl := parameterFlaw(text); fl.why != "" {
					d.flaw(join(f.Key, k.Value), v, fl)
					return false
				}
				one = append(one, Setting{k.Value, text})
				return true
			}) && ok
			all = append(all, one)
		}
		if ok {
			*into.(*[][]Setting) = all
		}
	},
	format: func(_ *Field, from any) string {
		var parts []string
		for _, trial := range *from.(*[][]Setting) {
			var one []string
			for _, s := range trial {
				one = append(one, yamlText(s.Name)+": "+yamlText(s.Value))
			}
			parts = append(parts, writeMap(one))
		}
		if len(parts) == 0 {
			return ""
		}
		return "[" + strings.Join(parts, ", ") + "]"
	},
}

// argumentsType is how a parameter is written behind the command.
var argumentsType = textOf("argument", "words with {name} and {value} in them", "", func(_ *Field, text string) flaw {
	if text == "none" {
		return flaw{}
	}
	if !strings.Contains(text, "{name}") || !strings.Contains(text, "{value}") {
		return flaw{why: "it needs {name} and {value}", next: `such as --{name}={value}, or "none" where the script reads DLWB_PARAM_… itself`}
	}
	return wordsFlaw(text)
})

// sweep checks what the keys of a sweep say together.
func (d *decoder) sweep() {
	s := d.p.Sweep
	if !d.given["sweep"] || d.faultyIn("sweep.parameters") || d.faultyIn("sweep.list") || d.faulty["sweep.method"] {
		return
	}
	switch {
	case s.Method == "list" && len(s.List) == 0:
		d.failKey("sweep", flaw{why: "the method list needs sweep.list", next: "add list: [{lr: 0.1}, {lr: 0.01}]"})
	case s.Method != "list" && len(s.List) > 0:
		d.failKey("sweep.list", flaw{why: "the method " + s.Method + " has no list", next: "set method: list"})
	case s.Method == "list" && len(s.Parameters) > 0:
		d.failKey("sweep.parameters", flaw{why: "the method list has its values in sweep.list", next: "keep one of the two"})
	case !s.Given():
		d.failKey("sweep", flaw{why: "it has no parameters", next: "add parameters: {lr: [0.1, 0.01]}"})
	case s.Method == "random" && s.Trials == 0:
		d.failKey("sweep", flaw{why: "a random search has no end of its own", next: "add trials: 12"})
	case s.Method == "grid":
		d.grid(s)
	}
	if s.Stop != "none" && s.Metric == "" {
		d.failKey("sweep.stop", flaw{why: "nothing is known to stop by", next: "add metric: val/loss, and mode: min or max"})
	}
	if s.Nodes > d.p.Machines.Count {
		d.failKey("sweep.nodes", flaw{why: fmt.Sprintf("the cluster has %d", d.p.Machines.Count), next: "raise machines.count, or lower this"})
	}
	if d.p.Head() != "" {
		d.failKey("machines.head_instance", flaw{why: "the trials of a sweep have nothing to start on a machine that only leads", next: "leave out machines.head_instance"})
	}
	d.ownPaths()
}

// grid checks that all of a grid can be counted.
func (d *decoder) grid(s Sweep) {
	trials := 1
	for _, p := range s.Parameters {
		if p.Kind != ParameterValues {
			d.failKey("sweep.parameters."+p.Name, flaw{why: "a grid has every combination, and of a distribution there is no end", next: "write a list of values, or set method: random"})
			return
		}
		if trials *= len(p.Values); trials > MostTrials {
			d.failKey("sweep.parameters", flaw{why: fmt.Sprintf("the grid has more than %d trials", MostTrials), next: "vary fewer values, or set method: random and trials"})
			return
		}
	}
}

// ownPaths checks that trials that run at once do not write to the same place.
func (d *decoder) ownPaths() {
	next := "add {run} to it, or leave the key out: each trial's DLWB_RESULTS is its own and comes home by itself"
	for _, path := range d.p.Results.Paths {
		if !strings.Contains(path, RunWord) {
			d.failKey("results.paths", flaw{why: "the trials of a sweep would write to one place, " + quote(path), next: next})
			break
		}
	}
	if d.p.State != "" {
		d.failKey("state", flaw{why: "the trials of a sweep would write to one place", next: "leave it out: each trial has DLWB_RESULTS"})
	}
	if c := d.p.Results.Checkpoints; c != "" && !strings.Contains(c, RunWord) {
		d.failKey("results.checkpoints", flaw{why: "the trials of a sweep would write to one place", next: next})
	}
}
