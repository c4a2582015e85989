package waits

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

// Silence bounds for how long nothing may come of something that is read, however long
// all of it takes.
type Silence struct {
	limit      time.Duration
	late       *time.Timer
	asked, ctx context.Context
	cancel     context.CancelFunc
}

// Silent begins to wait for the first bytes. The context that it gives is for what is
// read, and ends with the patience.
func Silent(ctx context.Context, limit time.Duration) (context.Context, *Silence) {
	s := &Silence{limit: limit, asked: ctx}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.late = time.AfterFunc(limit, s.cancel)
	return s.ctx, s
}

// Reader is a reader each piece of which puts the end of the patience off.
func (s *Silence) Reader(from io.Reader) io.Reader { return patient{from, s} }

// End ends the wait. An error that came of it says so.
func (s *Silence) End(err error) error {
	s.late.Stop()
	if err != nil && s.ctx.Err() != nil && s.asked.Err() == nil {
		err = fmt.Errorf("nothing of it came for %s", units.Duration(s.limit))
	}
	s.cancel()
	return err
}

type patient struct {
	from io.Reader
	s    *Silence
}

func (h patient) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	if n > 0 {
		h.s.late.Reset(h.s.limit)
	}
	return n, err
}
