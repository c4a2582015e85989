package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// How long an answer of AWS is young. What is offered changes by the week;
// spot prices change a few times an hour at most; quotas count what runs now.
const (
	youngFacts  = 24 * time.Hour
	youngPrices = 24 * time.Hour
	youngSpot   = 10 * time.Minute
	youngQuotas = 2 * time.Minute
)

// patience is how long AWS is waited for: less when there is an older answer to
// fall back on.
type patience struct{ first, fresher time.Duration }

var usualPatience = patience{first: 10 * time.Second, fresher: 4 * time.Second}

// shelf is where the answers of one account and region are kept. A shelf
// without a directory keeps nothing.
type shelf struct {
	dir     string
	region  string
	fresh   bool // ask also when there is a young answer
	now     func() time.Time
	wait    patience
	silence *silence
}

// silence remembers for a while what got no answer at all, so that without a
// network only the first question waits.
type silence struct {
	mu  sync.Mutex
	not map[string]failed
}

type failed struct {
	err error
	at  time.Time
}

const silenceLasts = 30 * time.Second

// errNoAnswer is the end of waiting.
var errNoAnswer = errors.New("AWS did not answer")

func (s *silence) of(what string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.not[what]; ok && now.Sub(f.at) < silenceLasts {
		return f.err
	}
	return nil
}

func (s *silence) heard(what string, err error, now time.Time) {
	var p *awsapi.Problem
	if !errors.Is(err, errNoAnswer) && !(errors.As(err, &p) && (p.Kind == awsapi.Unreachable || p.Kind == awsapi.NoCredentials)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.not == nil {
		s.not = map[string]failed{}
	}
	s.not[what] = failed{err, now}
}

// answer is one part of the market: a value, how old it is, and why it is not
// fresher.
type answer[T any] struct {
	value T
	at    time.Time
	ok    bool  // there is a value
	err   error // the live call failed; with ok: the value is an old one
}

// kept is an answer on the disk.
type kept[T any] struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	Value   T         `json:"value"`
}

// keptVersion changes when the meaning of a kept value does; other versions
// are as good as none.
const keptVersion = 2

// part is a part of the market: what is asked for, and of which types.
type part struct {
	name  string
	scope scope // none: it is not about types
}

// file is where the answer is kept, by the name of its scope.
func (p part) file(scope string) string {
	if scope == "" {
		return p.name
	}
	return p.name + "-" + scope
}

// ask gives a part of the market: from the shelf when it is young, else live,
// else from the shelf however old. What was said of a wider scope is as good.
func ask[T any](ctx context.Context, s shelf, p part, young time.Duration, live func(context.Context) (T, error)) answer[T] {
	name := p.file(p.scope.name)
	about := s.region + "/" + p.file(cmp.Or(p.scope.within, p.scope.name)) // one silence for both
	old, found := take[T](s, name)
	if p.scope.within != "" {
		if wide, ok := take[T](s, p.file(p.scope.within)); ok && (!found || wide.At.After(old.At)) {
			old, found = wide, true
		}
	}
	if found && !s.fresh && s.now().Sub(old.At) < young {
		return answer[T]{value: old.Value, at: old.At, ok: true}
	}
	if err := s.silence.of(about, s.now()); err != nil && !s.fresh {
		return answer[T]{value: old.Value, at: old.At, ok: found, err: err}
	}
	wait := s.wait.first
	if found {
		wait = s.wait.fresher
	}
	value, err := bounded(ctx, wait, live)
	if err == nil {
		at := s.now().UTC()
		put(s, name, kept[T]{keptVersion, at, value})
		return answer[T]{value: value, at: at, ok: true}
	}
	if ctx.Err() == nil {
		s.silence.heard(about, err, s.now())
	}
	return answer[T]{value: old.Value, at: old.At, ok: found, err: err}
}

func bounded[T any](ctx context.Context, wait time.Duration, live func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	value, err := live(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		late := fmt.Errorf("%w within %s", errNoAnswer, wait)
		if !errors.Is(err, context.DeadlineExceeded) {
			late = fmt.Errorf("%w; the last try: %w", late, err) // between two tries
		}
		err = late
	}
	return value, err
}

// take reads what is kept. Whatever cannot be read, is of another version or
// is from the future is not there.
func take[T any](s shelf, name string) (kept[T], bool) {
	if s.dir == "" {
		return kept[T]{}, false
	}
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		return kept[T]{}, false
	}
	var k kept[T]
	if json.Unmarshal(b, &k) != nil || k.Version != keptVersion || k.At.After(s.now()) {
		return kept[T]{}, false
	}
	return k, true
}

// put keeps an answer. The shelf only saves time: that it cannot be written to
// is no failure of the question.
func put[T any](s shelf, name string, k kept[T]) {
	if s.dir == "" {
		return
	}
	if b, err := json.Marshal(k); err == nil {
		_ = wholefile.Cache(s.path(name), b)
	}
}

func (s shelf) path(name string) string { return filepath.Join(s.dir, name+".json") }
