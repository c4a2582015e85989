// Package sense tells of the names that trainings print what kind of number stands beside them.
package sense

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Kind is what a name says about the number beside it.
type Kind uint8

const (
	Unknown Kind = iota // nothing: it has to prove itself by coming again
	Never               // no metric: a clock, a size, a setting, the name of a thing
	Measure             // a metric, but one that also stands in settings
	Weak                // a score, but also an everyday word
	Score               // a loss or a score: its line is about the training
)

// Words are parts of names, and what they say. The last part of a name counts,
// and of the others those that are scores (loss_cls, ep_rew_mean).
var Words = table(map[Kind]string{
	Score: `loss losses acc accuracy aacc macc mdice mfscore ppl perplexity auc auroc f1 bleu rouge wer cer mse mae rmse nll bpc bpb
		logloss elbo nelbo lpips maxf1 maxfm reward rew mcc pplx learn pearson spearman kappa episode_return episodic_return rmsle mlogloss merror ndcg minade minfde cross-entropy cross_entropy accu xent psnr ssim miou fid`,
	Weak: `error err fb1 map return returns score precision recall prec dice r2 l1 l2 iou ap ar improve cost`,
	Measure: `lr new_lr new_learning_rate learning_rate lrate learnrate gnorm grad_norm gradient_norm norm throughput mfu tps fps ips wps momentum weight_decay
		entropy kl kld temperature beta speed tflops tflop variance`,
	Never: `eta elapsed time times duration remaining runtime walltime hrs bt btime took took_s wall seconds sec secs minutes hour hours day days date year month
		rank world seed pid port version gpu gpus cuda xpu hpu tpu mps device devices size sizes id ids uid host line lineno
		worker workers thread threads proc procs node nodes core cores cpu cpus epoch epochs ep step steps iter iters
		iteration iterations batch batches update updates bs total count num sample samples example examples token tokens
		image images shape dim dims layer layers head heads param params parameters patience interval every freq limit
		budget byte bytes mem memory idx len length level code status exit signal warmup weight weights
		scale factor coef coefficient threshold fn type depth width height channels features vocab context block hidden
		offset attempt retry retries file files row rows part rev revision api process checkpoint
		ip address mac speedup num data window torch python numpy driver release pytorch tensorflow skipped batchsize maxdets py cc cpp go rs cu java jl sents sen episodes
		best bestiteration min max timestep timesteps allocated reserved utilization percentage percent progress instances
		nnzs bias flos timing ms kb mb gb tb kib mib gib tib pct seq blocks bins reader percentile percentiles quantile loss_scale lossscale grad_acc checkpoints scaler
		hysteresis nan shard shards serial uptime weights key value lineno tasks task trial trials seen done fetched target goal overflow labels label freedom dur copypaste improved oom free seqlen wandb dt timer counter nevals found passes complete completed mins tot highest lowest`,
})

// table turns lists of words by kind into kinds by word.
func table(lists map[Kind]string) map[string]Kind {
	t := map[string]Kind{}
	for k, list := range lists {
		for _, w := range strings.Fields(list) {
			t[w] = k
		}
	}
	return t
}

// counts are first parts of names that make them a number of things, unless
// they are the name of a score.
var counts = Set(`num nb n max min total nproc save number`)

// Parted are what a model or a job has several of, each with a loss of its own.
var Parted = Set(`image head layer block task node device rank worker`)

// notNow are first parts of names that make even a score something else than
// the present value.
var notNow = Set(`best target init initial final lowest highest minimum maximum initscore old new no prev previous time elapsed eta improving prerun`)

// Splits maps the ways to say which data a value is of to the one that is
// shown.
var Splits = map[string]string{
	"validation": "val", "valid": "val", "val": "val", "dev": "val", "evaluation": "eval", "eval": "eval", "evaluating": "eval",
	"treino": "train", "treinamento": "train", "entrenamiento": "train", "entraînement": "train", "validação": "val", "validación": "val", "teste": "test", "prueba": "test",
	"validate": "val", "crossval": "val", "vali": "val", "validating": "val", "heldout": "val", "held-out": "val", "test": "test", "testing": "test", "training": "train", "train": "train",
}

// Averages are words that say that a value is one.
var Averages = Set(`avg average mean averaged`)

