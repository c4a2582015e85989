package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/metrics/loghead"
	"github.com/dlwb/dlwb/metrics/recipe"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// What one tool prints oddly is data: see package recipe.

// learnt is what readers know of recipes.
var learnt struct {
	sync.Mutex
	book *recipe.Book
	own  func() []recipe.Recipe
}

// Learn adds a user's own recipes, which go before those that are built in. They
// are asked for when the first reader is made: most commands read nothing.
// Readers that were made before do not know them.
func Learn(own func() []recipe.Recipe) {
	learnt.Lock()
	defer learnt.Unlock()
	learnt.own, learnt.book = own, nil
}

// book is what is known of recipes.
func book() *recipe.Book {
	learnt.Lock()
	defer learnt.Unlock()
	if learnt.book == nil {
		var own []recipe.Recipe
		if learnt.own != nil {
			own = learnt.own()
		}
		learnt.book = recipe.NewBook(append(slices.Clip(own), recipe.Built()...))
		for _, r := range learnt.book.Recipes {
			addWords(r)
		}
	}
	return learnt.book
}

// kinds are what recipes call the kinds of words.
var kinds = map[string]kind{"score": score, "weak": weak, "measure": measure, "never": never}

// addWords adds the words and names of a recipe to those that are known.
func addWords(r recipe.Recipe) {
	for k, list := range r.Words {
		for w := range strings.FieldsSeq(list) {
			if sense.Words[w] == unknown {
				sense.Words[w] = kinds[k]
			}
		}
	}
	maps.Copy(aliases, r.Names)
	maps.Copy(fileAliases, r.Columns)
}

// odd asks the recipes about the message of a line, behind its head. It returns
// the line in plain words, and whether it is passed over.
func (r *Reader) odd(line string, hash uint64) (plain string, passed bool) {
	slot := &r.usual[hash&(1<<10-1)]
	if *slot == hash {
		return line, false
	}
	from := loghead.Of(line)
	rule := r.book.Rule(line[from:])
	if rule == nil {
		*slot = hash
		return line, false
	}
	switch {
	case rule.Block != "":
		r.beginBlock(rule.Block, line[from:])
		return line, true
	case rule.Skip == recipe.SkipNext:
		r.best, r.counted = r.counted, false
		return line, true
	case rule.Skip != "":
		return line, true
	}
	r.rule = "recipe of " + rule.Of
	return rule.Plain(line[from:]), false
}

// passedOver reports whether the line before said that this one repeats what was
// said.
func (r *Reader) passedOver() bool {
	best := r.best
	r.best = false
	return best
}

// skipped knows lines that are no output of the training: what the interpreter
// warns of, and source code.
func (r *Reader) skipped(line string) bool {
	if n := len(line); n > 8 && line[n-1] == ':' && strings.Contains(strings.ToLower(line), "best ") { // "best iteration is:"
		r.best, r.counted = r.counted, false
		return true
	}
	return strings.HasPrefix(line, "Averaged stats:") || strings.HasPrefix(line, "slurmstepd") || strings.HasPrefix(line, "srun: ") || strings.Contains(line, "Warning: ") && strings.Contains(line, ".py:") || remark.IsBeginning(line, !r.placed()) || remark.IsStart(line) || remark.IsSettings(line) || remark.IsCall(line)
}
