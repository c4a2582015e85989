package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/pattern"
)

// Market answers which machines can be had. Its methods may be called from
// several goroutines.
type Market struct {
	api *awsapi.API
	dir string
	now func() time.Time

	wait    patience
	silence silence
}

// NewMarket makes a market that keeps AWS's answers below cacheDir; an empty
// one keeps none. Without an api it knows what is built in.
func NewMarket(api *awsapi.API, cacheDir string) *Market {
	return &Market{api: api, dir: cacheDir, now: time.Now, wait: usualPatience}
}

// Offers answers a query, ranked: what can be had before what cannot, what AWS
// told of before what only the table knows, then by the price of the machine in the market asked for, of a GPU, and of a GB of
// its memory. A part of the market that AWS does not tell is in the notes and
// fails nothing. The error is a *NoFit when no type meets the need, and an
// *UnknownType when the query names one that is not there.
func (m *Market) Offers(ctx context.Context, q cloud.Query) (cloud.Offers, error) {
	q.Instance = typeName(q.Instance)
	regions, err := m.regions(q.Regions)
	if err != nil {
		return cloud.Offers{}, err
	}
	views, err := m.look(ctx, regions, scopeOf(q), q.Fresh)
	if err != nil {
		return cloud.Offers{}, err
	}
	answer := summary(views, m.now())
	all, err := m.candidates(ctx, views, q)
	if err != nil {
		return answer, err
	}
	fit, err := sift(all, q.Need, q.Spot)
	answer.Offers = plain(rank(fit, q.Spot))
	return answer, err
}

// Lookup says all of one instance type in one region. The error is an
// *UnknownType when the region does not have it.
func (m *Market) Lookup(ctx context.Context, region, instanceType string) (cloud.Offer, error) {
	answer, err := m.Offers(ctx, cloud.Query{Regions: []string{region}, Instance: instanceType})
	if err != nil {
		return cloud.Offer{}, err
	}
	return answer.Offers[0], nil
}

// Facts says what is the same of a type in every region, as far as the given
// one has it.
func (m *Market) Facts(ctx context.Context, region, instanceType string) (Facts, error) {
	name := typeName(instanceType)
	regions, err := m.regions([]string{region})
	if err != nil {
		return Facts{}, err
	}
	views, err := m.look(ctx, regions, scopeOf(cloud.Query{Instance: name}), false)
	if err != nil {
		return Facts{}, err
	}
	if f, ok := views[0].find(name); ok {
		return f, nil
	}
	return Facts{}, m.unknown(ctx, &views[0], name)
}

// Choose gives the offers that a spec may be launched with, in the order in
// which to try them: what can be had before what cannot; what AWS told of before
// what only the table knows; machines that the usual images and wheels run on
// before those that need care; region by region as the spec lists them; then as
// Offers ranks. Of a need that sets no price, none costs more than twice what the
// first one does: who asked for one GPU does not want eight because the small
// machines are taken.
func (m *Market) Choose(ctx context.Context, spec cloud.Spec) ([]cloud.Offer, error) {
	if spec.Instance == "" && spec.Need.None() {
		return nil, errors.New("which machine? Name an instance type, or say what it needs (gpu, gpus, memory, max_price)")
	}
	q := cloud.Query{Regions: spec.Regions, Need: spec.Need, Spot: spec.Spot, Count: spec.Count}
	if spec.Instance != "" {
		q.Instance, q.Need = typeName(spec.Instance), cloud.Need{}
	}
	regions, err := m.regions(q.Regions)
	if err != nil {
		return nil, err
	}
	views, err := m.look(ctx, regions, scopeOf(q), false)
	if err != nil {
		return nil, err
	}
	all, err := m.candidates(ctx, views, q)
	if err != nil {
		return nil, err
	}
	fit, err := sift(all, q.Need, q.Spot)
	chosen := prefer(rank(fit, q.Spot))
	if spec.Instance == "" && spec.Need.MaxPrice == 0 {
		chosen = near(chosen, q.Spot)
	}
	return plain(chosen), err
}

