package remark

import "strings"

// fewSettings is how many names an object has at least that is taken for one of settings.
const fewSettings = 5

// IsSettings reports whether a line shows an object of settings as Python prints it: in the
// brackets right behind a name with a capital stand names with values, some of which are a
// text, None, True or False: "Adam(lr=0.1, name='a', fused=None, …)". An object of numbers
// alone may be what was measured: "Result(loss=0.5, acc=0.9)". argparse's Namespace is
// always one of settings.
func IsSettings(line string) bool {
	for from := 0; ; {
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
		name, _, ok := strings.Cut(line[from:], "=")
		if !ok || name == "" || strings.ContainsAny(name, " ()[]{}:,'\"") {
			continue
		}
		if strings.HasPrefix(line[start:], "Namespace(") {
			return true
		}
		said := false
		for _, value := range [...]string{"='", `="`, "=None", "=True", "=False"} {
			said = said || strings.Contains(line[from:], value)
		}
		if said && strings.Count(line[from:], "=") >= fewSettings {
			return true
		}
	}
}
