package metrics

import "strings"

// Goal is which way the values of a quantity get better.
type Goal string

// The goals. A learning rate has none, and neither has a speed: the best of its
// values is that of its luckiest moment.
const (
	NoGoal Goal = ""
	Least  Goal = "min"
	Most   Goal = "max"
)

// goals are the words in names that say which way is better.
var goals = goalWords(
	`loss losses ppl perplexity err error wer cer mer ter mse mae mape rmse rmsle nll nlpd bpb bpc bpd fid fvd kid xent
		logloss merror mlogloss lpips cost eer epe hausdorff`,
	`acc accuracy top prec precision recall sensitivity specificity auc auroc auprc f1 fscore bleu sacrebleu rouge chrf
		meteor cider spice bertscore map map50 ap ar iou miou dice pq psnr ssim mcc kappa r2 corr correlation pearson
		spearman score reward rew return success win hit mrr ndcg em`)

func goalWords(least, most string) map[string]Goal {
	words := map[string]Goal{}
	for _, w := range strings.Fields(least) {
		words[w] = Least
	}
	for _, w := range strings.Fields(most) {
		words[w] = Most
	}
	return words
}

// GoalOf says by the words of a series' name which way its values get better;
// the last word that says something counts: loss_acc is an accuracy.
func GoalOf(name string) Goal {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "/s") || strings.Contains(name, "per_sec") {
		return NoGoal
	}
	words := strings.FieldsFunc(name[strings.LastIndexByte(name, '/')+1:], func(r rune) bool {
		return strings.ContainsRune("_-. @()", r)
	})
	for i := len(words) - 1; i >= 0; i-- {
		for _, w := range []string{words[i], strings.TrimRight(words[i], "0123456789")} {
			if g := goals[w]; g != NoGoal {
				return g
			}
		}
	}
	return NoGoal
}

// Better reports whether a value is better than another one.
func (g Goal) Better(a, b float64) bool {
	switch g {
	case Least:
		return a < b
	case Most:
		return a > b
	}
	return false
}
