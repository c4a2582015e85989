package ec2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/waits"
)

// sweep removes what one life has in one region, and watches until nothing
// more of it can be expected.
type sweep struct {
	p      *Provider
	ec2    client
	region string
	life   cloud.Life
	owner  string   // the principal whose it has to be; empty: whoever's
	ids    []string // of instances that are on record
	tokens []string // of launches that are on record
	// theirs are the ids that AWS gave this life's other calls, with their kinds.
	theirs []string
	say    cloud.Progress
	// grouped says that a placement group was made, or may be another's word. Nothing
	// else makes one: where none was, it need not be seen, as with endpoints that serve
	// neither the call that makes one nor the one that lists them; listed says that
	// this endpoint has listed some.
	grouped, listed bool

	known  map[string]*trace // by kind and id
	looks  int
	blind  map[string]*awsapi.Problem // kinds that the last look could not see
	hidden map[string]time.Time       // since when they can't be seen
	news   time.Time                  // when something that matters was seen last
	quiet  time.Time                  // since when no instance is there
	noisy  int                        // the last look that showed one
	still  int                        // looks in a row that were clean
	done   bool                       // all is gone, and the settle window was clean
}

// trace is what is known of one thing.
type trace struct {
	thing
	of     *resourceKind
	look   int       // the last look that showed it; 0: none
	last   time.Time // when that was
	asked  time.Time // when AWS was first asked to end it
	again  time.Time // and last
	asks   int
	proof  string // that it is gone
	reason string // why it could not be removed
	denied bool   // asking again makes no sense
}

