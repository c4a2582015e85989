// Package goal tells which way the values of a quantity get better.
package goal

import (
	"path"
	"strings"
)

// Goal is which way the values of a quantity get better.
type Goal string

// The goals. A learning rate has none, nor has a spread or a scale, and neither
// has a speed: the best of its values is that of its luckiest moment.
const (
	None  Goal = ""
	Least Goal = "min"
	Most  Goal = "max"
)

// aimless are words of names that no word for a quantity makes up for:
// std_reward, loss_scale.
var aimless = map[string]bool{"std": true, "stddev": true, "scale": true}

// goals are the words in names that say which way is better.
var goals = goalWords(
	`loss losses ppl perplexity err error wer cer mer ter mse mae mape rmse rmsle nll nlpd bpb bpc bpd fid fvd kid xent
		logloss merror mlogloss lpips cost eer epe hausdorff`,
	`acc accuracy top prec precision recall sensitivity specificity auc auroc auprc f1 fscore bleu sacrebleu rouge chrf
		meteor cider spice bertscore map map50 ap ar iou miou dice pq psnr ssim mcc kappa r2 corr correlation pearson
		spearman score reward rew return success win hit mrr ndcg em`)

// splits are the last parts of names that say no more than of which data a value is.
var splits = map[string]bool{"train": true, "training": true, "val": true, "valid": true, "validation": true, "validate": true, "validating": true, "dev": true,
	"eval": true, "evaluation": true, "evaluating": true, "test": true, "testing": true}

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

// Of says by the words of a series' name which way its values get better;
// the last word that says something counts: loss_acc is an accuracy. A tag such
// as Loss/train has the quantity before the split.
func Of(name string) Goal {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "/s") || strings.Contains(name, "per_sec") {
		return None
	}
	dir, base := path.Split(name)
	if dir != "" && splits[base] {
		base = path.Base(dir)
	}
	goal := None
	for w := range strings.FieldsFuncSeq(base, func(r rune) bool { return strings.ContainsRune("_-. @()", r) }) {
		stem := strings.TrimRight(w, "0123456789")
		switch {
		case aimless[w]:
			return None
		case goals[w] != None:
			goal = goals[w]
		case goals[stem] != None:
			goal = goals[stem]
		case strings.HasSuffix(w, "loss"):
			goal = Least
		}
	}
	return goal
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
