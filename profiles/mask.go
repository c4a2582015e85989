package profiles

import "strings"

// MaskSecrets hides, in a text of any kind, what has the form of a secret:
// access keys, tokens, private keys. References to variables stay.
func MaskSecrets(text string) string {
	if tokenIn(text) == "" {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	inKey := false
	for i, line := range lines {
		switch {
		case strings.Contains(line, "-----BEGIN") && strings.Contains(line, "PRIVATE KEY"):
			inKey = true
			lines[i] = maskTokens(line)
		case inKey && strings.Contains(line, "-----END"):
			inKey = false
		case inKey:
			lines[i] = hidden + "\n"
		default:
			lines[i] = maskTokens(line)
		}
	}
	return strings.Join(lines, "")
}
