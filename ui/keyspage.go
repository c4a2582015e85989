package ui

import (
	"fmt"
	"strings"
)

// keysHead is what docs/keys.md says before its tables.
const keysHead = `# Keys

Made from the key table of the screen by ` + "`make generate`" + `; a test fails when it is stale.

Lower-case keys look, capital keys act on the cluster. ` + "`?`" + ` shows the keys of where you are, ` + "`:`" + ` finds
everything by name, also what has no key. What can't be done now says why.

Where a line is typed (a filter, a search, a field, the palette), the keys are those of a shell: ` + "`ctrl+a` `ctrl+e`" + `
and ` + "`home` `end`" + ` go to its ends, ` + "`alt+b` `alt+f`" + ` by words, ` + "`ctrl+w` `alt+d`" + ` remove a word, ` + "`ctrl+u` `ctrl+k`" + ` what is
before and behind the cursor. ` + "`tab`" + ` takes what is suggested, ` + "`up` `down`" + ` choose among suggestions. Pasted text goes
into the line as one line, and never presses keys.
`

// KeysPage is docs/keys.md: the key table, what holds on most screens first, then
// what each screen has for itself.
func KeysPage() string {
	var b strings.Builder
	b.WriteString(keysHead)
	wide := func(of, at place) bool { return at&of != 0 && bits(of&^at) <= 2 }
	keySection(&b, "everywhere", func(at place) bool { return wide(everywhere, at) })
	keySection(&b, "cluster and run screens", func(at place) bool { return !wide(everywhere, at) && wide(inSession, at) })
	for _, sc := range screens() {
		keySection(&b, sc.name, func(at place) bool { return at&sc.at != 0 && !wide(everywhere, at) && !wide(inSession, at) })
	}
	return b.String()
}

// keySection is a heading with the commands that work there; nothing where there
// are none.
func keySection(b *strings.Builder, name string, has func(place) bool) {
	head := "\n## " + strings.ToUpper(name[:1]) + name[1:] + "\n\n| key | does |\n|---|---|\n"
	for _, c := range commands() {
		keys := c.bind.Keys()
		if len(keys) == 0 || !has(c.at) {
			continue
		}
		but := ""
		if where := whereText(c.at); strings.Contains(where, " but ") {
			but = " (" + where[strings.Index(where, "but "):] + ")"
		}
		fmt.Fprintf(b, "%s| `%s` | %s%s |\n", head, strings.Join(keys, "` `"), c.help, but)
		head = ""
	}
}

// whereText names the screens of a mask.
func whereText(at place) string {
	switch at {
	case everywhere:
		return "everywhere"
	case inSession:
		return "cluster and run screens"
	}
	if missing := everywhere &^ at; bits(missing) <= 2 {
		return "everywhere but " + placeList(missing)
	}
	if missing := inSession &^ at; at&^inSession == 0 && bits(missing) <= 2 {
		return "cluster and run screens but " + placeList(missing)
	}
	return placeList(at)
}

func placeList(at place) string {
	var names []string
	for _, p := range screens() {
		if p.at&at != 0 {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}

func bits(p place) (n int) {
	for ; p != 0; p &= p - 1 {
		n++
	}
	return n
}
