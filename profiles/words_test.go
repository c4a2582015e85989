package profiles

import (
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/nearword"
)

func TestTheNearestWordIsLikeIt(t *testing.T) {
	candidates := []string{"count", "spot", "simulate_gpus", "instance", "max_price"}
	for word, want := range map[string]string{
		"cuont": "count", "counts": "count", "Count": "count", "SimulateGPUs": "simulate_gpus", "simulate-gpus": "simulate_gpus",
		"maxprice": "max_price", "instnace": "instance", "port": "", "x": "", "": "", "name": "", "sopt": "spot",
	} {
		if got := nearword.Nearest(word, candidates); got != want {
			t.Errorf("nearest %q is %q, want %q", word, got, want)
		}
	}
}

func TestSizesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]int64{
		"200GB": 200e9, "1.5 TB": 1500e9, "1gib": 1 << 30, "1B": 1, "1000KB": 1e6, "2TiB": 2 << 40,
	} {
		got, fl := readSize(text)
		if again, _ := readSize(writeSize(got)); fl.why != "" || got != want || again != want {
			t.Errorf("%s is %d (%s), want %d; written as %s", text, got, fl.why, want, writeSize(got))
		}
	}
	for text, want := range map[string]string{"200": "200GB", "200G": "200GB", "5Gi": "5GiB", "x": "", "-1GB": "", "0GB": "", "9999999999TB": "", "1e3GB": ""} {
		if _, fl := readSize(text); fl.why == "" || fl.nearest != want {
			t.Errorf("%s: %+v, want nearest %q", text, fl, want)
		}
	}
}

func TestDurationsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"12h": 12 * time.Hour, "1d12h": 36 * time.Hour, "90s": 90 * time.Second, "1.5h": 90 * time.Minute, "250ms": time.Second / 4, "0s": 0,
	} {
		got, fl := readDuration(text)
		if again, _ := readDuration(writeDuration(got)); fl.why != "" || got != want || again != want {
			t.Errorf("%s is %s (%s), want %s; written as %s", text, got, fl.why, want, writeDuration(got))
		}
	}
	for text, want := range map[string]string{
		"": "", "12": "", "h": "", "12H": "12h", "30 minutes": "30m", "2hours": "2h", "1m1h": "", "1h1h": "", "1w": "", "99999999999d": "", "-1h": "",
	} {
		if _, fl := readDuration(text); fl.why == "" || fl.nearest != want {
			t.Errorf("%s: %+v, want nearest %q", text, fl, want)
		}
	}
}

func TestSecretsAreKnownByNameAndForm(t *testing.T) {
	for name, value := range map[string]string{
		"WANDB_API_KEY": "0123", "APIKEY": "abcdef", "hf_token": "x y", "DB_PASSWORD": "p", "X": "hf_" + "abcdefghijklmnopqrst", "Y": "AKIA" + "0123456789ABCDEF",
		"Z": "-----BEGIN OPENSSH PRIVATE KEY-----",
	} {
		if name == "WANDB_API_KEY" {
			value = "a" + value
		}
		if secretLiteral(name, value) == "" {
			t.Errorf("%s: %s passes", name, value)
		}
	}
	for name, value := range map[string]string{
		"TOKENIZERS_PARALLELISM": "true", "USE_AUTH_TOKEN": "true", "MAX_TOKENS": "4096", "PAD_TOKEN": "0", "MONKEY": "banana", "KEYBOARD": "de", "API_KEY": "",
	} {
		if why := secretLiteral(name, value); why != "" {
			t.Errorf("%s: %s is refused: %s", name, value, why)
		}
	}
}

func TestTheScriptOfACommandIsFound(t *testing.T) {
	for command, want := range map[string]string{
		"train.py": "train.py", "train.py eval.py": "train.py", "python3.11 -u src/train.py --config x.py": "src/train.py",
		"torchrun --nproc-per-node=2 train.py": "train.py", "'my train.py' x": "my train.py", "/opt/venv/bin/python train.py": "train.py",
		"/opt/train.py": "", "../train.py": "", "bash x.py": "", "python -m train x.py": "", "python -c 'x' y.py": "", "./train": "", "": "", "$HOME/x.py": "",
	} {
		if got := Script(command); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func TestATextForEachPlaceIsMaskedAndQuoted(t *testing.T) {
	for text, want := range map[string]string{
		`a`: `"a"`, `say "hi"`: `'say "hi"'`, "a\x1b[31m": `"a\x1b[31m"`, `\d+`: `"\d+"`, "hf_" + "abcdefghijklmnopqrst": `"•••"`, `'"`: `"'\""`,
	} {
		if got := quote(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
