package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// fewSettings is how many names an object has at least that is taken for one of settings;
// mostObjects bounds how many brackets of a line are looked at.
const (
	fewSettings = 5
	mostObjects = 16
)

// IsSettings reports whether a line ends with an object of settings as Python prints it: in the
// brackets right behind a name with a capital stand names with values, some of which are a
// text, None, True or False: "Adam(lr=0.1, name='a', fused=None, …)". An object of numbers
// alone may be what was measured: "Result(loss=0.5, acc=0.9)". argparse's Namespace is
// always one of settings.
func IsSettings(line string) bool {
	from := 0
	for range mostObjects {
		i := strings.IndexByte(line[from:], '(')
		if i < 0 {
			return false
		}
		i += from
		from = i + 1
		start := strings.LastIndexAny(line[:i], " \t=:,([") + 1
		if start == i || line[start] < 'A' || line[start] > 'Z' {
			continue
		}
		name, _, ok := strings.Cut(line[from:min(len(line), from+longest)], "=")
		if !ok || name == "" || strings.ContainsAny(name, " ()[]{}:,'\"") {
			continue
		}
		if !reachesEnd(line[from:]) {
			continue
		}
		said := strings.HasPrefix(line[start:], "Namespace(")
		for _, value := range [...]string{"='", `="`, "=None", "=True", "=False"} {
			said = said || strings.Contains(line[from:], value) && strings.Count(line[from:], "=") >= fewSettings
		}
		if said {
			return true
		}
	}
	return false
}

// IsCall reports whether a line is one of source code in which a function is given a dictionary that stands
// there: "wandb.log({'loss': 0.5}, step=1)". Its name has a dot and begins small, as that of no class does, of
// which an object may be printed: "OrderedDict({'loss': 0.5})".
func IsCall(line string) bool {
	i := strings.Index(line, "({")
	start := lexis.SkipBlanks(line, 0)
	if i < start || strings.IndexByte("\"'}", line[min(i+2, len(line)-1)]) < 0 || !reachesEnd(line[i+1:]) {
		return false
	}
	for word := range strings.SplitSeq(line[start:i], ".") {
		if word == "" || word[0] < 'a' || word[0] > 'z' || !lexis.IsWord(strings.Trim(strings.ReplaceAll(word, "_", ""), "0123456789")) {
			return false
		}
	}
	return strings.IndexByte(line[start:i], '.') > 0
}

// reachesEnd reports whether a bracket that has opened before a text closes where the text
// ends, or not at all: lines are cut.
func reachesEnd(text string) bool {
	open := 1
	for i := range len(text) {
		switch text[i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return strings.Trim(text[i+1:], " )]}.,;'\"") == ""
			}
		}
	}
	return true
}
