package ec2

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

// TestMain lets many tests run at once: they wait more than they work. It says
// for how many cases a promise is held before any of them looks.
func TestMain(m *testing.M) {
	flag.Parse()
	cases := someCases
	switch {
	case sample.IsWhole():
		cases = allCases
	case sample.IsLight():
		cases = fewCases
	}
	if err := errors.Join(flag.Set("test.parallel", "12"), flag.Set("rapid.checks", strconv.Itoa(cases))); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// memory is a ledger that outlives every crash but the test's.
type memory struct {
	mu      sync.Mutex
	entries []cloud.Entry
	clock   func() time.Time // nil: the real one
	// full makes every write fail.
	full bool
}

var errFull = errors.New("no space left on device")

func (l *memory) now() time.Time {
	if l.clock != nil {
		return l.clock()
	}
	return time.Now()
}

func (l *memory) Intend(kind, token string, detail any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return errFull
	}
	if slices.ContainsFunc(l.entries, func(e cloud.Entry) bool { return e.Token == token }) {
		return fmt.Errorf("token %s was already used", token)
	}
	b, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	l.entries = append(l.entries, cloud.Entry{Kind: kind, Token: token, Detail: b, IntentAt: l.now()})
	return nil
}

func (l *memory) change(token string, do func(*cloud.Entry)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return errFull
	}
	for i := range l.entries {
		if l.entries[i].Token == token {
			do(&l.entries[i])
			return nil
		}
	}
	return fmt.Errorf("no intent %s", token)
}

func (l *memory) Resolve(token, id string) error {
	now := l.now()
	return l.change(token, func(e *cloud.Entry) { e.ID, e.ResolvedAt = id, &now })
}

func (l *memory) Close(token, proof string) error {
	if proof == "" {
		return errors.New("an entry is closed only with a proof")
	}
	now := l.now()
	return l.change(token, func(e *cloud.Entry) { e.ClosedAt, e.Proof = &now, proof })
}

func (l *memory) Entries() ([]cloud.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries), nil
}

func (l *memory) open() int {
	entries, _ := l.Entries()
	n := 0
	for _, e := range entries {
		if e.Open() {
			n++
		}
	}
	return n
}

// rig is a fake AWS, a life in it and what was said.
type rig struct {
	*testing.T
	aws    *fakeaws.Server
	env    []string
	ledger *memory
	life   cloud.Life
	spec   cloud.Spec
	settle time.Duration
	cache  string

	mu   sync.Mutex
	said []string
}

func newRig(t *testing.T, o fakeaws.Options) *rig {
	t.Helper()
	t.Parallel()
	return rigOf(t, o)
}

func rigOf(t *testing.T, o fakeaws.Options) *rig {
	t.Helper()
	r := &rig{T: t, aws: fakeaws.New(o), ledger: &memory{}, settle: time.Second, cache: t.TempDir()}
	t.Cleanup(r.aws.Close)
	r.env, r.ledger.clock = r.aws.Env(), r.aws.Now
	r.life = cloud.Life{Name: "train", ID: "0123456789ab", Began: time.Now(), Dir: t.TempDir(), Ledger: r.ledger}
	r.spec = cloud.Spec{Name: "train", Count: 2, Regions: []string{"us-east-1"}, Instance: "g5.xlarge", Lifetime: time.Hour, Idle: time.Hour}
	return r
}

var environment sync.Mutex

// provider is a dlwb that was just started. Only while it reads its AWS
// configuration the environment is the rig's: tests run side by side.
func (r *rig) provider() *Provider {
	r.Helper()
	environment.Lock()
	defer environment.Unlock()
	for _, v := range r.env {
		name, value, _ := strings.Cut(v, "=")
		was, there := os.LookupEnv(name)
		_ = os.Setenv(name, value)
		defer func() {
			if there {
				_ = os.Setenv(name, was)
			} else {
				_ = os.Unsetenv(name)
			}
		}()
	}
	p := New(Options{Dir: r.cache, Settle: r.settle})
	if _, err := p.api(r.Context()); err != nil {
		r.Fatal(err)
	}
	return p
}

func (r *rig) say(node int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
	if os.Getenv("DLWB_TEST_SAY") != "" {
		r.Logf("%d: %s", node, text)
	}
}

// heard reports whether anything was said with a text in it.
func (r *rig) heard(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.said, func(s string) bool { return strings.Contains(s, text) })
}

func (r *rig) up() cloud.Cluster {
	r.Helper()
	c, err := r.provider().Up(r.Context(), r.life, r.spec, r.say)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// down takes the life down and holds that nothing is left of it.
func (r *rig) down() cloud.Receipt {
	r.Helper()
	receipt, err := r.provider().Down(r.Context(), r.life, r.say)
	if err != nil {
		r.Fatal(err)
	}
	if !receipt.Proven() || r.ledger.open() > 0 {
		r.Fatalf("not proven: %+v, %d open entries", receipt, r.ledger.open())
	}
	if left := r.aws.Left(); len(left) > 0 {
		r.Fatal("left behind:", left)
	}
	return receipt
}

// calls are the outcomes of all calls of an action.
func (r *rig) calls(action string) []fakeaws.Call {
	return slices.DeleteFunc(r.aws.Calls(), func(c fakeaws.Call) bool { return c.Action != action })
}
