package profiles

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// FileName is what a profile is called when nobody says otherwise.
const FileName = "dlwb.yaml"

// alwaysWritten are the keys that a written profile has, also with their
// defaults.
var alwaysWritten = []string{"name", "provider", "machines.count", "run.command"}

// Write gives a profile as YAML: what differs from the defaults and what people
// change first, each key with a comment. Values that came from references are
// written as references.
func Write(p *Profile) []byte {
	base := defaults()
	named := p.named()
	if named > 0 {
		base.Machines.Count = named
	}
	var b strings.Builder
	b.WriteString("# A profile of dlwb: one experiment. All keys: dlwb help profile\n")
	group := ""
	for _, f := range Fields {
		value := f.Type.format(f, f.ref(p))
		always := slices.Contains(alwaysWritten, f.Key) && (f.Key != "machines.count" || named == 0)
		if value == "" || !always && value == f.Type.format(f, f.ref(base)) {
			continue
		}
		if top, _, _ := strings.Cut(parent(f.Key), "."); top == "" || !strings.HasPrefix(group+".", top+".") {
			b.WriteString("\n")
		}
		openGroup(&b, group, parent(f.Key))
		group = parent(f.Key)
		indent := strings.Repeat("  ", depth(f.Key)-1)
		fmt.Fprintf(&b, "%s# %s\n%s%s: %s\n", indent, f.Doc, indent, last(f.Key), value)
	}
	return []byte(b.String())
}

// openGroup writes the keys that lead from one group to another.
func openGroup(b *strings.Builder, from, to string) {
	if to == "" || to == from || strings.HasPrefix(from, to+".") {
		return
	}
	if !strings.HasPrefix(to, from+".") || from == "" {
		openGroup(b, from, parent(to))
	}
	fmt.Fprintf(b, "%s%s:\n", strings.Repeat("  ", depth(to)-1), last(to))
}

func depth(key string) int { return strings.Count(key, ".") + 1 }

var (
	plainForm = pattern.New(`^[A-Za-z0-9_./][A-Za-z0-9_./=+@-]*( [A-Za-z0-9_./=+@-]+)*$`)
	otherForm = pattern.New(`^(?i:true|false|null|yes|no|on|off|y|n|~)$`)
)

// Quote gives a text as a YAML value that reads back as itself; nothing for
// none.
func Quote(text string) string {
	if text == "" {
		return ""
	}
	return yamlText(text)
}

// yamlText gives a text as a YAML value that reads back as itself, plain
// where that is safe.
func yamlText(s string) string {
	switch {
	case s == "":
		return `""`
	case plainForm.MatchString(s) && !otherForm.MatchString(s):
		return s
	case printable(s):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return strconv.QuoteToASCII(s)
}

// Equal reports whether two profiles say the same, wherever they were read from.
func Equal(a, b *Profile) bool {
	x, y := *a, *b
	x.Path, x.Source, x.marks, x.own = "", "", nil, nil
	y.Path, y.Source, y.marks, y.own = "", "", nil, nil
	return reflect.DeepEqual(x, y) && sameOptions(a, b)
}
