package metrics

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/metrics/loghead"
	"github.com/dlwb/dlwb/metrics/recipe"
)

// Each recipe reads its sample as a careful reader does.
func TestEachRecipeReadsItsSample(t *testing.T) {
	for _, r := range recipe.Built() {
		t.Run(r.Name, func(t *testing.T) {
			if r.Sample == "" || r.Want == "" || r.Source == "" {
				t.Fatal("it lacks its sample, what is in that, or its source")
			}
			compareLines(t, drawn(&readText(t, r.Sample).Set), r.Want)
		})
	}
}

// No rule of a recipe matches a line of another's sample, nor of any sample of
// tools that have none: a new one cannot break an old one.
func TestNoRecipeTouchesTheSamplesOfOthers(t *testing.T) {
	samples := map[string]string{}
	for _, r := range recipe.Built() {
		samples[r.Name] = r.Sample
	}
	for name, text := range printed(t) {
		text, _, _ = strings.Cut(text, "-- want --\n")
		samples["unseen/"+name] = text
	}
	for _, r := range recipe.Built() {
		book := recipe.NewBook([]recipe.Recipe{r})
		for name, sample := range samples {
			if name == r.Name || sharesSample(r.Name, name) {
				continue
			}
			for line := range strings.Lines(sample) {
				line = strings.TrimRight(line, "\r\n")
				if rule := book.Rule(line[loghead.Of(line):]); rule != nil {
					t.Errorf("the recipe of %s matches a line of %s: %s", r.Name, name, line)
				}
			}
		}
	}
}

// sharesSample reports whether a sample is of the recipe's own tool: a few were
// there before the recipe, and some tools print through each other.
func sharesSample(recipe, sample string) bool {
	of := map[string]string{
		"unseen/catboost-auc": "catboost", "unseen/catboost-gpu": "catboost", "unseen/catalyst": "catalyst", "unseen/tensor2tensor": "tf-estimator",
		"unseen/hf-examples": "transformers", "unseen/llamafactory": "transformers", "unseen/ray-tune-result": "ray-tune",
		"unseen/metric-logger": "metric-logger", "unseen/t5x-eval": "clu", "unseen/flax-lm1b": "clu", "unseen/mlflow-wandb": "wandb",
		"unseen/fairseq-old": "fairseq", "unseen/lightgbm-several": "lightgbm", "unseen/lightgbm-cv": "lightgbm", "unseen/noise-pip": "git",
		"unseen/keras3-nested": "schedulers", "unseen/keras-plateau": "schedulers", "unseen/published-plateau": "schedulers",
		"unseen/knet-loss": "knet", "unseen/knet-losses": "knet",
	}
	return of[sample] == recipe
}

func readText(t *testing.T, text string) *Document {
	t.Helper()
	doc, err := Read(strings.NewReader(controls.Replace(text)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A user's own recipe has the same form, and goes before those that are built in.
func TestAUsersOwnRecipeReadsAFormatThatNobodyKnew(t *testing.T) {
	const log = "<<7>> E=0.5 ~ 12\n<<8>> E=0.25 ~ 13\n<<9>> E=0.125 ~ 11\n"
	own, err := recipe.Parse([]byte("name: mine\nlines:\n  - match: '^<<(\\d+)>> E=(\\S+) ~ \\d+$'\n    read: 'step $1: energy: $2'\n"))
	if err != nil {
		t.Fatal(err)
	}
	Learn(func() []recipe.Recipe { return []recipe.Recipe{own} })
	defer Learn(nil)
	compareLines(t, drawn(&readText(t, log).Set), "energy step 7:0.5 8:0.25 9:0.125\n")
}
