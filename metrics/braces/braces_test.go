package braces

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheNumbersOfADictionaryAreReadWithTheirKeys(t *testing.T) {
	for text, want := range map[string]string{
		`{"step": 3, "loss": "0.5"}`:                                     "step=3 loss=0.5",
		"{'metrics': {'val': {'loss': {'value': 0.5}}}}":                 "val/loss=0.5",
		"{'a': tensor(0.5, device='cuda:0'), 'b': [0.25], 'c': (1, 2),}": "a=0.5 b=0.25",
		"{'loss': 0.5": "none", "{'loss' 0.5}": "none", "{'loss': 0.5} and more": "none",
	} {
		pairs, ok := Read(text, nil)
		var got []string
		for _, p := range pairs {
			got = append(got, fmt.Sprintf("%s=%v", p.Key, p.Value))
		}
		if !ok {
			got = []string{"none"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	if !BeginsWithList(`{"loss": [0.5, 0.4`) || BeginsWithList(`{"loss": {"a": 1}}`) {
		t.Error("whether a dictionary begins with a list of numbers")
	}
}
