package metrics

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/loghead"
)

// kind is what a name says about the number beside it.
type kind uint8

const (
	unknown kind = iota // nothing: it has to prove itself by coming again
	never               // no metric: a clock, a size, a setting, the name of a thing
	measure             // a metric, but one that also stands in settings
	weak                // a score, but also an everyday word
	score               // a loss or a score: its line is about the training
)

// words are parts of names, and what they say. The last part of a name counts,
// and of the others those that are scores (loss_cls, ep_rew_mean).
var words = table(map[kind]string{
	score: `loss losses acc accuracy aacc macc mdice mfscore ppl perplexity auc auroc f1 bleu rouge wer cer mse mae rmse nll bpc bpb
		logloss elbo nelbo lpips reward rew mcc pplx learn pearson spearman kappa episode_return episodic_return rmsle mlogloss merror ndcg minade minfde cross-entropy cross_entropy accu xent psnr ssim miou fid`,
	weak: `error err fb1 map return returns score precision recall prec dice r2 l1 l2 iou ap ar improve cost`,
	measure: `lr learning_rate lrate learnrate gnorm grad_norm gradient_norm norm throughput mfu tps fps ips wps momentum weight_decay
		entropy kl kld temperature beta speed tflops tflop variance`,
	never: `eta elapsed time times duration remaining runtime walltime hrs bt btime took took_s wall seconds sec secs minutes hour hours day days date year month
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
		hysteresis nan shard shards serial uptime weights key value lineno tasks task trial trials seen done fetched target goal overflow labels label dur copypaste improved oom free seqlen wandb dt timer counter found passes complete completed`,
})

// table turns lists of words by kind into kinds by word.
func table(lists map[kind]string) map[string]kind {
	t := map[string]kind{}
	for k, list := range lists {
		for _, w := range strings.Fields(list) {
			t[w] = k
		}
	}
	return t
}

// counts are first parts of names that make them a number of things, unless
// they are the name of a score.
var counts = set(`num nb n max min total nproc save number`)

// parted are what a model or a job has several of, each with a loss of its own.
var parted = set(`image head layer block task node device rank worker`)

// notNow are first parts of names that make even a score something else than
// the present value.
var notNow = set(`best target init initial final lowest highest minimum maximum initscore old new no prev previous time elapsed eta improving`)

// fillers are words of a phrase that say nothing about its name.
var fillers = set(`set info the mini-batch current data subset running dataset function's`)

// spreads are words that say that a value is no value but how far they are apart.
var spreads = set(`std stdev stddev deviation variance var`)

// averages are words that say that a value is one.
var averages = set(`avg average mean averaged`)

// stops end the part of a sentence that cannot belong to a name.
var stops = set(`with at after before to from of for in by and a an got has have was is are it we on over no not as than did does rank saved saving reached true false none yes no null`)

// aliases are the one name for things that are printed under several.
var aliases = map[string]string{
	"learning_rate": "lr", "lrate": "lr", "learningrate": "lr", "learnrate": "lr", "gnorm": "grad_norm", "gradient_norm": "grad_norm", "gradnorm": "grad_norm", "norm": "grad_norm",
	"learn": "train/loss",
}

// splits maps the ways to say which data a value is of to the one that is
// shown.
var splits = map[string]string{
	"validation": "val", "valid": "val", "val": "val", "dev": "val", "evaluation": "eval", "eval": "eval", "evaluating": "eval",
	"treino": "train", "treinamento": "train", "entrenamiento": "train", "entraînement": "train", "validação": "val", "validación": "val", "teste": "test", "prueba": "test",
	"validate": "val", "vali": "val", "validating": "val", "heldout": "val", "held-out": "val", "test": "test", "testing": "test", "training": "train", "train": "train",
}

// shortSplits are what programmers cut them to; they say it only before a score.
var shortSplits = map[string]string{"tr": "train", "trn": "train", "te": "test", "tst": "test", "va": "val", "vld": "val", "vl": "val", "cv": "val"}

func set(list string) map[string]bool {
	s := map[string]bool{}
	for _, w := range strings.Fields(list) {
		s[w] = true
	}
	return s
}

// term is a name as printed, understood.
type term struct {
	show    string // as split/base
	kind    kind
	average bool   // the name said that it is one
	split   string // what the words before the name said
	weak    bool   // an everyday word

	bareNorm  bool // "norm" alone, which is that of the gradient only beside a step
	bareSplit bool // "val" alone
	splitLast bool // it ended in its split: "loss train"
}

