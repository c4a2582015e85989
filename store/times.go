package store

import (
	"fmt"
	"time"
)

// nanos is how a time is stored. The zero time has no Unix nanoseconds; 0
// stands for it.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func maybeNanos(t *time.Time) any {
	if t == nil {
		return nil
	}
	return nanos(*t)
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// stamp reads a stored time.
type stamp time.Time

// Scan implements sql.Scanner.
func (s *stamp) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*s = stamp(fromNanos(n))
	return nil
}

// maybeStamp reads a stored time that may be missing.
type maybeStamp struct{ t **time.Time }

// Scan implements sql.Scanner.
func (m maybeStamp) Scan(v any) error {
	if v == nil {
		*m.t = nil
		return nil
	}
	var s stamp
	if err := s.Scan(v); err != nil {
		return err
	}
	t := time.Time(s)
	*m.t = &t
	return nil
}