// Of looks at the whole of a name, then at its parts.
func Of(base string) Kind {
	switch k, ok := Words[base]; {
	case ok:
		return k
	case lexis.IsRate(base):
		return Measure
	case strings.HasPrefix(base, "memory/") || strings.HasPrefix(base, "mem/") || strings.HasPrefix(base, "timing"):
		return Never
	case len(base) <= 1 || Splits[base] != "" || base == "top": // T: 5, s: 0.3, Train: 12
		return Never
	case strings.HasSuffix(base, "epoch_time"):
		return Measure
	}
	for _, first := range [...]string{"top-", "rank-"} { // top-1_acc; rank-5 of what is found again
		if of, ok := strings.CutPrefix(base, first); ok && of != "" && lexis.IsDigit(of[0]) {
			return max(Weak, classifyParts(strings.Split(of, "_")))
		}
	}
	for _, per := range [...]string{"_per_", "/token", "/word", "/char", "/dim"} { // loss_per_token, LL/token
		if of, _, ok := strings.Cut(base, per); ok && of != "" && Splits[of] == "" {
			base = of
		}
	}
	if at, _, ok := strings.Cut(base, "@"); ok { // acc@1, recall@thr=0.5
		base = at
	}
	if lexis.IsClock(base) {
		return Never
	}
	return classifyParts(strings.FieldsFunc(base, func(r rune) bool {
		return r == '_' || r == '/' || r == '-' || r == '.' || r == ' ' || r == '(' || r == ')'
	}))
}

func classifyParts(parts []string) Kind {
	if len(parts) == 0 {
		return Never
	}
	if n := len(parts) - 1; n > 0 && Averages[parts[n]] && Words[parts[n-1]] == Measure { // cur_lr_avg
		parts = parts[:n]
	}
	best := Unknown
	for i, p := range parts {
		k := Words[p]
		if k == Unknown {
			stem := strings.TrimRight(p, "0123456789")
			if k = Words[stem]; stem == "top" && stem != p {
				k = Score
			} else if k == Unknown && (strings.HasSuffix(p, "loss") || strings.HasSuffix(p, "acc")) { // vloss, binacc
				k = Score
			} else if k == Unknown && strings.HasSuffix(p, "len") { // rlen, seqlen
				k = Never
			}
		}
		if p == "since" && i > 0 && Words[parts[i-1]] == Never { // seconds_since_start
			return Never
		}
		last := i == len(parts)-1
		if last && best >= Weak && (p == "step" || p == "epoch" || p == "batch") { // Lightning's train_loss_step, loss_batch
			break
		}
		if last && (p == "index" || p == "idx") && i > 0 && Words[parts[i-1]] == Never { // batch_index, which is no rand_index
			return Never
		}
		if p == "best" && i > 0 && !last { // save_best_score
			return Never
		}
		if p == "cost" && last && i > 0 && Words[parts[i-1]] == Never { // reader_cost
			return Never
		}
		switch {
		case i == 0 && (notNow[p] || (p == "max" || p == "min") && len(parts) > 1 && !OfEpisodes(parts)):
			return Never
		case last && (p == "total" || Parted[strings.TrimRight(p, "0123456789")]) && best == Score: // loss/train/total, loss_head1
		case last && Lengths[p] && OfEpisodes(parts): // what an episode came to
		case last && k == Never && !((p == "max" || p == "min") && (OfEpisodes(parts) || i > 0 && norms[parts[i-1]])):
			return Never
		case k >= Weak:
			best = max(best, k)
		case k == Measure && (last || i == 0):
			best = max(best, k)
		}
	}
	if best < Weak && counts[parts[0]] && !(best == Measure && parts[0] == "total") && !((parts[0] == "max" || parts[0] == "min") && OfEpisodes(parts)) {
		return Never
	}
	return best
}

// OfData are measures of a model on data, which a training and its validation have each,
// and not of the run, which has one learning rate and one speed.
var OfData = Set("kl kld entropy variance")

// norms are what has a least and a greatest of several, as those of the rows of a matrix, which were measured and not set.
var norms = Set("norm norms")

// Lengths are words for how long something is.
var Lengths = Set("len length")

// OfEpisodes reports whether a name is that of an episode's reward or of the episode: the least and the most
// of some episodes say how they are spread, and are no bounds that were set.
func OfEpisodes(parts []string) bool {
	for _, p := range parts {
		if p == "reward" || p == "return" || p == "rew" || p == "ep" || p == "episode" {
			return true
		}
	}
	return false
}

// Set is a list of words as a set.
func Set(list string) map[string]bool {
	s := map[string]bool{}
	for _, w := range strings.Fields(list) {
		s[w] = true
	}
	return s
}
