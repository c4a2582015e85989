package results

import (
	"encoding/json"
	"reflect"
	"testing"
)

// Two names that differ in bytes which are no UTF-8 are two names in the records, too.
func TestRecordsKeepNamesThatAreNoUTF8(t *testing.T) {
	home := homeRecord{"/home/ada/r\xe9sultats": {
		"out/\xff": {As: "out/\xff", Size: 1}, "out/\xfe": {As: "out/\xfe.run", Size: 2}, "out/ü": {As: "out/ü", Size: 3}}}
	text, err := json.Marshal(home)
	if err != nil {
		t.Fatal(err)
	}
	var again homeRecord
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, home) {
		t.Errorf("%v is read back as %v, %v", home, again, err)
	}
	if err := json.Unmarshal([]byte(`{"/home/ada": {"out/ü": {"as": "out/ü", "size": 3}}}`), &again); err != nil || again["/home/ada"]["out/ü"].Size != 3 {
		t.Errorf("of an earlier dlwb: %v, %v", again, err)
	}

	kept := ckptRecord{Saved: []savedCkpt{{Name: "\xff", Dir: "d", In: "out/\xfe", Files: sumOf(map[string]string{"\xff/a": "1", "\xfe/a": "2"})}},
		Doubtful: map[int][]string{1: {"\xfd", "ok"}}, Serial: 3}
	if text, err = json.Marshal(kept); err != nil {
		t.Fatal(err)
	}
	var read ckptRecord
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, kept) || kept.Saved[0].Name != "\xff" {
		t.Errorf("%v is read back as %v, %v", kept, read, err)
	}
}