// Dearest is how many times as much as the first choice a fallback may cost where
// the need sets no price.
const Dearest = 2

// near leaves out what costs more than that in one of the markets, and what has no
// price where the first choice has one.
func near(list []candidate, spot bool) []candidate {
	if len(list) == 0 {
		return list
	}
	first := list[0].Offer
	tooDear := func(price, of float64) bool { return of > 0 && (price <= 0 || price > Dearest*of) }
	return slices.DeleteFunc(list, func(c candidate) bool {
		return tooDear(marketPrice(c.Offer, spot), marketPrice(first, spot)) || tooDear(c.OnDemand.PerHour, first.OnDemand.PerHour)
	})
}

// candidates are the types of all views that the query is about.
func (m *Market) candidates(ctx context.Context, views []view, q cloud.Query) ([]candidate, error) {
	var all []candidate
	var missing []error
	for i := range views {
		found := views[i].candidates(q)
		if q.Instance != "" && len(found) == 0 {
			missing = append(missing, m.unknown(ctx, &views[i], q.Instance))
		}
		for _, c := range found {
			c.turn = i
			all = append(all, c)
		}
	}
	if len(all) == 0 && len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	return all, nil
}

var (
	regionForm = pattern.New(`^[a-z]{2}[a-z0-9-]{3,30}$`)
	typeForm   = pattern.New(`^[a-z][a-z0-9-]{0,30}\.[a-z0-9-]{1,30}$`)
)

// regions are the ones asked for; none asked for is the user's own.
func (m *Market) regions(asked []string) ([]string, error) {
	for _, r := range asked {
		if !regionForm.MatchString(r) {
			return nil, fmt.Errorf("%q is not the name of an AWS region; one is \"us-east-1\"", r)
		}
	}
	switch {
	case len(asked) > 0:
		return asked, nil
	case m.api != nil && regionForm.MatchString(m.api.Region()):
		return []string{m.api.Region()}, nil
	}
	return []string{tableRegion}, nil
}

func typeName(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// scope is the part of the types that a question is about.
type scope struct {
	name     string   // of its answers on the shelf
	patterns []string // of the types' names; none: all
	gpu      bool
	within   string // the name of the scope whose answers have its types too, if any
}

var gpuScope = scope{name: "gpu", patterns: []string{"g*", "p*"}, gpu: true}

// scopeOf asks about one type only where one is named: AWS needs a second or two
// to tell of all that have a GPU.
func scopeOf(q cloud.Query) scope {
	switch {
	case q.Instance == "" && q.CPU:
		return scope{name: "all"}
	case q.Instance == "":
		return gpuScope
	case !typeForm.MatchString(q.Instance):
		return gpuScope // it cannot be there, and AWS would take a * as any
	}
	sc := scope{name: q.Instance, patterns: []string{q.Instance}}
	switch familyLetters(q.Instance) {
	case "g", "gr", "p":
		sc.within = gpuScope.name
	}
	return sc
}

// view is what is known of one region.
type view struct {
	region string
	scope  scope

	types   answer[[]Facts]
	offered answer[map[string][]string] // zones by type
	zoneIDs answer[map[string]string]
	spot    answer[map[string]map[string]float64] // by type and zone
	prices  answer[map[string]float64]
	quotas  answer[quotas]
}

// look gathers all regions at once.
func (m *Market) look(ctx context.Context, regions []string, sc scope, fresh bool) ([]view, error) {
	views := make([]view, len(regions))
	var wg sync.WaitGroup
	for i, region := range regions {
		wg.Go(func() {
			views[i] = view{region: region, scope: sc}
			m.gather(ctx, &views[i], fresh)
		})
	}
	wg.Wait()
	return views, ctx.Err()
}

// gather asks for all parts of a region at once; each may fail by itself.
func (m *Market) gather(ctx context.Context, v *view, fresh bool) {
	s, err := m.shelf(ctx, v.region, fresh)
	if err != nil {
		v.types.err, v.offered.err, v.zoneIDs.err = err, err, err
		v.spot.err, v.prices.err, v.quotas.err = err, err, err
		return
	}
	l := live{m.api, v.region, v.scope}
	of := func(name string) part { return part{name, v.scope} }
	known := make(chan struct{})
	names := func() []string { <-known; return v.names() }
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(known)
		v.types = ask(ctx, s, of("types"), youngFacts, l.facts)
	})
	wg.Go(func() { v.offered = ask(ctx, s, of("zones"), youngFacts, l.offered) })
	wg.Go(func() { v.zoneIDs = ask(ctx, s, part{name: "zone-ids"}, youngFacts, l.zoneIDs) })
	wg.Go(func() { v.quotas = ask(ctx, s, part{name: "quotas"}, youngQuotas, l.quotas) })
	wg.Go(func() {
		v.prices = ask(ctx, s, of("prices"), youngPrices, func(ctx context.Context) (map[string]float64, error) {
			return l.prices(ctx, names)
		})
	})
	wg.Go(func() {
		v.spot = ask(ctx, s, of("spot"), youngSpot, func(ctx context.Context) (map[string]map[string]float64, error) {
			return l.spot(ctx, names())
		})
	})
	wg.Wait()
}

