package ec2

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/ec2/lifekeys"
	"github.com/dlwb/dlwb/cloud/ec2/policy"
)

// probe is one call made as a dry run. An endpoint that does not know dry runs
// carries it out; undo takes back what that has made.
type probe struct {
	action string
	try    func(ctx context.Context) error
	undo   func(ctx context.Context) error
}

// permissions tries every call that makes something, as a dry run. Those that
// end something can't be tried before there is something to end: the least
// policy allows them by tag, and AWS refuses a dry run on what has none.
func (c *preflight) permissions(ctx context.Context) cloud.Finding {
	const what = "permissions"
	ec2, err := c.p.connect(ctx, c.region)
	if err != nil {
		return failed(what, err, "")
	}
	all := c.probes(ec2)
	if c.api.Endpoint() == "" {
		return c.judge(all, c.dryRuns(ctx, all))
	}
	// Of another endpoint it is found out first whether it knows dry runs: by a
	// call that makes nothing, then by what costs nothing, then by a launch.
	harmless := []probe{{action: "DescribeRegions", try: func(ctx context.Context) error {
		_, err := ec2.DescribeRegions(ctx, &awsec2.DescribeRegionsInput{DryRun: aws.Bool(true)})
		return err
	}}}
	paid := slices.IndexFunc(all, func(p probe) bool { return p.action == "RunInstances" })
	if paid < 0 {
		paid = len(all)
	}
	var problems []*awsapi.Problem
	for _, some := range [][]probe{harmless, all[:paid], all[paid:]} {
		problems = append(problems, c.dryRuns(ctx, some)...)
		if slices.ContainsFunc(problems, func(p *awsapi.Problem) bool { return p != nil && errors.Is(p.Err, errNoDryRun) }) {
			break
		}
	}
	return c.judge(append(harmless, all...), problems)
}

// dryRuns makes dry runs, all at once.
func (c *preflight) dryRuns(ctx context.Context, all []probe) []*awsapi.Problem {
	problems := make([]*awsapi.Problem, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { problems[i] = c.dryRun(ctx, p) })
	}
	wg.Wait()
	return problems
}

// errNoDryRun is that a dry run was carried out.
var errNoDryRun = errors.New("the endpoint does not know dry runs")

// undoLimit bounds the wait for what a dry run has made to be taken back.
const undoLimit = 10 * time.Second

