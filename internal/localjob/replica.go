//go:build unix

package localjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// replica is a part of a job. It has nothing but what every replica has.
type replica struct {
	dir    string
	number int
}

// mask makes tokens of offsets: nobody else is to read anything in them.
const mask = 0x5ca1ab1e

func token(offset int64) job.Cursor { return job.Cursor(fmt.Sprintf("f/%016x", offset^mask)) }

func offsetOf(c job.Cursor) (offset int64, err error) {
	if c == "" {
		return 0, nil
	}
	if _, err = fmt.Sscanf(string(c), "f/%016x", &offset); err != nil {
		return 0, fmt.Errorf("%q is no token of a log", string(c))
	}
	return offset ^ mask, nil
}

// pageMost is how much of a log comes at once, as of a service that has pages.
const pageMost = 1000

// page is the next page of a log, and the token behind it.
func (r replica) page(log string, from job.Cursor) ([]byte, job.Cursor, error) {
	offset, err := offsetOf(from)
	if err != nil {
		return nil, from, err
	}
	f, err := os.Open(filepath.Join(r.dir, filepath.Base(log)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, from, nil
	}
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	buf := make([]byte, pageMost)
	n, err := f.ReadAt(buf, offset)
	if err != nil && err != io.EOF || n == 0 {
		if err == io.EOF {
			err = nil
		}
		return nil, from, err
	}
	return buf[:n], token(offset + int64(n)), nil
}

// FollowLog asks for one page after the other.
func (r replica) FollowLog(ctx context.Context, log string, from job.Cursor, sink func(job.Chunk) error) error {
	for {
		text, next, err := r.page(log, from)
		if err != nil {
			return err
		}
		if len(text) > 0 {
			if err := sink(job.Chunk{From: from, Next: next, Data: text}); err != nil {
				return err
			}
			from = next
			continue
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// HasAll asks each log for what comes next.
func (r replica) HasAll(_ context.Context, logs map[string]job.Cursor) (bool, error) {
	for log, cursor := range logs {
		if text, _, err := r.page(log, cursor); err != nil || len(text) > 0 {
			return false, err
		}
	}
	return true, nil
}

// readStatuses are all statuses that a supervisor has told.
func readStatuses(dir string) (all []told) {
	text, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range bytes.Lines(text) {
		var t told
		if json.Unmarshal(line, &t) == nil {
			all = append(all, t)
		}
	}
	return all
}

func (r replica) statuses() (own []job.Status) {
	for _, t := range readStatuses(r.dir) {
		if t.Replica == r.number {
			own = append(own, t.Status)
		}
	}
	return own
}

// WatchStatus asks again and again.
func (r replica) WatchStatus(ctx context.Context, sink func(job.Status) error, _ func(job.State)) error {
	for told := 0; ; {
		state, err := r.State(ctx) // before the statuses: what is over has told them all
		if err != nil {
			return err
		}
		for _, s := range r.statuses()[told:] {
			if err := sink(s); err != nil {
				return err
			}
			if told++; s.Kind == job.Ended {
				return nil
			}
		}
		if state.Phase == job.Unknown {
			return &job.UnrecordedError{State: state, Err: errors.New("the supervisor of the job is gone")}
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// State looks at what was told, and at whether the supervisor lives. One that had begun
// before that look and does not live has told all that it ever will.
func (r replica) State(context.Context) (job.State, error) {
	state := job.State{Phase: job.Absent, Ranks: map[int]job.Exit{}}
	begun := len(r.statuses()) > 0
	lock := flock.New(filepath.Join(r.dir, "lock"))
	free, err := lock.TryRLock()
	if err != nil {
		return state, err
	}
	_ = lock.Close()
	for _, s := range r.statuses() {
		state.Begun = true
		switch s.Kind {
		case job.RankEnded:
			state.Ranks[s.Rank] = job.Exit{Code: s.Code, Signal: s.Signal, End: s.Time}
		case job.Ended:
			state.Phase = job.Over
		}
	}
	switch {
	case state.Phase == job.Over:
	case !free || state.Begun && !begun:
		state.Phase = job.Running // or it waits
	case begun:
		state.Phase, state.Why = job.Unknown, "the supervisor of the job is gone"
	}
	return state, nil
}

// Stop asks the supervisor to end the job and waits until it has.
func (r replica) Stop(ctx context.Context, grace time.Duration, why string) (int, error) {
	path := filepath.Join(r.dir, "stop")
	if _, err := os.Stat(path); err != nil {
		text := grace.String() + " " + strings.ReplaceAll(why, "\n", " ")
		if err := wholefile.Write(path, []byte(text), 0o600); err != nil {
			return 0, err
		}
	}
	for {
		if state, err := r.State(ctx); err != nil || state.Phase != job.Running {
			return 0, err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Reach says that the replica can be reached: it is a directory.
func (replica) Reach(ctx context.Context, news func(connected bool, why string)) {
	news(true, "")
	<-ctx.Done()
}