// understand gives a phrase such as "Average loss", "val_loss" or "dev ema wer"
// the form split/base and tells what it is the name of. A split that was said
// before ("val: loss", "test set: …") goes with scores, not with what the line
// tells beside them, such as the learning rate.
func understand(phrase, said string) term {
	var t term
	var kept []string
	if strings.Contains(phrase, " / ") { // avg. samples / sec
		t.average = false
		rate := phrase[strings.LastIndexByte(phrase[:strings.Index(phrase, " / ")], ' ')+1:]
		t.show, t.kind = strings.ToLower("throughput/"+strings.Replace(rate, " / ", "_per_", 1)), measure
		return t
	}
	phrase, _, _ = strings.Cut(phrase, " over epoch")
	fields := strings.Fields(phrase)
	if len(fields) > 0 { // avg.loss
		last := len(fields) - 1
		if head, base, ok := strings.Cut(fields[last], "."); ok && averages[strings.ToLower(head)] && classify(strings.ToLower(base)) >= measure {
			fields = append(fields[:last:last], head, base)
		}
	}
	for i, w := range fields {
		owned := strings.HasSuffix(w, "'s")
		w = strings.Trim(strings.TrimSuffix(w, "'s"), "\"'.<>#")
		lower := strings.ToLower(w)
		switch {
		case w == "" || fillers[lower] || w[0] == '(':
		case lower == "value" && i > 0 && i == len(fields)-1 && stops[strings.ToLower(fields[i-1])]: // "finished with value"
			t.show, t.kind, t.split = lower, unknown, ""
			return t
		case lower == "value" && len(kept) > 0 && classify(strings.ToLower(kept[len(kept)-1])) >= weak && (i == len(fields)-1 || stops[strings.ToLower(fields[i+1])] || splits[strings.ToLower(fields[i+1])] != ""): // "loss value", not the "value loss" of a critic
		case averages[lower] && i < len(fields)-1:
			t.average = true
		case splits[lower] != "" && len(fields) > 1 && i < len(fields)-1 && !(lower == "valid" && len(kept) > 0 && classify(strings.ToLower(fields[len(fields)-1])) == unknown): // but "fraction valid SMILES"
			t.split = splits[lower]
		case owned:
			t.split = lower
		case lower == "of" && len(kept) > 0 && spreads[strings.ToLower(kept[len(kept)-1])]: // "Std of Reward"
			kept = kept[len(kept)-1:]
		case (lower == "of" || lower == "with") && slices.ContainsFunc(kept, func(w string) bool { return strings.EqualFold(w, "best") }): // "new best metric of val_mse", "saved new best model with loss"
			t.kind = never
			return t
		case stops[lower] && lower != "before" && lower != "after" && len(kept) > 0 && ofData(fields[i+1:], lower == "in"): // "AUROC over val set", "error in val"
		case stops[lower] && i < len(fields)-1 || i == 0 && len(fields) > 1 && isPlural(lower) && !strings.EqualFold(fields[1], "per"): // "after 3 steps loss 0.5"
			kept = kept[:0]
		default:
			kept = append(kept, w)
		}
	}
	if len(kept) > 4 || len(kept) > 1 && strings.EqualFold(kept[len(kept)-1], kept[len(kept)-2]) {
		kept = kept[len(kept)-1:]
	}
	if n := len(kept); n > 1 && classify(strings.ToLower(kept[n-1])) >= measure && !qualifies(kept[:n-1]) {
		kept = kept[n-1:]
	}
	t.splitLast = len(fields) > 1 && splits[strings.ToLower(fields[len(fields)-1])] != ""
	base := strings.Trim(strings.Join(kept, "_"), "_.-/#|")
	if stops[strings.ToLower(base)] || len(kept) > 0 && stops[strings.ToLower(kept[len(kept)-1])] { // "improved from 0.5"
		t.kind = never
		return t
	}
	t.name(base, said)
	if t.average && t.kind == never && lengths[strings.ToLower(base)] { // of episodes, of answers
		t.kind, t.show = unknown, "average_"+base
	}
	if t.kind == unknown && base != "" && !t.bareSplit && strings.EqualFold(fields[0], "current") { // the minimum so far is another than that of the step
		t.name(fields[0]+"_"+base, said)
	}
	return t
}

// ofData reports whether words say of which set something is and no more, "over val set"; short says that its name is enough.
func ofData(words []string, short bool) (said bool) {
	for _, w := range words {
		w = strings.ToLower(w)
		if splits[w] == "" && !fillers[w] {
			return false
		}
		said = said || splits[w] != ""
	}
	return said && (len(words) > 1 || short)
}

