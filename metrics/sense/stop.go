package sense

import "strings"

// ending are short words that a sentence ends with: "Done. Best loss: 0.1".
var ending = Set(`done end ok yes no exit stop over`)

// Shortened reports whether a word before a full stop may be cut short, so that
// the sentence goes on, "Val. Loss", as it does not behind a unit: "1200 SPS. Loss".
func Shortened(word string, unit bool) bool {
	word = word[strings.LastIndexByte(word, '-')+1:] // Mel-Spec. Error
	return len(word) < 6 && !unit && !ending[strings.TrimSuffix(word, ".")] || Splits[strings.TrimSuffix(word, ".")] != "" || Averages[strings.TrimSuffix(word, ".")]
}

// CountsBefore reports whether the number of a word counts, and no name begins with it: "Epoch 1-train loss", but not "1-shot acc".
func CountsBefore(word string) bool {
	_, name, _ := strings.Cut(strings.ToLower(word), "-")
	first, _, _ := strings.Cut(name, "_")
	return Splits[first] != "" || Of(name) >= Weak
}
