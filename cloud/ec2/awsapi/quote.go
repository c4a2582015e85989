package awsapi

import (
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// maxQuote is how much of a text of AWS's is shown.
const maxQuote = 400

// secrets are what must not be shown even when AWS itself repeats it: refusals
// of a signature quote the request's headers.
var secrets = []*pattern.Pattern{
	pattern.New(`(?is)-----BEGIN.*?(-----END[^-]*-----|$)`),
	pattern.New(`(?i)(authorization|x-amz-security-token|aws_secret_access_key|aws_session_token|secretaccesskey|sessiontoken|password)["']?\s*[:=].*`),
	pattern.New(`(?i)(signature|credential)=\S+`),
	pattern.New(`\b(AKIA|ASIA)[A-Z0-9]{8,}\b`),
	pattern.New(`//[^@\s]+@`),
	pattern.New(`[A-Za-z0-9+/=_-]{100,}`), // keys, tokens and user-data
}

// quote makes AWS's words fit into a sentence: one line, not too long, no
// secrets.
func quote(s string) string {
	for _, re := range secrets {
		s = re.ReplaceAllString(s, "[…]")
	}
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxQuote {
		s = string(r[:maxQuote]) + "…"
	}
	return strings.TrimSuffix(s, ".")
}