// run removes and watches. It returns early when it can't get any further; what
// is not proven gone then is on record in known and blind.
func (s *sweep) run(ctx context.Context) error {
	began := time.Now()
	s.known, s.hidden, s.news = map[string]*trace{}, map[string]time.Time{}, began
	for _, id := range s.ids {
		s.known[kindInstance+id] = &trace{thing: thing{kind: kindInstance, id: id}, of: kindNamed(kindInstance)}
	}
	for told := false; ; {
		looked := time.Now()
		s.look(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.remove(ctx)
		switch {
		case s.clean() && looked.Sub(s.news) >= s.p.settle:
			s.done = true
			s.conclude()
			return nil
		case s.clean() && !told:
			s.say(-1, fmt.Sprintf("nothing is left in %s; watching for %s that nothing shows up late", s.region, s.p.settle))
			told = true
		case s.hopeless(began):
			s.conclude()
			return fmt.Errorf("not everything in %s is proven gone", s.region)
		}
		if err := waits.Pause(ctx, s.rest()); err != nil {
			return err
		}
	}
}

// rest is the pause until the next look. While nothing is there that could be
// waited for or removed they become longer, as each costs a dozen calls of the
// account's; the last one is when the settle window ends.
func (s *sweep) rest() time.Duration {
	if !s.clean() {
		s.still = 0
		return s.p.poll()
	}
	s.still++
	left := s.p.settle - time.Since(s.news)
	return min(time.Duration(min(s.still, longestPause))*s.p.poll(), max(left, 0))
}

// look asks AWS for everything of this life, all kinds at once.
func (s *sweep) look(ctx context.Context) {
	began := time.Now()
	found := make([][]thing, len(resourceKinds))
	errs := make([]error, len(resourceKinds))
	var all sync.WaitGroup
	for n, k := range resourceKinds {
		all.Go(func() { found[n], errs[n] = s.list(ctx, k) })
	}
	all.Wait()
	s.looks++
	s.blind = map[string]*awsapi.Problem{}
	for n, k := range resourceKinds {
		for _, t := range found[n] {
			s.see(k, t)
		}
		s.note(k.name, began, errs[n])
	}
	if s.running() {
		s.quiet, s.noisy = time.Time{}, s.looks
	} else if s.quiet.IsZero() {
		s.quiet = time.Now()
	}
}

// note takes down whether a kind could be seen by a look.
func (s *sweep) note(kind string, at time.Time, err error) {
	if err == nil {
		delete(s.hidden, kind)
		return
	}
	s.blind[kind] = awsapi.Explain(err, awsapi.Call{Action: kindNamed(kind).looks(), Region: s.region})
	if _, already := s.hidden[kind]; !already {
		s.hidden[kind] = at
	}
}

// list gives all of one kind: by tag, and by whatever else it is known by.
func (s *sweep) list(ctx context.Context, k *resourceKind) ([]thing, error) {
	ways := [][]types.Filter{{filter("tag:"+tagLife, s.life.ID)}}
	if k.byName != "" && s.life.Name != "" {
		ways = append(ways, []types.Filter{filter(k.byName, baseName(s.life))})
	}
	var all []thing
	if k.name == kindInstance {
		for some := range slices.Chunk(s.ids, mostValues) {
			ways = append(ways, []types.Filter{filter("instance-id", some...)})
		}
		for some := range slices.Chunk(s.tokens, mostValues) {
			if err := eachOfTokens(ctx, s.ec2, some, func(i types.Instance) { all = append(all, instanceThing(i)) }); err != nil {
				return all, err
			}
		}
	}
	for _, f := range ways {
		found, err := k.list(ctx, s.ec2, f)
		if k.name == kindPlacement {
			if !s.grouped && !s.listed && awsapi.Unserved(err) {
				return nil, nil
			}
			s.listed = s.listed || err == nil
		}
		if err != nil && !unheardOf(err) {
			return all, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// unheardOf reports whether an endpoint does not know a call at all, as an
// emulator may: then there is nothing there that it would be for.
func unheardOf(err error) bool {
	p := awsapi.Explain(err, awsapi.Call{})
	return p != nil && p.Code == "InvalidAction"
}

// mostValues is how many values a filter may have.
const mostValues = 200

// see takes down what AWS has shown.
func (s *sweep) see(k *resourceKind, t thing) {
	if !s.concerns(t) {
		return
	}
	was := s.known[t.kind+t.id]
	if was == nil {
		was = &trace{of: k}
		s.known[t.kind+t.id] = was
	}
	first := was.look == 0
	now := time.Now()
	was.look, was.last = s.looks, now
	if was.gone { // what is shown as alive after that is an older view of it
		return
	}
	was.thing = t
	switch {
	case t.gone:
		was.proof = goneProof(t, now)
		if t.kind == kindInstance {
			s.say(-1, t.id+" "+was.proof)
		}
	case t.kind == kindInstance || first:
		s.news = now
	}
}

// concerns reports whether a thing says that it belongs to this life, or has an
// id, a token or a name that only this life can have given it.
func (s *sweep) concerns(t thing) bool {
	if !s.owns(t) {
		return false
	}
	return t.tags[tagLife] == s.life.ID ||
		t.kind == kindInstance && (slices.Contains(s.ids, t.id) || slices.Contains(s.tokens, t.token)) ||
		t.kind != kindInstance && s.life.Name != "" && t.name == baseName(s.life)
}

// ours reports whether a thing may be removed: by its own tags, whatever it was
// found by; or by its id, where AWS gave that to a call of this life's, and the thing
// has no tags at all: there are endpoints that keep none of some kinds.
func (s *sweep) ours(t thing) bool {
	return t.tags[tagLife] == s.life.ID && s.owns(t) || len(t.tags) == 0 && slices.Contains(s.theirs, t.kind+t.id)
}

// owns reports whether a thing is whose it has to be, whichever session made it.
func (s *sweep) owns(t thing) bool {
	return s.owner == "" || awsapi.Principal(t.tags[tagOwner]) == s.owner
}

// goneProof is how a thing that is still listed is known to be no more.
func goneProof(t thing, now time.Time) string {
	proof := "seen " + t.phase + " at " + now.UTC().Format("15:04:05") + " UTC"
	if t.why != "" {
		proof += " (" + t.why + ")"
	}
	return proof
}

// remove asks for the end of whatever can be ended now.
func (s *sweep) remove(ctx context.Context) {
	running := s.running() || s.blind[kindInstance] != nil
	var due []*trace
	for _, t := range s.traces() {
		switch {
		case !s.present(t) || t.busy || t.denied || running && !t.of.early:
		case !s.ours(t.thing):
			t.denied, t.reason = true, "it does not carry the tag "+tagLife+"="+s.life.ID+", and is left alone"
		case t.phase != "shutting-down" && time.Since(t.again) >= s.patience(t):
			due = append(due, t)
		}
	}
	due = s.terminateAll(ctx, due)
	for _, t := range due {
		if ctx.Err() == nil {
			s.ask(ctx, t)
		}
	}
}

// patience is how long AWS is given before it is asked once more.
func (s *sweep) patience(t *trace) time.Duration {
	if t.reason == "" {
		return s.p.settle / 4
	}
	return s.p.poll()
}

// terminateAll ends all instances by one call; it returns what is left to be
// asked for one by one. AWS refuses the whole call for one bad id.
func (s *sweep) terminateAll(ctx context.Context, due []*trace) []*trace {
	first := slices.IndexFunc(due, func(t *trace) bool { return t.kind != kindInstance })
	if first < 0 {
		first = len(due)
	}
	if first < 2 {
		return due
	}
	var ids []string
	for _, t := range due[:first] {
		s.asking(t)
		ids = append(ids, t.id)
	}
	if err := terminateInstances(ctx, s.ec2, ids); err != nil {
		return due
	}
	return due[first:]
}

// ask sends the call that ends a thing.
func (s *sweep) ask(ctx context.Context, t *trace) {
	s.asking(t)
	problem := awsapi.Explain(t.of.remove(ctx, s.ec2, t.thing), awsapi.Call{Action: t.of.action, Region: s.region, ID: t.id})
	t.reason = ""
	if problem == nil || problem.Kind == awsapi.NotFound {
		return // whether it is gone, the next look tells
	}
	t.reason = problem.Cause
	t.denied = problem.Kind == awsapi.NoPermission
}

func (s *sweep) asking(t *trace) {
	t.asks, t.again = t.asks+1, time.Now()
	if t.asked.IsZero() {
		t.asked = t.again
		s.say(-1, "removing "+t.kind+" "+t.id+" in "+s.region)
	}
}

// present reports whether a thing may still be there: the last look showed it,
// or could not see its kind.
func (s *sweep) present(t *trace) bool {
	return t.proof == "" && t.look > 0 && (t.look == s.looks || s.blind[t.kind] != nil)
}

// running reports whether there are instances that have to go before the rest.
func (s *sweep) running() bool {
	for _, t := range s.known {
		if t.kind == kindInstance && s.present(t) && !t.denied {
			return true
		}
	}
	return false
}

// clean reports whether the last look saw everything, and nothing of this life.
func (s *sweep) clean() bool {
	if len(s.blind) > 0 {
		return false
	}
	for _, t := range s.known {
		if s.present(t) {
			return false
		}
	}
	return true
}

// hopeless reports whether going on is of no use: whatever is left refuses to
// go, or can't be seen. Every other thing has had the settle window by then.
func (s *sweep) hopeless(began time.Time) bool {
	if s.locked() {
		return true
	}
	if s.clean() || time.Since(began) < s.p.settle {
		return false
	}
	for kind, p := range s.blind {
		if !final(p) && time.Since(s.hidden[kind]) < s.p.settle {
			return false
		}
	}
	for _, t := range s.known {
		if s.present(t) && s.blind[t.kind] == nil && !s.lost(t) {
			return false
		}
	}
	return true
}

// locked reports whether AWS lets the caller see nothing at all.
func (s *sweep) locked() bool {
	for _, p := range s.blind {
		if !final(p) {
			return false
		}
	}
	return len(s.blind) == len(resourceKinds)
}

// final problems don't go away by themselves.
func final(p *awsapi.Problem) bool {
	return p.Kind == awsapi.NoPermission || p.Kind == awsapi.NoCredentials
}

// lost reports whether a thing has had all the time, and all the tries, that
// there are.
func (s *sweep) lost(t *trace) bool {
	switch {
	case t.denied:
		return true
	case t.reason == "" && t.again.After(t.last):
		return false // AWS has just agreed: the next look tells
	case t.phase == "shutting-down":
		return s.stays(t, longestEnd)
	case t.kind == kindInstance:
		return t.asks >= fewestTries && s.stays(t, s.p.settle)
	case s.quiet.IsZero() || s.blind[kindInstance] != nil:
		return true // without the instances it can't go
	case !t.busy && t.asks < fewestTries:
		return false
	}
	return time.Since(s.quiet) > 5*s.p.settle/2 && s.looks-s.noisy >= fewestTries
}

// longestEnd is how long an instance that AWS is ending is waited for: large
// ones take minutes. It is no matter of how soon AWS shows what it has done, so
// an emulator's settle window does not shorten it.
const longestEnd = 16 * time.Minute

// stays reports whether a thing was asked to end so long ago.
func (s *sweep) stays(t *trace, d time.Duration) bool {
	return !t.asked.IsZero() && time.Since(t.asked) > d
}

// conclude says of what is not listed any more that it is gone. That it is
// absent proves that only when it has been so for the settle window, or when it
// was removed.
func (s *sweep) conclude() {
	for _, t := range s.known {
		if t.proof != "" || s.present(t) || s.blind[t.kind] != nil {
			continue
		}
		switch {
		case t.kind != kindInstance && !t.asked.IsZero():
			t.proof = "removed; AWS does not list it any more"
		case s.done || t.look > 0 && time.Since(t.last) >= s.p.settle:
			t.proof = fmt.Sprintf("not listed by AWS for %s", s.p.settle)
		}
	}
}

// traces are all things of this life, in the order in which they can go.
func (s *sweep) traces() []*trace {
	return slices.SortedFunc(maps.Values(s.known), func(a, b *trace) int {
		return cmp.Or(slices.Index(resourceKinds, a.of)-slices.Index(resourceKinds, b.of), strings.Compare(a.id, b.id))
	})
}
