package ec2

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/volume"
	"github.com/dlwb/dlwb/internal/units"
)

// Down removes everything that a life has, in every region of its ledger, and
// watches until nothing more of it can show up. It says gone of nothing that it
// has not seen.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	receipt := cloud.Receipt{Cluster: life.Name, Provider: kind}
	fail := func(err error) (cloud.Receipt, error) {
		return receipt, fmt.Errorf("take down cluster %s: %w", life.Name, err)
	}
	entries, err := life.Ledger.Entries()
	if err != nil {
		receipt.Resources = []cloud.Resource{{Kind: "ledger", ID: life.ID, Proof: err.Error(), State: cloud.Unknown}}
		return fail(err)
	}
	sweeps, err := p.sweeps(ctx, life, entries, orSilent(progress))
	if err != nil {
		receipt.Resources = unseen(entries, err)
		receipt.Resources = append(receipt.Resources, ended(entries)...)
		return fail(err)
	}
	err = runAll(ctx, sweeps)
	volumes, volErr := p.release(ctx, life.Ledger, entries)
	err = errors.Join(err, volErr)
	err = errors.Join(err, settleEntries(life.Ledger, entries, sweeps))
	for _, s := range sweeps {
		receipt.Resources = append(receipt.Resources, s.resources(entries)...)
	}
	receipt.Resources = append(receipt.Resources, volumes...)
	for _, was := range ended(entries) { // AWS lists a machine for an hour after its end
		if !slices.ContainsFunc(receipt.Resources, func(r cloud.Resource) bool { return r.Kind == was.Kind && r.ID == was.ID }) {
			receipt.Resources = append(receipt.Resources, was)
		}
	}
	total(&receipt, life.Began)
	if err == nil && !receipt.Proven() {
		err = errors.New("not everything is proven gone")
	}
	if err != nil {
		return fail(errors.Join(err, byHand(receipt)))
	}
	return receipt, nil
}

// orSilent makes a progress that may be called out of one that may be missing.
func orSilent(progress cloud.Progress) cloud.Progress {
	if progress == nil {
		return func(int, string) {}
	}
	return progress
}

// sweeps are those for the regions in which something of a life may still be.
func (p *Provider) sweeps(ctx context.Context, life cloud.Life, entries []cloud.Entry, say cloud.Progress) ([]*sweep, error) {
	byRegion := map[string]*sweep{}
	var all []*sweep
	for _, e := range entries {
		region, err := regionOf(e)
		if err != nil {
			return nil, err
		}
		if s := byRegion[region]; s == nil && e.Open() {
			ec2, err := p.connect(ctx, region)
			if err != nil {
				return nil, err
			}
			s = &sweep{p: p, ec2: ec2, region: region, life: life, say: say}
			byRegion[region], all = s, append(all, s)
		}
	}
	for _, e := range entries {
		region, _ := regionOf(e)
		s := byRegion[region]
		if s != nil && e.Kind == kindPlacement && e.ID != "" {
			s.grouped = true
		}
		if s != nil && e.Kind == kindInstances && e.Open() {
			s.tokens = append(s.tokens, e.Token)
			s.ids = append(s.ids, ids(e)...)
		} else if s != nil && e.ID != "" {
			s.theirs = append(s.theirs, e.Kind+e.ID)
		}
	}
	return all, nil
}

// regionOf is where a ledger entry's resource is.
func regionOf(e cloud.Entry) (string, error) {
	var at struct{ Region string }
	if err := json.Unmarshal(e.Detail, &at); err != nil || at.Region == "" {
		return "", fmt.Errorf("the ledger entry %s does not say in which region it is", e.Token)
	}
	return at.Region, nil
}