// qualifies reports whether the words before a known name belong to it: short
// words, as in "lm loss" and "ema wer".
func qualifies(words []string) bool {
	for _, w := range words {
		if len(w) > 12 && strings.ContainsAny(w, "_0123456789") || len(w) > 16 || strings.ContainsAny(w, "=/") || loghead.Levels[w] {
			return false
		}
	}
	return true
}

// name makes a term of a name in one word.
func (t *term) name(printed, said string) {
	split, base := cutSplit(printed)
	if split == "" {
		split = t.split
	}
	lower := strings.ToLower(base)
	t.kind = classify(lower)
	if s := lexis.Snake(base); s != lower {
		if sp, b := cutSplit(s); sp != "" { // TrainLoss
			split, base, lower, t.kind = sp, b, b, classify(b)
		} else if k := classify(s); t.kind == unknown || k == unknown && ofEpisodes(strings.Split(s, "_")) { // EpLen
			t.kind = k
		}
	}
	if len(base) == 1 && base[0] >= 'A' && base[0] <= 'Z' && strings.IndexByte("EISTW", base[0]) < 0 { // D: 0.5, G: 0.7; but no level, no time
		t.kind = unknown
	}
	if only := splits[lower]; only != "" && split == "" {
		t.show, t.kind, t.split, t.bareSplit = only, unknown, only, true
		return
	}
	t.bareNorm = lower == "norm"
	own := split
	t.weak = t.kind == weak
	switch {
	case t.weak && split != "":
		t.kind = score
	case t.kind != measure && split == "":
		split = said
	}
	coined := words[lower] == unknown && lexis.Snake(base) == lower && !strings.ContainsAny(lower, "_/-.@") && strings.HasSuffix(lower, "loss") // CELoss
	if t.kind >= measure && !coined {                                                                                                           // how a known word is capitalised says nothing
		base = lower
	}
	if alias, ok := aliases[lower]; ok {
		base = alias
	}
	if own != "" && (base == "lr" || base == "grad_norm") {
		split = ""
	}
	if strings.IndexByte(base, '/') > 0 && splits[base[:strings.IndexByte(base, '/')]] != "" {
		split = ""
	}
	if split != "" && base != "" {
		base = split + "/" + base
	}
	t.show = base
}

// cutSplit takes the split off a name, from its beginning or, of a score
// (loss_val), from its end.
func cutSplit(printed string) (split, base string) {
	lower := strings.ToLower(printed)
	if cut := strings.IndexAny(lower, "_/-."); cut > 0 && cut+1 < len(lower) {
		if split = splits[lower[:cut]]; split != "" {
			return split, strings.TrimPrefix(printed[cut+1:], "-") // Val.-Verlust
		}
		if split = shortSplits[lower[:cut]]; split != "" && classify(lower[cut+1:]) == score {
			return split, printed[cut+1:]
		}
	}
	if cut := strings.LastIndexAny(lower, "_/-"); cut > 0 {
		if split = splits[lower[cut+1:]]; split != "" && classify(lower[:cut]) >= weak {
			return split, printed[:cut]
		}
	}
	return "", printed
}

// classify looks at the whole of a name, then at its parts.
func classify(base string) kind {
	switch k, ok := words[base]; {
	case ok:
		return k
	case lexis.IsRate(base):
		return measure
	case strings.HasPrefix(base, "memory/") || strings.HasPrefix(base, "mem/") || strings.HasPrefix(base, "timing"):
		return never
	case len(base) <= 1 || splits[base] != "" || base == "top": // T: 5, s: 0.3, Train: 12
		return never
	case strings.HasSuffix(base, "epoch_time"):
		return measure
	}
	if strings.HasPrefix(base, "top-") {
		return weak
	}
	for _, per := range [...]string{"_per_", "/token", "/word", "/char", "/dim"} { // loss_per_token, LL/token
		if of, _, ok := strings.Cut(base, per); ok && of != "" && splits[of] == "" {
			base = of
		}
	}
	if at, _, ok := strings.Cut(base, "@"); ok { // acc@1, recall@thr=0.5
		base = at
	}
	if lexis.IsClock(base) {
		return never
	}
	return classifyParts(strings.FieldsFunc(base, func(r rune) bool {
		return r == '_' || r == '/' || r == '-' || r == '.' || r == ' ' || r == '(' || r == ')'
	}))
}

