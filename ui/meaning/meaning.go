// Package meaning tells from the names of series what they are of: which are of one
// quantity and belong into one chart, and which are of data that is not trained on.
package meaning

import (
	"strings"
	"unicode"

	"github.com/dlwb/dlwb/metrics/goal"
)

// splits are words that say of which data a value is, or over what it was taken,
// and nothing of what it is. Those that are true are of data that is not trained on.
var splits = map[string]bool{
	"train": false, "training": false, "trn": false, "epoch": false, "avg": false,
	"val": true, "valid": true, "validation": true, "dev": true, "eval": true, "evaluation": true,
	"test": true, "testing": true, "heldout": true, "holdout": true,
}

// taken are words that say over what a score was taken, and how; of other
// quantities they may be all that there is: step time, batch size.
var taken = map[string]bool{
	"step": true, "batch": true, "iter": true, "iteration": true, "running": true, "mean": true, "average": true,
	"ema": true, "smoothed": true, "total": true, "metric": true, "metrics": true, "dataloader": true, "idx": true,
}

// others are words for which there is another that means the same.
var others = map[string]string{"acc": "accuracy", "ppl": "perplexity", "prec": "precision", "losses": "loss"}

// word is a part of a name, and what stands before it.
type word struct {
	text   string
	behind rune
}

// wordsOf are the words of a name, in lower case: Loss/trainStep has three.
func wordsOf(name string) []word {
	var out []word
	var b []rune
	behind, was := rune(0), rune(0)
	lower := 0 // letters in lower case before this one
	end := func(sep rune) {
		if len(b) > 0 {
			out = append(out, word{string(b), behind})
		}
		b, behind, lower = b[:0], sep, 0
	}
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '%':
			end(r)
		case unicode.IsUpper(r) && unicode.IsLower(was) && lower >= 3:
			end('_')
		}
		if unicode.IsLower(r) {
			lower++
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '%' {
			b = append(b, unicode.ToLower(r))
		}
		was = r
	}
	end(0)
	return out
}

// Of is what a series is of, whatever the data: loss for Loss/train, val_loss and
// eval/loss. A name of nothing else is itself.
func Of(name string) string {
	words, _ := kept(name)
	if len(words) == 0 {
		return name
	}
	return strings.Join(words, " ")
}

// kept are the words of a name that say what it is of; split reports whether
// others say of which data.
func kept(name string) (words []string, split bool) {
	var found []word
	for _, w := range wordsOf(name) {
		if o := others[w.text]; o != "" {
			w.text = o
		}
		if _, is := splits[w.text]; is {
			split = split || w.text != "epoch" && w.text != "avg"
			continue
		}
		found = append(found, w)
	}
	for _, w := range found {
		words = append(words, w.text)
	}
	if !isScore(words) {
		return words, split
	}
	var core []string
	for _, w := range found {
		if !taken[w.text] && !(isNumber(w.text) && (w.behind == '/' || w.behind == '_' || w.behind == '.')) {
			core = append(core, w.text)
		}
	}
	if !isScore(core) {
		return words, split
	}
	return core, split
}

func isScore(words []string) bool {
	return goal.Of(strings.Join(words, "_")) != goal.None
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// HeldOut is the word of a name that says that it is of data which is not trained
// on; empty where none does.
func HeldOut(name string) string {
	for _, w := range wordsOf(name) {
		if splits[w.text] {
			return w.text
		}
	}
	return ""
}

// IsLoss reports whether a series is of a loss.
func IsLoss(name string) bool { return strings.Contains(Of(name), "loss") }

// Rank is where a series stands among the charts: those of a loss come first, the
// learning rate, which is no news, last.
func Rank(name string) int {
	switch b := Of(name); {
	case strings.Contains(b, "loss"):
		return 0
	case b == "lr" || strings.HasPrefix(b, "lr ") || strings.Contains(b, "learning rate"):
		return 2
	}
	return 1
}
