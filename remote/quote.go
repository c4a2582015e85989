package remote

import "strings"

// Quote makes words into a line that a POSIX shell splits into the same words
// again. What needs no quotes gets none.
func Quote(args ...string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = quoteWord(arg)
	}
	return strings.Join(words, " ")
}

func quoteWord(s string) string {
	if s != "" && s[0] != '=' && strings.Trim(s, plainChars) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// plainChars mean nothing to any shell; "=" does in front (zsh).
const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
