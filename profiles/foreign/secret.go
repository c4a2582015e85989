package foreign

import (
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/profiles"
)

// What is said of a file goes to terminals and logs. The secrets in it do not.

// hidden stands where a secret was.
const hidden = "•••"

var (
	// What comes before a value: a variable or a key; a flag.
	assigned = pattern.New(`([\w.-]+)["']?\s*[=:]\s*`)
	flagged  = pattern.New(`(?:^|\s)(--?[A-Za-z][\w-]*)\s+`)
	// A value as a shell, YAML or JSON has it.
	value = pattern.New(`^(?:"[^"]*"?|'[^']*'?|[^\s"'])+`)
	// The password in an address.
	userinfo = pattern.New(`(://[^/\s:@]*:)[^/\s]+@`)
	word     = pattern.New(`\S+`)
	// What names where the value is, and has none.
	reference = pattern.New(`^\$(?:[A-Z_][A-Z0-9_]*|\{(?:(?:local|container)?[eE]nv:)?\w+\})$`)
	// What a login is given.
	login = pattern.New(`(\blogin\s+(?:-\S+\s+)*)([0-9A-Za-z_-]{32,})`)
	// Words of a vocabulary are called tokens, and so are places in it.
	vocabulary = pattern.New(`(?i)(?:^|_)(?:pad|eos|bos|unk|sep|cls|mask|stop|image|sort|group|label|text)_(?:token|key)$`)
	// One variable, and all behind the sign is its value.
	variable = pattern.New(`^[\w.-]+=`)
)

// isSecret reports whether a value seems to be a secret, by the name that it has.
func isSecret(name, text string) bool {
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	name = strings.NewReplacer("-", "_", ".", "_").Replace(strings.TrimLeft(name, "-"))
	if vocabulary.MatchString(name) {
		name = ""
	}
	return !reference.MatchString(text) && profiles.LooksSecret(name, text)
}

// masked hides the secrets in a text.
func masked(text string) string {
	if name, rest, _ := strings.Cut(text, "="); variable.MatchString(text) && isSecret(name, rest) {
		return name + "=" + hidden
	}
	text = maskedBehind(assigned, maskedBehind(flagged, text))
	text = login.ReplaceAllString(text, "${1}"+hidden)
	text = userinfo.ReplaceAllString(text, "${1}"+hidden+"@")
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if profiles.LooksSecret("", w) {
			return hidden
		}
		return w
	})
}

// maskedBehind hides the secrets among the values that come behind a name.
func maskedBehind(named *pattern.Pattern, text string) string {
	var out strings.Builder
	for at := named.FindStringSubmatchIndex(text); at != nil; at = named.FindStringSubmatchIndex(text) {
		name, rest := text[at[2]:at[3]], text[at[1]:]
		out.WriteString(text[:at[1]])
		if is := value.FindString(rest); isSecret(name, is) {
			out.WriteString(hidden)
			rest = rest[len(is):]
		}
		text = rest
	}
	return out.String() + text
}

// maskedOf hides what of the value of a key is secret.
func maskedOf(key, text string) string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	// The keys that are known name keys, and hold none.
	if isSecret(last, text) && (reasons[last] == "" || isSecret("", text)) {
		return hidden
	}
	text, _, _ = strings.Cut(text, "\n")
	return masked(text)
}
