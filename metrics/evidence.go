package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Confidence is how well it is known that a name with numbers is a metric of the
// training.
type Confidence uint8

// The confidences, the better the later. What only waits is not drawn.
const (
	Waits  Confidence = iota // nothing has proved it yet: it is in no chart
	Proven                   // its name says nothing, but it came again in lines of one shape and moved as a measured value does
	Named                    // its name, its column or its key says what it is
	Asked                    // an expression of the user gives it
)

// String is how a confidence is called.
func (c Confidence) String() string {
	return [...]string{"waits", "proven", "named", "asked"}[c]
}

// MarshalText writes a confidence by its name.
func (c Confidence) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Evidence is what speaks for a name to be a metric, or against it.
type Evidence struct {
	Name       string     `json:"name"`
	Confidence Confidence `json:"confidence"`
	Points     int        `json:"points"` // that are shown or held; 0 of what was passed over
	Why        string     `json:"why"`
	Held       []Point    `json:"-"` // what is kept of a name that waits, until more is read
}

// mostPassedOver bounds the names that are told as passed over.
const mostPassedOver = 256

// passedOver are the names whose numbers were left out where they stood, and why. It
// is kept only for who asks (see Explain).
type passedOver map[string]string

func (p passedOver) add(name, why string) {
	if p == nil {
		return
	}
	if name = lexis.Tidy(strings.TrimSpace(name)); name == "" || len(name) > longestName {
		return
	}
	if p[name] == "" && len(p) < mostPassedOver {
		p[strings.Clone(name)] = why
	}
}

// Evidence tells of each series how well it is known to be one, and which names
// with numbers wait, by name. With Explain it has also those that were passed over
// where they stood.
func (r *Reader) Evidence() []Evidence {
	var all []Evidence
	for name, s := range r.series {
		if e := s.evidence(r.scanner.names); e.Why != "" {
			e.Name = name
			all = append(all, e)
		}
	}
	for name, why := range r.scanner.passedOver {
		if s := r.series[name]; s == nil || s.ordinal == 0 && len(s.held) == 0 {
			all = append(all, Evidence{Name: name, Why: why})
		}
	}
	slices.SortFunc(all, func(a, b Evidence) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), strings.Compare(a.Name, b.Name))
	})
	return all
}

// evidence judges one series; without a reason there is nothing to tell.
func (s *series) evidence(names understood) Evidence {
	e := Evidence{Points: int(s.ordinal)}
	switch {
	case s.user && s.ordinal > 0:
		e.Confidence, e.Why = Asked, "an expression of yours gives it"
	case s.ordinal > 0 && s.named && names.term(s.name, "").kind >= measure:
		e.Confidence, e.Why = Named, "its name is that of a metric"
	case s.ordinal > 0 && s.named:
		e.Confidence, e.Why = Named, "a column, a key or a box names it"
	case s.ordinal > 0:
		e.Confidence, e.Why = Proven, "it came again in lines of one shape, and moves as what is measured does"
	case len(s.held) > 0:
		e.Points, e.Why, e.Held = s.came, s.lacks(), s.held
	}
	return e
}

// lacks is what is missing for points that are held to be shown.
func (s *series) lacks() string {
	first, last := s.held[0].Value, s.held[len(s.held)-1].Value
	still, stride := true, 0.0
	counts := len(s.held) > 2
	for i, p := range s.held[1:] {
		step := p.Value - s.held[i].Value
		counts = counts && (i == 0 || step == stride) && step > 0 && p.Value == math.Trunc(p.Value)
		still, stride = still && sameValue(p.Value, first), step
	}
	switch {
	case s.came == 1:
		return "it came once, and its name does not say that it is a metric"
	case len(s.held) == 1:
		return fmt.Sprintf("it came %d times, but never twice in lines of one shape", s.came)
	case lexis.IsTimestamp(first) && lexis.IsTimestamp(last):
		return "its numbers are a clock's"
	case still:
		return fmt.Sprintf("it was %v each time, as a setting is", last)
	case counts:
		return "it goes up by the same each time, as a count does"
	}
	return fmt.Sprintf("it came %d times with only a blank before its number: %d are needed", len(s.held), needsBlank)
}
