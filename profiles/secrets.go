package profiles

import (
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// tokens are forms that only secrets have, with what each is.
var tokens = []struct {
	form *pattern.Pattern
	name string
}{
	{pattern.New(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`), "an AWS access key id"},
	{pattern.New(`\b(gh[pousr]_[0-9A-Za-z]{20,}|github_pat_[0-9A-Za-z_]{20,})`), "a GitHub token"},
	{pattern.New(`\bhf_[0-9A-Za-z]{16,}`), "a Hugging Face token"},
	{pattern.New(`\bsk-[0-9A-Za-z_-]{20,}`), "an API key"},
	{pattern.New(`\bxox[abprs]-[0-9A-Za-z-]{10,}`), "a Slack token"},
	{pattern.New(`\bAIza[0-9A-Za-z_-]{30,}`), "a Google API key"},
	{pattern.New(`-----BEGIN [A-Z ]*PRIVATE KEY`), "a private key"},
}

// tokenIn says what secret a text holds; "" when it holds none.
func tokenIn(s string) string {
	if len(s) < 16 { // shorter than any of them
		return ""
	}
	for _, t := range tokens {
		if t.form.MatchString(s) {
			return t.name
		}
	}
	return ""
}

// hidden stands where a secret was.
const hidden = "•••"

// signed is what lets the holder of a signed address in. Such an address may stand in
// a profile, since it is good for hours only, and is never repeated.
var signed = pattern.New(`(?i)([?&](?:x-amz-signature|x-amz-security-token|x-goog-signature|signature|sig)=)[^&\s"'#]+`)

func maskTokens(s string) string {
	s = signed.ReplaceAllString(s, "${1}"+hidden)
	if tokenIn(s) == "" {
		return s
	}
	for _, t := range tokens {
		s = t.form.ReplaceAllString(s, hidden)
	}
	return s
}

var (
	secretName = pattern.New(`(?i)(^|_)(API_?)?(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$`)
	plainValue = pattern.New(`^(?i:true|false|yes|no|on|off|none|[0-9]{1,5})?$`)
)

var namedValue = pattern.New(`([A-Za-z_][A-Za-z0-9_]*)(["']?\s*:\s*)([^\s,{}\[\]][^,}]*)`)

// maskNamed hides the values of a line that by their names are secrets. It is
// for lines that are not YAML, of which nothing better is known.
func maskNamed(line string) string {
	return namedValue.ReplaceAllStringFunc(line, func(pair string) string {
		m := namedValue.FindStringSubmatch(pair)
		if strings.Contains(m[3], "${env:") || secretLiteral(m[1], strings.Trim(m[3], `"' `)) == "" {
			return pair
		}
		return m[1] + m[2] + hidden
	})
}

// LooksSecret reports whether a variable seems to hold a secret in the clear: a
// profile with it is refused.
func LooksSecret(name, value string) bool { return secretLiteral(name, value) != "" }

// secretLiteral says why the value of a variable must be a secret; "" when it
// need not be one. Switches and small numbers are no secrets, whatever their
// name.
func secretLiteral(name, value string) string {
	if t := tokenIn(value); t != "" {
		return "this looks like " + t
	}
	if secretName.MatchString(name) && !plainValue.MatchString(strings.TrimSpace(value)) {
		return "a name like this holds a secret"
	}
	return ""
}
