package foreign

import (
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/remote/engine"
)

// What is carried over holds no secret: a profile is shown, committed and sent to
// others. In its place stands a reference in run.env, which the command finds in its
// environment.

var (
	assignment = pattern.New(`^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
	notVar     = pattern.New(`[^A-Z0-9]+`)
)

// forms are the variables by which libraries find what has such a form.
var forms = []struct{ prefix, name string }{{"hf_", "HF_TOKEN"}, {"gh", "GH_TOKEN"}, {"AKIA", "AWS_ACCESS_KEY_ID"}, {"ASIA", "AWS_ACCESS_KEY_ID"}, {"", "SECRET"}}

// variableFor is the variable for a secret that stood behind a name, which may be
// none.
func variableFor(name, value string) string {
	name = strings.Trim(notVar.ReplaceAllString(strings.ToUpper(name), "_"), "_")
	if name != "" && name != "TOKEN" && (name[0] < '0' || name[0] > '9') {
		return name
	}
	for _, f := range forms {
		if strings.HasPrefix(value, f.prefix) {
			return f.name
		}
	}
	return "SECRET"
}

// setVariable gives a variable of run.env its value.
func (f *file) setVariable(name, value string) {
	env, _ := f.out["run.env"].(map[string]string)
	if env == nil {
		env = map[string]string{}
	}
	env[name], f.out["run.env"] = value, env
}

// refer puts a reference to a secret into run.env and says so. what is what of the
// file it was, reads whether the command has lost it.
func (f *file) refer(line int, name, what string, lost bool) {
	f.secret = append(f.secret, name)
	f.setVariable(name, "${env:"+name+"}")
	why := `its value looks like a secret: run.env has ` + name + `: "${env:` + name + `}" instead; export ` + name
	if lost {
		why += ", and have the script read it from there"
	}
	f.note(line, what, why)
}

// assign takes an assignment in front of a command, or of an export.
func (f *file) assign(word string, line int) {
	name, value, _ := strings.Cut(word, "=")
	if masked(word) != word {
		f.refer(line, name, name+"="+hidden, false)
		return
	}
	f.setVariable(name, value)
}

// exports takes a line that only sets variables.
func (f *file) exports(text string, line int) bool {
	words, err := engine.Split(text)
	if err != nil || len(words) < 2 || words[0] != "export" || strings.ContainsAny(text, "|;&<>`") || strings.Contains(text, "$") {
		return false
	}
	for _, w := range words[1:] {
		if !assignment.MatchString(w) {
			return false
		}
	}
	for _, w := range words[1:] {
		f.assign(w, line)
	}
	return true
}

// inFront are the variables in front of a command.
var inFront = pattern.New(`^(?:env\s+)?((?:[A-Za-z_][A-Za-z0-9_]*=(?:"[^"$\x60\\]*"|'[^']*'|[^\s"'$\x60|;&<>\\])*\s+)+)([^\s-].*)$`)

// behindVariables takes the variables in front of a command into run.env.
func (f *file) behindVariables(text string, line int) string {
	m := inFront.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	words, err := engine.Split(m[1])
	if err != nil {
		return text
	}
	for _, w := range words {
		f.assign(w, line)
	}
	return m[2]
}

// openCommand is a command without the secrets in it; false: a shell has to read it.
func (f *file) openCommand(text string, line int) (string, bool) {
	words, err := engine.Split(text)
	if err != nil || strings.ContainsAny(text, "|;&<>`") || strings.Contains(text, "$(") {
		return text, false
	}
	kept := f.withoutSecrets(words, line)
	if len(kept) == len(words) {
		return text, true
	}
	return engine.Join(kept), true
}

// withoutSecrets are the words of a command but for those that are secrets, with the
// flags in front of them.
func (f *file) withoutSecrets(words []string, line int) (kept []string) {
	for _, w := range words {
		flag := ""
		if n := len(kept); n > 0 && strings.HasPrefix(kept[n-1], "-") && !strings.Contains(kept[n-1], "=") {
			flag = kept[n-1]
		}
		name, value, pair := strings.Cut(w, "=")
		switch {
		case flag != "" && !strings.HasPrefix(w, "-") && !pair && isSecret(flag, w):
			kept = kept[:len(kept)-1]
			f.refer(line, variableFor(flag, w), flag+" "+hidden, true)
		case pair && isSecret(name, value):
			if flag == "-e" || flag == "--env" {
				kept = kept[:len(kept)-1]
			}
			f.refer(line, variableFor(name, value), name+"="+hidden, flag != "-e" && flag != "--env")
		case masked(w) != w:
			f.refer(line, variableFor("", w), w, true)
		default:
			kept = append(kept, w)
		}
	}
	return kept
}

// openLines are the lines of a script that hold no secret. One that sets variables
// has them in run.env, where the command finds them.
func (f *file) openLines(all []string, line int) (open []string) {
	for _, text := range all {
		switch {
		case masked(text) == text:
			open = append(open, text)
		case !f.exports(text, line):
			f.note(line, text, "it holds a secret: write it to a script that reads it from a file of yours, and run that")
		}
	}
	return open
}

// clean leaves out of the profile what else holds a secret, wherever it came from.
func (f *file) clean() {
	for _, key := range slices.Sorted(maps.Keys(f.out)) {
		switch v := f.out[key].(type) {
		case string:
			if f.holdsSecret(key, v) {
				delete(f.out, key)
			}
		case []string:
			if f.out[key] = slices.DeleteFunc(v, func(s string) bool { return f.holdsSecret(key, s) }); len(f.out[key].([]string)) == 0 {
				delete(f.out, key)
			}
		case map[string]any:
			maps.DeleteFunc(v, func(name string, from any) bool {
				text, _ := from.(string)
				return f.holdsSecret(key+"."+name, text)
			})
			if len(v) == 0 {
				delete(f.out, key)
			}
		}
	}
}

func (f *file) holdsSecret(key, text string) bool {
	if masked(text) == text {
		return false
	}
	f.note(f.lines[text], key+": "+masked(text), "it holds a secret, and a profile holds none")
	return true
}
