package metrics

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/loghead"
	"github.com/dlwb/dlwb/metrics/sense"
)

// The kinds of names, and words that say of which data a value is or that it is an average, are
// those of package sense.
type kind = sense.Kind

const (
	unknown = sense.Unknown
	never   = sense.Never
	measure = sense.Measure
	weak    = sense.Weak
	score   = sense.Score
)

var splits, averages = sense.Splits, sense.Averages

// spreads are words that say that a value is no value but how far they are apart.
var spreads = set(`std stdev stddev deviation variance var`)

// ofMean are words before which a mean is part of the name: "mean squared error".
var ofMean = set(`squared square absolute average reciprocal`)

// stops end the part of a sentence that cannot belong to a name.
var stops = set(`with at after before to from of for in by and a an got has have was is are it we on over no not as than did does rank saved saving reached true false none yes no null be been`)

// aliases are the one name for things that are printed under several.
var aliases = map[string]string{
	"learning_rate": "lr", "lrate": "lr", "learningrate": "lr", "learnrate": "lr", "gnorm": "grad_norm", "gradient_norm": "grad_norm", "gradnorm": "grad_norm", "norm": "grad_norm",
	"new_lr": "lr", "new_learning_rate": "lr", // what is new is what it is from here on
	"learn": "train/loss",
}

// shortSplits are what programmers cut them to; they say it only before a score.
var shortSplits = map[string]string{"tr": "train", "trn": "train", "te": "test", "tst": "test", "va": "val", "vld": "val", "vl": "val", "cv": "val"}

func set(list string) map[string]bool { return sense.Set(list) }

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
	once := false
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
		if head, base, ok := strings.Cut(fields[last], "."); ok && averages[strings.ToLower(head)] && sense.Of(strings.ToLower(base)) >= measure {
			fields = append(fields[:last:last], head, base)
		}
	}
	if n := len(fields); n > 3 && strings.EqualFold(fields[n-2], "this") && unitWords[strings.ToLower(fields[n-1])] != noUnit && sense.Of(strings.ToLower(fields[n-4])) >= weak { // "train loss in this epoch"
		fields = fields[:n-3]
	}
	for i, w := range sense.WithoutSet(fields) {
		owned := strings.HasSuffix(w, "'s")
		w = strings.Trim(strings.TrimSuffix(w, "'s"), "\"'.<>#")
		lower := strings.ToLower(w)
		switch {
		case w == "" || sense.Fillers[lower] || w[0] == '(':
		case lower == "value" && i > 0 && i == len(fields)-1 && stops[strings.ToLower(fields[i-1])]: // "finished with value"
			t.show, t.kind, t.split = lower, unknown, ""
			return t
		case lower == "value" && len(kept) > 0 && sense.Of(strings.ToLower(kept[len(kept)-1])) >= weak && (i == len(fields)-1 || stops[strings.ToLower(fields[i+1])] || splits[strings.ToLower(fields[i+1])] != ""): // "loss value", not the "value loss" of a critic
		case averages[lower] && i < len(fields)-1 && !(lower == "mean" && ofMean[strings.ToLower(fields[i+1])] || i > 0 && ofMean[lower] && strings.EqualFold(fields[i-1], "mean")):
			t.average = true
		case splits[lower] != "" && len(fields) > 1 && i < len(fields)-1 && !(lower == "valid" && len(kept) > 0 && sense.Of(strings.ToLower(fields[len(fields)-1])) == unknown): // but "fraction valid SMILES"
			t.split = splits[lower]
		case owned:
			t.split = lower
		case lower == "of" && len(kept) > 0 && spreads[strings.ToLower(kept[len(kept)-1])]: // "Std of Reward"
			kept = kept[len(kept)-1:]
		case lower == "far" && i > 0 && strings.EqualFold(fields[i-1], "so"): // "Max reward so far"
			t.kind = never
			return t
		case (lower == "of" || lower == "with") && slices.ContainsFunc(kept, func(w string) bool { return strings.EqualFold(w, "best") }): // "new best metric of val_mse", "saved new best model with loss"
			t.kind = never
			return t
		case stops[lower] && lower != "before" && lower != "after" && len(kept) > 0 && sense.AreOfData(fields[i+1:], lower == "in"): // "AUROC over val set", "error in val"
		case lower == "on" && len(kept) > 0 && sense.AreOfData(fields[i+1:], true): // a summary says so once
			once = true
		case stops[lower] && i < len(fields)-1 || i == 0 && len(fields) > 1 && isPlural(lower) && !strings.EqualFold(fields[1], "per"): // "after 3 steps loss 0.5"
			kept = kept[:0]
		default:
			kept = append(kept, w)
		}
	}
	if len(kept) > 4 || len(kept) > 1 && strings.EqualFold(kept[len(kept)-1], kept[len(kept)-2]) {
		kept = kept[len(kept)-1:]
	}
	if n := len(kept); n > 1 && sense.Of(strings.ToLower(kept[n-1])) >= measure && !qualifies(kept[:n-1]) {
		kept = kept[n-1:]
	}
	t.splitLast = len(fields) > 1 && splits[strings.ToLower(fields[len(fields)-1])] != ""
	base := strings.Trim(strings.Join(kept, "_"), "_.-/#|")
	if n := len(kept) - 1; stops[strings.ToLower(base)] || n > 0 && strings.EqualFold(kept[n], "per") || n >= 0 && stops[strings.ToLower(kept[n])] && kept[n] != "A" { // "improved from 0.5", "loss per 100 steps"
		t.kind = never
		return t
	}
	if t.name(base, said); once && t.kind > unknown {
		t.kind = unknown
	}
	if t.average && t.kind == never && sense.Lengths[strings.ToLower(base)] { // of episodes, of answers
		t.kind, t.show = unknown, "average_"+base
	}
	if t.kind == unknown && base != "" && !t.bareSplit && strings.EqualFold(fields[0], "current") { // the minimum so far is another than that of the step
		t.name(fields[0]+"_"+base, said)
	}
	return t
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
	t.kind = sense.Of(lower)
	if s := lexis.Snake(base); s != lower {
		if sp, b := cutSplit(s); sp != "" { // TrainLoss
			split, base, lower, t.kind = sp, b, b, sense.Of(b)
		} else if k := sense.Of(s); t.kind == unknown || k == unknown && sense.OfEpisodes(strings.Split(s, "_")) { // EpLen
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
	case (t.kind != measure || sense.OfData[lower]) && split == "":
		split = said
	}
	coined := sense.Words[lower] == unknown && lexis.Snake(base) == lower && !strings.ContainsAny(lower, "_/-.@") && strings.HasSuffix(lower, "loss") // CELoss
	if t.kind >= measure && !coined {                                                                                                                 // how a known word is capitalised says nothing
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
		if split = shortSplits[lower[:cut]]; split != "" && sense.Of(lower[cut+1:]) == score {
			return split, printed[cut+1:]
		}
	}
	if cut := strings.LastIndexAny(lower, "_/-"); cut > 0 {
		if split = splits[lower[cut+1:]]; split != "" && sense.Of(lower[:cut]) >= weak {
			return split, printed[:cut]
		}
	}
	return "", printed
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

// at is the name of a score of the first so many of what was found.
func (u understood) at(show, many string) string {
	key := [2]string{show, many}
	if t, ok := u[key]; ok {
		return t.show
	}
	return u.derived(show, strings.Clone(many), func() string { return show + "@" + strings.Clone(many) })
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
