package ui

import (
	"sort"
	"strings"
)

// base is a series' name without its split: val/loss → loss.
func base(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[i+1:]
	}
	return name
}

// chartGroups puts the curves of one quantity together: loss with val/loss.
// Groups with a loss come first and the learning rate, which is no news, last;
// the others keep the order they appeared in.
func (s *state) chartGroups() [][]*curve {
	if len(s.curves) == s.grouped { // asked for often, and changes only with a new name
		return s.groups
	}
	s.groups, s.grouped = groupsOf(s.curves), len(s.curves)
	return s.groups
}

func groupsOf(curves []*curve) [][]*curve {
	var groups [][]*curve
	at := map[string]int{}
	for _, c := range curves {
		b := base(c.name)
		i, ok := at[b]
		if !ok {
			i = len(groups)
			at[b] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	sort.SliceStable(groups, func(i, j int) bool {
		return chartRank(groups[i][0].name) < chartRank(groups[j][0].name)
	})
	return groups
}

func chartRank(name string) int {
	switch b := strings.ToLower(base(name)); {
	case isLoss(name):
		return 0
	case b == "lr" || strings.Contains(b, "learning_rate"):
		return 2
	}
	return 1
}

func isLoss(name string) bool { return strings.Contains(strings.ToLower(base(name)), "loss") }

// goal is which way a value gets better.
type goal int

const (
	neither goal = iota
	lower
	higher
)

// goals are the words in names that say which way is better. Those that say
// nothing, such as lr and tokens/s, have no best value.
var goals = goalWords(
	`loss losses ppl perplexity err error wer cer mse mae rmse rmsle nll bpb bpc bpd fid xent logloss merror mlogloss lpips cost`,
	`acc accuracy auc auroc f1 bleu rouge chrf map ap mar iou miou dice psnr ssim mcc r2 score reward rew return recall precision
		prec top ndcg success`)

func goalWords(low, high string) map[string]goal {
	words := map[string]goal{}
	for _, w := range strings.Fields(low) {
		words[w] = lower
	}
	for _, w := range strings.Fields(high) {
		words[w] = higher
	}
	return words
}

// better says by the words of a name which way its values get better; the last
// word that says something counts: loss_acc is an accuracy.
func better(name string) goal {
	words := strings.FieldsFunc(strings.ToLower(base(name)), func(r rune) bool {
		return r == '_' || r == '-' || r == '.' || r == ' ' || r == '@' || r == '(' || r == ')'
	})
	for i := len(words) - 1; i >= 0; i-- {
		w := words[i]
		if g := goals[w]; g != neither {
			return g
		}
		if g := goals[strings.TrimRight(w, "0123456789")]; g != neither {
			return g
		}
	}
	return neither
}

func (g goal) short() string { return [...]string{"", "min", "max"}[g] }

// word is how the best value is called.
func (g goal) word() string { return [...]string{"", "lowest", "highest"}[g] }
