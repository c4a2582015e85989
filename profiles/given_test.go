package profiles

import (
	"strings"
	"testing"
)

func TestASecretThatTheUserNamesIsAReference(t *testing.T) {
	environ := []string{"HF_TOKEN=abc=d", "OTHER=x", "LONG=a\nb"}
	v, err := givenSecret("HF_TOKEN", environ)
	if err != nil || v != (Var{Name: "HF_TOKEN", Value: "abc=d", Secret: true, Ref: "${env:HF_TOKEN}"}) {
		t.Errorf("got %+v, %v", v, err)
	}
	p := &Profile{Run: Run{Command: "train.py", Env: []Var{v}}}
	if text := string(Write(p)); strings.Contains(text, "abc=d") || !strings.Contains(text, "${env:HF_TOKEN}") {
		t.Errorf("written as\n%s", text)
	}
	for name, want := range map[string]string{"HF_TOKE": "did you mean HF_TOKEN?", "HF_TOKEN=abc": "give the name alone", "": "no name", "LONG": "more than one line",
		"DLWB_X": "dlwb sets this itself", "nothing_like_it_at_all": "not set"} {
		if _, err := givenSecret(name, environ); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
