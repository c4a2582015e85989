package event

// RunBilled says what a run has cost whose job is paid for by itself, as its service
// bills it. It costs nothing more.
type RunBilled struct {
	Cost float64 `json:"cost"` // in US dollars
}

// EventName is the name of the event.
func (RunBilled) EventName() string { return "run_billed" }

// Of is what was billed; nil: nothing is known of that.
func (b *RunBilled) Of() *float64 {
	if b == nil {
		return nil
	}
	return &b.Cost
}
