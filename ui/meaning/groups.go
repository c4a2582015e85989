package meaning

import (
	"sort"
	"strings"
)

// mostTogether bounds the series of one chart: each still has a number of one digit.
const mostTogether = 9

// Groups says which series belong into one chart, by their places among the names:
// those of one quantity, also where each is of another data set (eval_mnli_accuracy
// and eval_qqp_accuracy, val/0/loss and val/1/loss). What is of parts of a model or
// of a loss (box_loss and cls_loss) stays apart. Charts of a loss come first and the
// learning rate last; the others keep the order that they appeared in.
func Groups(names []string) [][]int {
	all := readNames(names)
	sets := dataSets(all)
	var groups [][]int
	at := map[string]int{}
	for i, n := range all {
		key := n.of
		if n.head != "" && (n.more == "" || sets[n.more] || n.scores() && sets["\x00"+n.head]) {
			key = n.head
		}
		g, ok := at[key]
		if !ok || len(groups[g]) == mostTogether {
			g = len(groups)
			at[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	sort.SliceStable(groups, func(i, j int) bool { return Rank(names[groups[i][0]]) < Rank(names[groups[j][0]]) })
	return groups
}

// reading is a name, taken apart.
type reading struct {
	of    string
	head  string // the score in it: accuracy; empty where there is none
	more  string // what else there is: mnli
	split bool   // it says of which data
}

// scores reports whether a name is of a score of data, not of a loss: losses are
// summed of parts, scores are not.
func (r reading) scores() bool { return r.split && !strings.Contains(r.head, "loss") }

func readNames(names []string) []reading {
	all := make([]reading, len(names))
	for i, name := range names {
		words, split := kept(name)
		r := reading{of: strings.Join(words, " "), split: split}
		if len(words) == 0 {
			r.of = name
		}
		for k := len(words) - 1; k >= 0; k-- {
			if isScore(words[k : k+1]) {
				r.head = words[k]
				r.more = strings.Join(append(append([]string{}, words[:k]...), words[k+1:]...), " ")
				break
			}
		}
		all[i] = r
	}
	return all
}

// dataSets are the words of names that tell data sets or classes apart: those that
// stand beside several scores of some data, and, as "\x00" and the score, the scores
// beside which several words stand.
func dataSets(all []reading) map[string]bool {
	first, found := map[string]string{}, map[string]bool{}
	note := func(key, beside string) {
		if was, ok := first[key]; !ok {
			first[key] = beside
		} else if was != beside {
			found[key] = true
		}
	}
	for _, r := range all {
		if r.split && r.head != "" && r.more != "" {
			note(r.more, r.head)
			note("\x00"+r.head, r.more)
		}
	}
	return found
}
