package profiles

import (
	"fmt"
	"strings"
	"testing"
)

func TestAProfileIsFlattenedAsItStandsThere(t *testing.T) {
	got := fmt.Sprint(Flatten("name: a\nrun:\n  command: x --y\n  env: {K: \"${env:K}\"}\nmachines: {region: [us, eu], count: 2}\nforward: []\n"))
	want := "[[name a] [run.command x --y] [run.env.K ${env:K}] [machines.region us, eu] [machines.count 2] [forward ]]"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, bad := range []string{"", "a: [", "\x00", strings.Repeat("a: {", 5000)} {
		if got := Flatten(bad); len(got) != 0 {
			t.Errorf("%.20q gave %v", bad, got)
		}
	}
}

func TestSecretsOfATextAreHidden(t *testing.T) {
	text := "a = 1\nt = 'hf_abcdefghijklmnopqrstuvwxyz' # x\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\nb: ${env:KEY}\n"
	got := MaskSecrets(text)
	for _, bad := range []string{"hf_abc", "MIIEow"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in %q", bad, got)
		}
	}
	if !strings.Contains(got, "a = 1\nt = '•••' # x\n") || !strings.HasSuffix(got, "b: ${env:KEY}\n") {
		t.Errorf("got %q", got)
	}
	if plain := "nothing\n"; MaskSecrets(plain) != plain {
		t.Error("a text without secrets was changed")
	}
}