// names are the types of the scope.
func (v *view) names() []string {
	if !v.scope.gpu {
		return v.scope.patterns // the one that is named, or none: all
	}
	var names []string
	for _, f := range v.facts() {
		names = append(names, f.Instance)
	}
	return names
}

// facts are the types of the region, or of the table when AWS did not say.
func (v *view) facts() []Facts {
	if v.types.ok {
		return v.types.value
	}
	return builtinFacts()
}

func (v *view) find(name string) (Facts, bool) {
	for _, f := range v.facts() {
		if f.Instance == name {
			return f, true
		}
	}
	return Facts{}, false
}

// credentialsLimit bounds the wait for credentials.
const credentialsLimit = 5 * time.Second

// shelf is the place for the answers to the present caller about one region.
// Zones and quotas are the account's own, so each account has its shelf, and
// so has each endpoint. Without credentials there is none.
func (m *Market) shelf(ctx context.Context, region string, fresh bool) (shelf, error) {
	account, err := m.account(ctx, fresh)
	if err != nil {
		return shelf{}, err
	}
	s := shelf{region: region, fresh: fresh, now: m.now, wait: m.wait, silence: &m.silence}
	if m.dir != "" {
		s.dir = filepath.Join(m.dir, account, region)
	}
	return s, nil
}

// account is a name for whoever asks, found without asking AWS and telling
// nothing about them.
func (m *Market) account(ctx context.Context, fresh bool) (string, error) {
	if m.api == nil {
		return "", errors.New("there is no AWS configuration")
	}
	if err := m.silence.of("credentials", m.now()); err != nil && !fresh {
		return "", err
	}
	who, err := m.caller(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.silence.heard("credentials", err, m.now())
		}
		return "", err
	}
	sum := sha256.Sum256([]byte(who + "\n" + m.api.Endpoint()))
	return hex.EncodeToString(sum[:8]), nil
}

// caller is the account where the credentials tell it, else their public part.
func (m *Market) caller(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, credentialsLimit)
	defer cancel()
	if _, err := m.api.Source(limited); err != nil {
		return "", awsapi.Explain(err, awsapi.Call{})
	}
	p := m.api.EC2(tableRegion).Options().Credentials
	if p == nil {
		return "", errors.New("there are no AWS credentials")
	}
	c, err := p.Retrieve(limited)
	if err != nil {
		return "", fmt.Errorf("there are no AWS credentials: %w", err)
	}
	return cmp.Or(c.AccountID, c.AccessKeyID), nil
}
