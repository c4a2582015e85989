package spread

import (
	"slices"
	"testing"
)

func TestTheRecordsOfAReportAreOneEach(t *testing.T) {
	for text, want := range map[string][]string{
		`{"config": {"lr": 0.1}, "rows": [ {"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25} ]}`: {`{"step": 1, "loss": 0.5}`, `{"step": 2, "loss": 0.25}`},
		`{"rows": [ {"epoch": 1, "of": [{"loss": 0.5}]}, [...] {"epoch": 9, "of": "a } b"} ]}`:     {`{"epoch": 1, "of": [{"loss": 0.5}]}`, `{"epoch": 9, "of": "a } b"}`},
		`{"rows": [ {"step": 1, "loss": 0.5} ]}`:                                                   nil, // one may be anything
		`{"a": {"step": 1, "loss": 0.5}, "b": {"step": 2, "loss": 1}}`:                             nil, // of two things
		`{"rows": [ {"name": "a", "loss": 0.5}, {"name": "b"} ], "k": 1`:                           nil,
	} {
		if got := records(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, and not %q", text, got, want)
		}
	}
}
