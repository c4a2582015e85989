package fakeaws

import (
	"net/url"
	"time"
)

// Fault makes calls go wrong.
type Fault struct {
	Action string                // empty: any
	Match  func(url.Values) bool // nil: any; of the form, or the members of the JSON body
	// Only calls that fit are counted: the first Skip go well, then Times go
	// wrong; Times 0: all that follow.
	Skip, Times int

	Do     Effect
	Code   string // for Refuse; empty: "UnauthorizedOperation"
	Status int    // for Refuse; 0: what AWS sends with the code
	// Delay is waited before the call is applied: in virtual time. With
	// DelayApply its caller has lost the connection by then.
	Delay time.Duration
	// Hook is called, if not nil, at the stages that the call comes to, while
	// no lock is held: it may kill the caller.
	Hook func(stage Stage, call Call)
}

// Effect is what becomes of a call.
type Effect int

// The effects.
const (
	None       Effect = iota // nothing but the delay and the hook
	Refuse                   // Code, not applied
	Throttle                 // too many requests, not applied
	FailBefore               // an internal error, not applied
	LoseReply                // applied, and the connection cut
	DelayApply               // the connection is cut now, applied after Delay
	Duplicate                // applied twice, as two requests; the second's reply is sent
	Ignore                   // answered as if, and not applied
	Truncate                 // applied, and the reply cut in its middle
	Hang                     // no answer until the caller gives up, not applied
)

var effects = [...]string{"", "refused", "throttled", "failed before", "reply lost", "applied late",
	"duplicated", "ignored", "truncated", "hung"}

// String names what was done.
func (e Effect) String() string { return effects[e] }

// Stage is how far a call has come.
type Stage int

// The stages.
const (
	Before  Stage = iota // it has arrived
	Applied              // it is carried out, its caller does not know
	Replied              // the reply is sent
)

// armed is a fault and how many calls fitted it.
type armed struct {
	Fault
	met int
}

// Fault arms a fault. Of several that fit a call the first armed counts.
func (s *Server) Fault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &armed{Fault: f})
}

// Heal disarms all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// fault finds what is to go wrong with a call; the lock is held.
func (s *Server) fault(c Call) Fault {
	for _, f := range s.faults {
		if f.Action != "" && f.Action != c.Action || f.Match != nil && !f.Match(c.Params) {
			continue
		}
		f.met++
		if f.met > f.Skip && (f.Times == 0 || f.met <= f.Skip+f.Times) {
			return f.Fault
		}
	}
	return Fault{}
}

func (f Fault) hook(at Stage, c Call) {
	if f.Hook != nil {
		f.Hook(at, c)
	}
}
