package cli

import (
	"errors"
	"testing"

	"github.com/dlwb/dlwb/workbench/planning"
)

func TestScreenIsToldWhatIsWrongFieldByField(t *testing.T) {
	d := planning.Draft{Dir: "/nowhere", Name: "lm", Provider: "local", Count: "two", Environment: "system", Engine: "torchrunn", Command: "train.py"}
	_, err := d.Text()
	if err == nil {
		t.Fatal("a draft with errors has none")
	}
	got := map[string]string{}
	for _, f := range (bench{}).FieldFaults(err) {
		got[f.Key] = f.Text
	}
	for key, text := range map[string]string{
		"machines.count": "this is no whole number; write a whole number from 1 to 1000, such as 2",
		"run.engine":     `there is no such engine; did you mean "torchrun"?`,
	} {
		if got[key] != text {
			t.Errorf("%s: %q, want %q (all: %q)", key, got[key], text, got)
		}
	}
	if f := (bench{}).FieldFaults(errors.New("no network")); f != nil {
		t.Errorf("an error about no field is about %v", f)
	}
}
