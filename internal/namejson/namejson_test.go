package namejson

import (
	"encoding/json"
	"reflect"
	"testing"
)

var names = []string{"", "a", "ünï/cödé", "\xff\xfe/\x01", "a\xe4b", "\ufffd", "\xef\xbf", "\xed\xa0\x80", "new\nline", "\\x00ff"}

func TestNamesComeBackByteForByte(t *testing.T) {
	m := map[string]int{}
	for i, name := range names {
		m[name] = i
	}
	text, err := json.Marshal(Keys(m, Encode))
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]int
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if got := Keys(back, Decode); !reflect.DeepEqual(got, m) {
		t.Errorf("%v became %v, in JSON %s", m, got, text)
	}
	if Encode("ünï") != "ünï" || Decode("\x00") != "\x00" || Decode("\x00zz") != "\x00zz" {
		t.Error("what is text does not stay as it is")
	}
	if Keys[int](nil, Encode) != nil {
		t.Error("a map came out of none")
	}
}

func FuzzName(f *testing.F) {
	for _, name := range names {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text, err := json.Marshal(Encode(name))
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(name) {
			if b == 0 {
				return // no name
			}
		}
		if Decode(back) != name {
			t.Errorf("%q became %q", name, Decode(back))
		}
	})
}