// runAll runs sweeps side by side.
func runAll(ctx context.Context, sweeps []*sweep) error {
	errs := make([]error, len(sweeps))
	var all sync.WaitGroup
	for i, s := range sweeps {
		all.Go(func() { errs[i] = s.run(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// settleEntries closes the ledger entries of what is proven gone.
func settleEntries(ledger cloud.Ledger, entries []cloud.Entry, sweeps []*sweep) (err error) {
	for _, e := range entries {
		region, _ := regionOf(e)
		i := slices.IndexFunc(sweeps, func(s *sweep) bool { return s.region == region })
		if i < 0 || !e.Open() || e.Kind == volume.Kind {
			continue
		}
		if proof := sweeps[i].proofOf(e); proof != "" {
			err = errors.Join(err, ledger.Close(e.Token, proof))
		}
	}
	return err
}

// proofOf is how it is known that what an intent made is gone, or that it made
// nothing; empty as long as it isn't.
func (s *sweep) proofOf(e cloud.Entry) string {
	if !s.done && e.ID == "" {
		return "" // it may have made what nobody has seen yet
	}
	var proofs []string
	for _, t := range s.traces() {
		switch {
		case !s.made(e, t):
		case t.proof == "":
			return ""
		default:
			proofs = append(proofs, t.id+" "+t.proof)
		}
	}
	if len(proofs) == 0 && s.done {
		return s.nothing(e.Kind)
	}
	return strings.Join(proofs, "; ")
}

// nothing is the proof for an intent of which nothing is to be seen.
func (s *sweep) nothing(kind string) string {
	if kind == kindPlacement && !s.listed {
		return "the endpoint serves neither CreatePlacementGroup nor DescribePlacementGroups: it has none"
	}
	return fmt.Sprintf("nothing of this life was seen in %s for %s, neither by token nor by tag", s.region, s.p.settle)
}

// made reports whether an intent is about a thing.
func (s *sweep) made(e cloud.Entry, t *trace) bool {
	switch e.Kind {
	case kindInstances:
		return t.kind == kindInstance && (slices.Contains(ids(e), t.id) || t.token == e.Token)
	case kindStop:
		return t.kind == kindInstance && slices.Contains(ids(e), t.id)
	}
	return t.kind == e.Kind
}

// byNode puts the machines of a receipt in the order of their nodes, kind by
// kind.
func byNode(a, b cloud.Resource) int {
	place := func(r cloud.Resource) int {
		return slices.IndexFunc(resourceKinds, func(k *resourceKind) bool { return k.name == r.Kind })
	}
	return cmp.Or(place(a)-place(b), len(a.Node)-len(b.Node), strings.Compare(a.Node, b.Node))
}

// resources are the lines of the receipt for what a sweep has met, and for open
// entries of which it has met nothing.
func (s *sweep) resources(entries []cloud.Entry) []cloud.Resource {
	var all []cloud.Resource
	for _, t := range s.traces() {
		all = append(all, s.resource(t, entries))
	}
	slices.SortStableFunc(all, byNode)
	for _, e := range entries {
		region, _ := regionOf(e)
		if region != s.region || !e.Open() || e.Kind == kindStop || e.Kind == volume.Kind || slices.ContainsFunc(s.traces(), func(t *trace) bool { return s.made(e, t) }) {
			continue
		}
		r := cloud.Resource{Kind: e.Kind, ID: e.ID, State: cloud.Gone, Proof: s.nothing(e.Kind)}
		if e.ID == "" {
			r.ID = e.Token
		}
		if !s.done {
			r.State, r.Proof = cloud.Unknown, "nobody knows yet what became of it; "+s.showByHand(kindOf(e))
		}
		all = append(all, r)
	}
	for kind, problem := range s.blind {
		all = append(all, cloud.Resource{Kind: kind, ID: "all of this life in " + s.region, State: cloud.Unknown,
			Proof: "they can't be seen: " + problem.Cause})
	}
	return all
}

// kindOf is the kind of thing that an entry makes.
func kindOf(e cloud.Entry) string {
	if e.Kind == kindInstances {
		return kindInstance
	}
	return e.Kind
}

// showByHand is the command that shows what a life has of a kind.
func (s *sweep) showByHand(kind string) string {
	return fmt.Sprintf("by hand: aws ec2 %s --region %s --filters Name=tag:%s,Values=%s", kindNamed(kind).show, s.region, tagLife, s.life.ID)
}

// resource is the line of the receipt for one thing.
func (s *sweep) resource(t *trace, entries []cloud.Entry) cloud.Resource {
	r := cloud.Resource{Kind: t.kind, ID: t.id, State: cloud.Gone, Proof: t.proof}
	s.account(&r, t, entries)
	if t.proof != "" {
		return r
	}
	hand := "; by hand: " + t.of.byHand(s.region, t.thing)
	switch {
	case t.look == s.looks && s.looks > 0:
		r.State, r.Proof = cloud.Alive, "AWS still lists it"
		if t.phase != "" {
			r.Proof += " as " + t.phase
		}
		if !t.asked.IsZero() {
			r.Proof += fmt.Sprintf(", %s after it was asked to end it", units.Clock(time.Since(t.asked)))
		}
	case s.blind[t.kind] != nil:
		r.State, r.Proof = cloud.Unknown, "it can't be seen: "+s.blind[t.kind].Cause
	default:
		r.State, r.Proof = cloud.Unknown, "AWS does not list it, and it was not seen ended"
	}
	if t.reason != "" {
		r.Proof += "; " + t.reason
	}
	r.Proof += hand
	return r
}

// unseen are the lines of the receipt when AWS could not be asked at all.
func unseen(entries []cloud.Entry, err error) []cloud.Resource {
	var all []cloud.Resource
	for _, e := range entries {
		if !e.Open() || e.Kind == kindStop {
			continue
		}
		r := cloud.Resource{Kind: e.Kind, ID: e.ID, State: cloud.Unknown, Proof: "AWS was not asked: " + err.Error()}
		if e.ID == "" {
			r.ID = e.Token
		}
		all = append(all, r)
	}
	return all
}

// byHand is the error that says what is not proven gone, and how to do it by
// hand; nil when all is.
func byHand(r cloud.Receipt) error {
	var errs []error
	for _, res := range r.Resources {
		if res.State != cloud.Gone {
			errs = append(errs, fmt.Errorf("%s %s: %s", res.Kind, res.ID, res.Proof))
		}
	}
	return errors.Join(errs...)
}
