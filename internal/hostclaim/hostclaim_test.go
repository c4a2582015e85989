package hostclaim

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestAClaimIsReadAsItWasWritten(t *testing.T) {
	for _, c := range []Claim{
		{},
		{Cluster: "demo", Life: "aa", Owner: "ada@laptop", Since: 1_700_000_000},
		{Cluster: "demo", Life: "aa", Owner: "ada lovelace@laptop", Since: 1, Dir: "/mnt/da ta's", Had: []string{".ssh", ".ssh/authorized_keys"}},
	} {
		if got := Parse(c.Text()); !reflect.DeepEqual(got, c) {
			t.Errorf("%+v became %+v", c, got)
		}
	}
	// As versions before the agent write it, and with what a later one may add.
	got := Parse("cluster demo\nlife aa\nowner ada@laptop\nsince 1700000000\ndir \nhad .ssh dlwb\ncolour blue\n")
	if got.Cluster != "demo" || got.Dir != "" || len(got.Had) != 2 || got.Since != 1_700_000_000 {
		t.Errorf("%+v", got)
	}
}

func TestAnAnswerIsFoundAmongWhatAShellPrints(t *testing.T) {
	mark := Mark("FIRST", "SECOND")
	want := Answer{New: true, Claim: Claim{Cluster: "demo"}, Facts: Facts{OS: "linux/amd64", GPUs: []GPU{{Number: 1}}}}
	text, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	printed := "Welcome!\n+ exec agent host FIRST SECOND\n\x01dlwb-host other \n" + mark + string(text) + "\nGood bye!\n"
	got, err := FindAnswer([]byte(printed), mark)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := FindAnswer([]byte("Welcome!\n"), mark); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	for cut := range text {
		if _, err := FindAnswer([]byte(mark+string(text[:cut])), mark); err == nil {
			t.Errorf("an answer of which %d of %d bytes came was taken", cut, len(text))
		}
	}
}

func FuzzAnswer(f *testing.F) {
	text, err := Encode(Answer{Facts: Facts{GPUs: []GPU{{Number: 1, Name: "A10G"}}}, Left: Remains{Others: []string{"x"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("\xbf\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = FindAnswer(append([]byte(Mark("A", "B")), text...), Mark("A", "B"))
		_, _ = ReadRequest(bytes.NewReader(text))
	})
}

func FuzzClaim(f *testing.F) {
	f.Add("cluster demo\nlife aa\nowner ada@laptop\nsince 1700000000\ndir /x\nhad .ssh dlwb\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := Parse(text)
		for _, field := range []string{c.Cluster, c.Life, c.Owner, c.Dir} {
			if strings.Contains(field, "\n") {
				t.Errorf("%q has a line end", field)
			}
		}
		if again := Parse(c.Text()); !reflect.DeepEqual(again, c) && !strings.ContainsAny(text, "\r\v\f\u0085\u00a0") {
			t.Errorf("%+v became %+v", c, again)
		}
	})
}
