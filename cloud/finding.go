package cloud

import (
	"encoding/json"
	"errors"
)

// Finding is one result of a check made before anything is started or paid.
type Finding struct {
	// OK reports that it stands in nobody's way.
	OK bool `json:"ok"`
	// State is what came of the check. Where it is left out, a finding that is
	// OK is Fine and any other is a Problem; JSON always has it.
	State FindingState `json:"state"`
	What  string       `json:"what"`           // what was looked at
	Text  string       `json:"text"`           // what was found
	Next  string       `json:"next,omitempty"` // what to do about it, as a command where possible
}

// FindingState is what came of a check.
type FindingState string

// The states of a finding. Only a Problem keeps anything from being started.
const (
	Fine       FindingState = "ok"
	Warned     FindingState = "warning"
	Problem    FindingState = "problem"
	NotChecked FindingState = "unknown" // it could not be looked at
)

// Unchecked is a finding about what could not be looked at: that stands in
// nobody's way, and is not good news either.
func Unchecked(what, text, next string) Finding {
	return Finding{OK: true, State: NotChecked, What: what, Text: text, Next: next}
}

// Warning is a finding that somebody should know of, and that stands in
// nobody's way.
func Warning(what, text, next string) Finding {
	return Finding{OK: true, State: Warned, What: what, Text: text, Next: next}
}

// Passed is a finding of something that is as it has to be.
func Passed(what, text string) Finding { return Finding{OK: true, What: what, Text: text} }

// FromError is a finding of what stands in the way, or of what could not be looked at,
// where the error says that it is Doubtful. next says what to do, unless the error has
// advice of its own.
func FromError(what string, err error, next string) Finding {
	var advised interface{ Advice() string }
	if errors.As(err, &advised) && advised.Advice() != "" {
		next = advised.Advice()
	}
	var doubt interface{ Doubtful() bool }
	if errors.As(err, &doubt) && doubt.Doubtful() {
		return Unchecked(what, "not checked: "+err.Error(), next)
	}
	return Finding{What: what, Text: err.Error(), Next: next}
}

// Result is the state of a finding, also where it was left out.
func (f Finding) Result() FindingState {
	switch {
	case !f.OK:
		return Problem
	case f.State == "":
		return Fine
	}
	return f.State
}

// Mark is the sign of a finding: ✓ fine, ! a warning, ✗ a problem, ? not
// checked.
func (f Finding) Mark() string {
	return map[FindingState]string{Fine: "✓", Warned: "!", Problem: "✗", NotChecked: "?"}[f.Result()]
}

// MarshalJSON writes the finding with its state.
func (f Finding) MarshalJSON() ([]byte, error) {
	type plain Finding
	f.State = f.Result()
	return json.Marshal(plain(f))
}
