// Package ec2 makes clusters of EC2 instances. Whatever costs money is in the
// ledger before the call that makes it; what became of a call is found out
// from AWS, by token and by tag, and never guessed.
package ec2

import (
	"context"
	"sync"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/ec2/options"
)

// kind is the name of this provider in profiles and receipts.
var kind = options.Provider.Name

// Options say how a Provider works.
type Options struct {
	// Dir is a directory for what may be forgotten: cached offers.
	Dir string
	// Settle is for how long a life that was taken down, or a call of which
	// nobody knows what became, is watched before nothing more is expected
	// of it. 0 means DLWB_SETTLE, else two minutes.
	Settle time.Duration
	// Jump finds the hosts on the way to what the user's own ssh calls by a name,
	// the last of which is that host, and proves who they are; ask allows questions
	// to a person. nil: there are none.
	Jump func(ctx context.Context, name string, ask bool) ([]cloud.Jump, error)
}

// Provider makes clusters of EC2 instances. Its methods may be called from
// several goroutines.
type Provider struct {
	dir    string
	settle time.Duration
	// connect gives the EC2 client of a region.
	connect func(ctx context.Context, region string) (client, error)
	jumpTo  func(ctx context.Context, name string, ask bool) ([]cloud.Jump, error)

	mu     sync.Mutex
	loaded *awsapi.API
	offers *catalog.Market
}

// New makes a provider. It reads no credentials and sends nothing: that is left
// to the first call that needs AWS.
func New(o Options) *Provider {
	if o.Settle == 0 {
		o.Settle = awsapi.Settle()
	}
	p := &Provider{dir: o.Dir, settle: o.Settle, jumpTo: o.Jump}
	p.connect = p.client
	return p
}

// own are the options of a spec that only this provider has.
func own(spec cloud.Spec) options.Machines { return about.Own[options.Machines](spec.Own) }

// Kind is "ec2".
func (p *Provider) Kind() string { return kind }

// poll is the pause between two looks at the same thing.
func (p *Provider) poll() time.Duration {
	return min(max(p.settle/40, 20*time.Millisecond), 3*time.Second)
}

// api is the door to AWS, opened at the first call.
func (p *Provider) api(ctx context.Context) (*awsapi.API, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded == nil {
		api, err := awsapi.Load(ctx)
		if err != nil {
			return nil, err
		}
		p.loaded = api
	}
	return p.loaded, nil
}

// market is what AWS offers.
func (p *Provider) market(ctx context.Context) (*catalog.Market, error) {
	api, err := p.api(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.offers == nil {
		p.offers = catalog.NewMarket(api, p.dir)
	}
	return p.offers, nil
}

// Meet reaches the jump host of a spec, where it names one, and so asks a person
// what there is to ask.
func (p *Provider) Meet(ctx context.Context, spec cloud.Spec) error {
	_, err := p.jumps(ctx, way{kind: wayJump, jump: own(spec).Jump}, true)
	return err
}

// Offers lists the instance types that can be had, the best first.
func (p *Provider) Offers(ctx context.Context, q cloud.Query) (cloud.Offers, error) {
	m, err := p.market(ctx)
	if err != nil {
		return cloud.Offers{}, err
	}
	return m.Offers(ctx, q)
}

// client is the EC2 client of a region.
func (p *Provider) client(ctx context.Context, region string) (client, error) {
	api, err := p.api(ctx)
	if err != nil {
		return nil, err
	}
	return api.EC2(region), nil
}

var _ client = (*awsec2.Client)(nil)
