package sense

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Fillers are words of a phrase that say nothing about its name.
var Fillers = Set(`set info the mini-batch current data subset running dataset function's`)

// fewestProse are the words of a line that is a sentence and no heading.
const fewestProse = 4

// SplitOf is the data that a line of a few words is about: "[1] Validation", "Epoch 3, dev".
func SplitOf(line string) (split string) {
	words := strings.FieldsFunc(line, func(c rune) bool { return c < 0x80 && !lexis.IsLetter(byte(c)) })
	if len(words) >= fewestProse {
		return ""
	}
	for _, w := range words {
		if of := Splits[strings.ToLower(w)]; of != "" {
			split = of
		}
	}
	return split
}

// WithoutSet gives words with the data alone of those that are called by their set: "Validation-Set".
func WithoutSet(words []string) []string {
	for i, w := range words {
		if data, set := strings.CutSuffix(strings.ToLower(w), "-set"); set && Splits[data] != "" {
			words[i] = data
		}
	}
	return words
}

// AreOfData reports whether words say of which set something is and no more, "over val set"; short says that its name is enough.
func AreOfData(words []string, short bool) (said bool) {
	for _, w := range words {
		w = strings.ToLower(w)
		if Splits[w] == "" && !Fillers[w] {
			return false
		}
		said = said || Splits[w] != ""
	}
	return said && (len(words) > 1 || short)
}

// Vouches reports whether a name alone says that what a row has is a score. An everyday word, such as map, does where
// it is the name of the value or stands beside a split, but not where it is that of an object that holds the value.
func Vouches(key string) bool {
	kind, last := Of(key), key[strings.LastIndexByte(key, '/')+1:]
	return kind == Score || kind == Weak && (Splits[last] != "" || Of(last) >= Weak)
}