// carriedOut takes back what a dry run has made.
func (p probe) carriedOut(ctx context.Context) *awsapi.Problem {
	problem := &awsapi.Problem{Kind: awsapi.Unknown, Err: errNoDryRun, Cause: p.action + ": " + errNoDryRun.Error()}
	if p.undo == nil {
		return problem
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	if err := p.undo(ctx); err != nil {
		problem.Cause += ", and what it made could not be removed: " + awsapi.Explain(err, awsapi.Call{Action: p.action}).Cause
		problem.Next = "dlwb gc finds it"
	}
	return problem
}

// dryRun returns nil when the call would be carried out.
func (c *preflight) dryRun(ctx context.Context, p probe) *awsapi.Problem {
	err := p.try(ctx)
	if awsapi.Allowed(err) {
		return nil
	}
	if err == nil {
		return p.carriedOut(ctx)
	}
	call := awsapi.Call{Action: p.action, Region: c.region, Count: c.spec.Count, Spot: c.spec.Spot, Dry: true}
	if len(c.offers) > 0 {
		o := c.offers[0]
		call.Instance, call.VCPUs = o.Instance, o.VCPUs
		_, call.Quota = catalog.QuotaName(o.Instance, c.spec.Spot)
	}
	return awsapi.Explain(err, call)
}

// judge makes one finding of all dry runs: a permission that is missing comes
// first, then a request that AWS does not take, then what nobody knows.
func (c *preflight) judge(all []probe, problems []*awsapi.Problem) cloud.Finding {
	const what = "permissions"
	var allowed, lacking []string
	var refused, unsure *awsapi.Problem
	for i, p := range problems {
		switch {
		case p == nil:
			if !strings.HasPrefix(all[i].action, "Describe") && !slices.Contains(allowed, all[i].action) {
				allowed = append(allowed, all[i].action)
			}
		case p.Kind == awsapi.NoPermission && p.Missing != "":
			lacking = append(lacking, p.Missing)
			refused = p
		case all[i].action == "CreatePlacementGroup" && (awsapi.Unserved(p) || unheardOf(p)): // it is done without; see up.near
		case p.Kind == awsapi.Unknown || p.Kind == awsapi.Throttled || p.Kind == awsapi.Unreachable:
			unsure = p
		case refused == nil:
			refused = p
		}
	}
	slices.Sort(lacking)
	lacking = slices.Compact(lacking)
	switch {
	case len(lacking) > 0:
		return missing(what, "these credentials have no permission for "+strings.Join(lacking, ", "),
			policy.Grant(c.who.ARN, lacking)+" (docs/aws.md has all that dlwb needs)"+told(refused))
	case refused != nil:
		return missing("launch", refused.Cause, refused.Next)
	case unsure != nil:
		return cloud.Unchecked(what, "not checked: "+unsure.Cause, unsure.Next)
	}
	return found(what, "AWS would allow "+strings.Join(allowed, ", "))
}

// told is how to read what else AWS says of a refusal.
func told(p *awsapi.Problem) string {
	if p == nil {
		return ""
	}
	if i := strings.Index(p.Next, "; AWS tells more by: "); i >= 0 {
		return p.Next[i:]
	}
	return ""
}

// probes are the calls that Up would make.
func (c *preflight) probes(ec2 client) []probe {
	yes := aws.Bool(true)
	life := cloud.Life{Name: c.spec.Name, ID: dryLife()}
	t := tags(life, c.who.Principal(), time.Now(), own(c.spec).Tags)
	token := "dlwb-" + life.ID + "-dry"
	name := aws.String(baseName(life))
	all := []probe{{action: "ImportKeyPair", undo: func(ctx context.Context) error {
		return deleteKey(ctx, ec2, thing{name: *name})
	}, try: func(ctx context.Context) error {
		key, err := throwaway()
		if err != nil {
			return err
		}
		_, err = ec2.ImportKeyPair(ctx, &awsec2.ImportKeyPairInput{DryRun: yes, KeyName: name, PublicKeyMaterial: key,
			TagSpecifications: specify(token, t, types.ResourceTypeKeyPair)}, awsapi.Once)
		return err
	}}}
	if c.spec.Count > 1 {
		all = append(all, probe{action: "CreatePlacementGroup", undo: func(ctx context.Context) error {
			return deletePlacement(ctx, ec2, thing{name: *name})
		}, try: func(ctx context.Context) error {
			_, err := ec2.CreatePlacementGroup(ctx, &awsec2.CreatePlacementGroupInput{DryRun: yes, GroupName: name,
				Strategy: types.PlacementStrategyCluster, TagSpecifications: specify(token, t, types.ResourceTypePlacementGroup)}, awsapi.Once)
			return err
		}})
	}
	if c.netErr == nil && len(own(c.spec).Groups) == 0 {
		var made thing
		all = append(all, probe{action: "CreateSecurityGroup", undo: func(ctx context.Context) error {
			return deleteGroup(ctx, ec2, made)
		}, try: func(ctx context.Context) error {
			out, err := ec2.CreateSecurityGroup(ctx, &awsec2.CreateSecurityGroupInput{DryRun: yes, GroupName: name, VpcId: &c.net.VPC,
				Description: aws.String("dlwb"), TagSpecifications: specify(token, t, types.ResourceTypeSecurityGroup)}, awsapi.Once)
			if err == nil {
				made.id = aws.ToString(out.GroupId)
			}
			return err
		}})
	}
	for _, in := range c.launchInputs(token, t) {
		var made []string
		all = append(all, probe{action: "RunInstances", undo: func(ctx context.Context) error {
			return terminateInstances(ctx, ec2, made)
		}, try: func(ctx context.Context) error {
			out, err := ec2.RunInstances(ctx, in, awsapi.Once)
			if err == nil {
				for _, i := range out.Instances {
					made = append(made, aws.ToString(i.InstanceId))
				}
			}
			return err
		}})
	}
	return all
}

// dryLife is the life of what a dry run would make: one that is there only once,
// so that what an endpoint makes of it all the same is in nobody's way.
func dryLife() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// throwaway is a public key that nobody has the private half of.
func throwaway() ([]byte, error) {
	b, err := lifekeys.New("dlwb dry run")
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, err
	}
	return ssh.MarshalAuthorizedKey(signer.PublicKey()), nil
}

// launchInputs are the launches as Up would ask for them, but for what is made only
// then: the key, the groups and the client token. There are none when too little is
// known.
func (c *preflight) launchInputs(token string, t map[string]string) (all []*awsec2.RunInstancesInput) {
	l, ok := c.launch()
	if !ok || wanted(c.spec) < 1 || c.netErr != nil || c.imgErr != nil {
		return nil
	}
	usable := c.usable()
	if len(usable) == 0 || c.reserveErr != nil {
		return nil
	}
	l.Zone, l.Tags, l.Nodes = usable[0].Name, t, make([]int, wanted(c.spec))
	l.Subnet = c.net.Subnets[l.Zone]
	launches := []launch{l}
	if h := c.lead(l); h != nil && headWanted(c.spec) {
		launches = append(launches, *h)
	}
	for _, l := range launches {
		in := l.input(token, nil)
		in.DryRun, in.ClientToken, in.KeyName, in.UserData = aws.Bool(true), nil, nil, nil
		for i := range in.NetworkInterfaces {
			in.NetworkInterfaces[i].Groups = nil
		}
		all = append(all, in)
	}
	return all
}