func classifyParts(parts []string) kind {
	if len(parts) == 0 {
		return never
	}
	if n := len(parts) - 1; n > 0 && averages[parts[n]] && words[parts[n-1]] == measure { // cur_lr_avg
		parts = parts[:n]
	}
	best := unknown
	for i, p := range parts {
		k := words[p]
		if k == unknown {
			stem := strings.TrimRight(p, "0123456789")
			if k = words[stem]; stem == "top" && stem != p {
				k = score
			} else if k == unknown && (strings.HasSuffix(p, "loss") || strings.HasSuffix(p, "acc")) { // vloss, binacc
				k = score
			} else if k == unknown && strings.HasSuffix(p, "len") { // rlen, seqlen
				k = never
			}
		}
		if p == "since" && i > 0 && words[parts[i-1]] == never { // seconds_since_start
			return never
		}
		last := i == len(parts)-1
		if last && best >= weak && (p == "step" || p == "epoch") { // Lightning's train_loss_step
			break
		}
		if p == "best" && i > 0 && !last { // save_best_score
			return never
		}
		if p == "cost" && last && i > 0 && words[parts[i-1]] == never { // reader_cost
			return never
		}
		switch {
		case i == 0 && (notNow[p] || (p == "max" || p == "min") && len(parts) > 1 && !ofEpisodes(parts)):
			return never
		case last && (p == "total" || parted[strings.TrimRight(p, "0123456789")]) && best == score: // loss/train/total, loss_head1
		case last && lengths[p] && ofEpisodes(parts): // what an episode came to
		case last && k == never && !((p == "max" || p == "min") && ofEpisodes(parts)):
			return never
		case k >= weak:
			best = max(best, k)
		case k == measure && (last || i == 0):
			best = max(best, k)
		}
	}
	if best < weak && counts[parts[0]] && !(best == measure && parts[0] == "total") && !((parts[0] == "max" || parts[0] == "min") && ofEpisodes(parts)) {
		return never
	}
	return best
}

// lengths are words for how long something is.
var lengths = set("len length")

// ofEpisodes reports whether a name is that of an episode's reward or of the episode: the least and the most
// of some episodes say how they are spread, and are no bounds that were set.
func ofEpisodes(parts []string) bool {
	for _, p := range parts {
		if p == "reward" || p == "return" || p == "rew" || p == "ep" || p == "episode" {
			return true
		}
	}
	return false
}

// understood remembers what was made of the names of a run. They are few;
// when they are not, it forgets and begins again.
type understood map[[2]string]term

const mostTerms = 4096

func (u understood) term(phrase, split string) term {
	t, ok := u[[2]string{phrase, split}]
	if !ok {
		if len(u) >= mostTerms {
			clear(u)
		}
		phrase = strings.Clone(phrase) // a piece of a line would keep all of it
		t = understand(phrase, split)
		t.show = lexis.Tidy(t.show)
		u[[2]string{phrase, split}] = t
	}
	return t
}

// derived remembers a name that was made of another.
func (u understood) derived(show, how string, make func() string) string {
	key := [2]string{show, how}
	t, ok := u[key]
	if !ok {
		if len(u) >= mostTerms {
			clear(u)
		}
		t = term{show: make()}
		key[0] = strings.Clone(show)
		u[key] = t
	}
	return t.show
}

// averaged is the name of an average beside the present value.
func (u understood) averaged(show string) string {
	return u.derived(show, "\x00average", func() string {
		i := strings.LastIndexByte(show, '/') + 1
		return show[:i] + "average_" + show[i:]
	})
}

// owned is a name with the label before it: "pretrained: loss=1, scratch: loss=2".
func (u understood) owned(owner, show string) string {
	key := [2]string{show, owner}
	if t, ok := u[key]; ok {
		return t.show
	}
	return u.derived(show, strings.Clone(owner), func() string { return strings.Clone(owner) + "/" + show })
}

// ofEpoch is the name of the value of a whole epoch.
func (u understood) ofEpoch(show string) string {
	return u.derived(show, "\x00epoch", func() string { return show + "_epoch" })
}

// validatedAs is the name of a value of a validation pass: as is "val/" or "eval/".
func (u understood) validatedAs(as, show string) string {
	return u.derived(show, as, func() string {
		if split, base, ok := strings.Cut(show, "/"); ok && splits[split] != "" {
			return as + base
		}
		return as + show
	})
}

// ShownAs is the name that a series gets of which a training prints the given one:
// "val/loss" for "val_loss", "Validation loss" and "valid-loss".
func ShownAs(printed string) string {
	book() // the words in it are of names, too
	return lexis.Tidy(understand(printed, "").show)
}

// Split is which data a series is of, by its name: train, val, eval, test, or
// "" when that was not said.
func Split(name string) string {
	split, _, ok := strings.Cut(name, "/")
	if !ok || splits[split] != split {
		return ""
	}
	return split
}
