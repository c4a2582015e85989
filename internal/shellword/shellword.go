// Package shellword quotes words for POSIX shells.
package shellword

import "strings"

// plain are the characters that mean nothing to any shell; "=" does in front
// of a word (zsh).
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// Quote makes one word of any text, always in quotes: for scripts.
func Quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Join makes words into a line that a shell splits into the same words again.
// What needs no quotes gets none: for lines that people read.
func Join(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; !isPlain(w) {
			quoted[i] = Quote(w)
		}
	}
	return strings.Join(quoted, " ")
}

func isPlain(word string) bool {
	return word != "" && word[0] != '=' && strings.Trim(word, plain) == ""
}
