package sagemaker

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	quotatypes "github.com/aws/aws-sdk-go-v2/service/servicequotas/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ownimage"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/units"
)

// checkLimit bounds all of a check.
const checkLimit = 9 * time.Second

// Check asks AWS for all that would keep the job from running, most of it at once.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	m := about.Own[options.Machines](spec.Own)
	out := cloud.Preflight{Findings: still(spec, m)}
	gpus := p.Shape(spec).GPUs
	for range spec.Count {
		out.GPUs = append(out.GPUs, gpus)
	}
	d, err := p.doors.Open(ctx, regionOf(spec))
	if err != nil {
		out.Findings = append(out.Findings, cloud.FromError("region", err, "aws configure"))
		return out
	}
	id, err := d.api.Identity(ctx)
	if err != nil {
		out.Findings = append(out.Findings, cloud.FromError("credentials", awsapi.Explain(err, awsapi.Call{Region: d.region}), ""))
		return out
	}
	c := &check{door: d, spec: spec, m: m, partition: partitionOf(id.ARN), account: id.Account}
	out.Findings = append(out.Findings, cloud.Passed("credentials", id.ARN+" in "+d.region))
	if c.bucketName, err = d.bucketOf(ctx, m.Bucket); err != nil {
		out.Findings = append(out.Findings, cloud.FromError("bucket", err, ""))
		return out
	}
	out.Findings = append(out.Findings, c.all(ctx)...)
	c.money(&out)
	c.text(&out)
	return out
}

// still looks for what is wrong without asking anybody.
func still(spec cloud.Spec, m options.Machines) (all []cloud.Finding) {
	if f := instanceOf(spec.Instance); !f.OK {
		all = append(all, f)
	}
	if m.Estimator != "" && spec.Restarts > 0 {
		all = append(all, cloud.Finding{What: "restarts", Text: noRestarts, Next: noRestartsNext})
	}
	limit := cmp.Or(spec.Lifetime, 24*time.Hour)
	switch {
	case spec.Spot && waitOf(m, limit) < limit:
		all = append(all, cloud.Finding{What: "spot", Text: fmt.Sprintf("machines.max_wait is %s and the job may run for %s: SageMaker wants the wait, which the run is part of, to be at least as long",
			m.MaxWait, units.Duration(limit)), Next: "machines.max_wait: " + units.Duration(2*limit) + ", or a shorter limits.lifetime"})
	case spec.Spot && m.Checkpoints == "":
		all = append(all, cloud.Warning("spot", "machines that are taken back begin the run anew: there is no machines.checkpoints", "machines.checkpoints: s3://BUCKET/PREFIX, and have the script go on from "+options.DefaultCheckpoints))
	case !spec.Spot && m.MaxWait != "":
		all = append(all, cloud.Warning("spot", "machines.max_wait is for spot machines, and the profile asks for none", "machines.spot: true"))
	}
	if spec.Spot && m.KeepAlive != "" {
		all = append(all, cloud.Finding{What: "keep_alive", Text: "spot machines are not kept for another job", Next: "leave out machines.keep_alive or machines.spot"})
	}
	if spec.Disk > 16<<40 {
		all = append(all, cloud.Finding{What: "disk", Text: "a disk has 16 TB at most", Next: "machines.disk: 16TB"})
	}
	if len(spec.Regions) > 1 {
		all = append(all, cloud.Warning("region", "a training job is tried in one region: "+spec.Regions[0], ""))
	}
	return all
}

// instanceOf looks whether a type is one of those that training jobs have, as far as
// they are known here.
func instanceOf(instance string) cloud.Finding {
	var names []string
	for _, t := range types.TrainingInstanceType("").Values() {
		names = append(names, string(t))
	}
	switch {
	case slices.Contains(names, instance):
		return cloud.Passed("instance", instance)
	case slices.Contains(names, "ml."+instance):
		return cloud.Finding{What: "instance", Text: instance + " is a type of EC2: that of SageMaker has ml. in front", Next: "machines.instance: ml." + instance}
	case !strings.HasPrefix(instance, "ml."):
		return cloud.Finding{What: "instance", Text: fmt.Sprintf("%q is no type of SageMaker: training jobs name their type", instance), Next: "machines.instance: ml.g5.xlarge"}
	}
	next := ""
	if near := nearword.Nearest(instance, names); near != "" {
		next = "did you mean " + near + "?"
	}
	return cloud.Warning("instance", instance+" is not known here; SageMaker may have it", next)
}

// check is one check of a profile.
type check struct {
	*door
	spec               cloud.Spec
	m                  options.Machines
	partition, account string
	bucketName         string
	role, image        string
	perHour            float64
	policy             string
}

// all runs the checks that do not need each other side by side. Each has its place in
// the answer.
func (c *check) all(ctx context.Context) (all []cloud.Finding) {
	parts := []func(context.Context) []cloud.Finding{c.checkRole, c.checkBuckets, c.checkImage, c.checkQuota, c.checkPrice, c.checkDebug}
	found := make([][]cloud.Finding, len(parts))
	var every sync.WaitGroup
	for i, part := range parts {
		every.Go(func() { found[i] = part(ctx) })
	}
	every.Wait()
	return slices.Concat(found...)
}

// checkRole looks for the role, whether SageMaker may take it on, and whether it may
// do what the job needs.
func (c *check) checkRole(ctx context.Context) []cloud.Finding {
	rights := c.pulling(rightsOf(c.spec, c.partition, c.region, c.bucketName))
	c.policy = policyOf(rights)
	name := c.m.Role[strings.LastIndex(c.m.Role, "/")+1:]
	out, err := c.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	switch code, _ := awsapi.CodeOf(err); {
	case code == "NoSuchEntity":
		return []cloud.Finding{{What: "role", Text: "there is no IAM role " + name, Next: "aws iam list-roles --query 'Roles[].RoleName'; the plan below has the policy that it needs"}}
	case err != nil:
		return []cloud.Finding{cloud.Unchecked("role", "whether role "+name+" is there is not visible to you: "+c.explain(err).Error(), "the policy that it needs is in the plan")}
	}
	c.role = aws.ToString(out.Role.Arn)
	trust, _ := url.QueryUnescape(aws.ToString(out.Role.AssumeRolePolicyDocument))
	if trust != "" && !strings.Contains(trust, "sagemaker.amazonaws.com") {
		return []cloud.Finding{{What: "role", Text: "role " + name + " does not trust SageMaker: its trust policy has no sagemaker.amazonaws.com",
			Next: "aws iam update-assume-role-policy --role-name " + name + " --policy-document '" + trustPolicy + "'"}}
	}
	return []cloud.Finding{c.simulate(ctx, name, rights)}
}

const trustPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sagemaker.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// simulate asks IAM what the role may do, resource by resource.
func (c *check) simulate(ctx context.Context, name string, rights []need) cloud.Finding {
	byResource := map[string][]string{}
	var order []string
	for _, n := range rights {
		if byResource[n.resource] == nil {
			order = append(order, n.resource)
		}
		byResource[n.resource] = append(byResource[n.resource], n.action)
	}
	var refused []string
	for _, resource := range order {
		out, err := c.iam.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &c.role, ActionNames: byResource[resource], ResourceArns: []string{resource}})
		if err != nil {
			return cloud.Unchecked("role", "role "+name+" trusts SageMaker; what it may do is not visible to you: "+c.explain(err).Error(), "the policy that it needs is in the plan")
		}
		for _, r := range out.EvaluationResults {
			if r.EvalDecision != iamtypes.PolicyEvaluationDecisionTypeAllowed {
				refused = append(refused, aws.ToString(r.EvalActionName)+" on "+resource)
			}
		}
	}
	if len(refused) > 0 {
		return cloud.Finding{What: "role", Text: "role " + name + " may not " + strings.Join(refused, ", "), Next: "give it the policy that the plan shows"}
	}
	return cloud.Passed("role", name+" trusts SageMaker and may do what the job needs")
}

// checkBuckets looks where the buckets are: those of the job have to be in its
// region.
func (c *check) checkBuckets(ctx context.Context) (all []cloud.Finding) {
	for _, b := range c.buckets() {
		region, err := c.regionOfBucket(ctx, b.name)
		switch {
		case err != nil:
			f := cloud.FromError("bucket", fmt.Errorf("%s: %w", b.what, c.explainS3(b.name, err)), "")
			if b.name != c.bucketName {
				f = cloud.Unchecked(f.What, f.Text, f.Next)
			}
			all = append(all, f)
		case region != "" && region != c.region:
			all = append(all, cloud.Finding{What: "bucket", Text: fmt.Sprintf("%s: the bucket %s is in %s, and the job is in %s", b.what, b.name, region, c.region),
				Next: "machines.region: " + region + ", or a bucket in " + c.region})
		default:
			all = append(all, cloud.Passed("bucket", b.what+": "+b.name))
		}
	}
	return all
}

type bucketUse struct{ what, name string }

func (c *check) buckets() (all []bucketUse) {
	add := func(what, text string) {
		if b, _, err := options.S3(text); err == nil && !slices.ContainsFunc(all, func(u bucketUse) bool { return u.name == b }) {
			all = append(all, bucketUse{what, b})
		}
	}
	add("code", "s3://"+c.bucketName)
	add("output", c.m.Output)
	add("checkpoints", c.m.Checkpoints)
	for _, text := range c.m.Channels {
		if ch, err := options.ParseChannel(text); err == nil {
			add("channel "+ch.Name, ch.S3)
		}
	}
	return all
}

// checkImage looks at the address of the image: SageMaker takes one of its own region
// only.
func (c *check) checkImage(ctx context.Context) []cloud.Finding {
	if order, err := ownimage.Ordered(c.spec.Image, c.m.Repository); order != nil || err != nil {
		return c.checkBuilt(ctx, order, err)
	}
	image, err := imageOf(c.spec.Image, c.m.Estimator, c.region, c.spec.Instance)
	if err != nil {
		return []cloud.Finding{cloud.FromError("image", err, "")}
	}
	c.image = image
	m := imageForm.FindStringSubmatch(image)
	switch {
	case m == nil:
		return []cloud.Finding{cloud.Warning("image", image+" is not in ECR: SageMaker takes such an image only with a TrainingRepositoryConfig, which dlwb does not send",
			"push it to "+c.account+".dkr.ecr."+c.region+".amazonaws.com")}
	case m[2] != c.region:
		return []cloud.Finding{{What: "image", Text: "the image is in " + m[2] + ", and the job is in " + c.region + ": SageMaker takes images of its own region only",
			Next: strings.Replace(image, "."+m[2]+".", "."+c.region+".", 1) + ", once it is there"}}
	}
	return []cloud.Finding{cloud.Passed("image", image)}
}

// checkQuota looks how many machines of the type training jobs may have.
func (c *check) checkQuota(ctx context.Context) []cloud.Finding {
	name := c.spec.Instance + " for training job usage"
	if c.spec.Spot {
		name = c.spec.Instance + " for spot training job usage"
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit-time.Second)
	defer cancel()
	client := c.api.Quotas(c.region)
	pages := servicequotas.NewListServiceQuotasPaginator(client, &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("sagemaker"), MaxResults: aws.Int32(100)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return []cloud.Finding{cloud.Unchecked("quota", "how many "+c.spec.Instance+" you may have is not known: "+c.explain(err).Error(), "")}
		}
		for _, q := range page.Quotas {
			if aws.ToString(q.QuotaName) != name {
				continue
			}
			return []cloud.Finding{c.holds(q, int(aws.ToFloat64(q.Value)))}
		}
	}
	return []cloud.Finding{cloud.Unchecked("quota", "there is no quota "+name+" in "+c.region, "does the region have the type? aws service-quotas list-service-quotas --service-code sagemaker --region "+c.region)}
}

// holds holds what is asked for against a quota: one that has no room for a job refuses
// it, and the trials of a sweep wait for one that has no room for all of them.
func (c *check) holds(q quotatypes.ServiceQuota, limit int) cloud.Finding {
	name, all := aws.ToString(q.QuotaName), c.spec.Count*max(c.spec.AtOnce, 1)
	more := func(n int) string {
		return fmt.Sprintf("aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code %s --desired-value %d --region %s", aws.ToString(q.QuotaCode), n, c.region)
	}
	switch {
	case limit < c.spec.Count:
		return cloud.Finding{What: "quota", Text: fmt.Sprintf("the quota %q is %d, and the job needs %d", name, limit, c.spec.Count), Next: more(c.spec.Count)}
	case limit < all:
		return cloud.Warning("quota", fmt.Sprintf("the quota %q is %d, and %s of the sweep at once need %d: %d have room, and the others wait until one ends", name, limit, units.Count(c.spec.AtOnce, "trial"), all, limit/c.spec.Count),
			fmt.Sprintf("sweep.parallel: %d; or %s", limit/c.spec.Count, more(all)))
	}
	return cloud.Passed("quota", fmt.Sprintf("%d of at most %d × %s", all, limit, c.spec.Instance))
}

// checkSweep looks what each trial of a sweep has of the limits, which are those of all
// of them together.
func (c *check) checkSweep() []cloud.Finding {
	if c.spec.Trials == 0 || c.perHour == 0 {
		return nil
	}
	text := fmt.Sprintf("dlwb sweep: %s, %d at once, up to %s an hour", units.Count(c.spec.Trials, "trial"), c.spec.AtOnce, units.USD(c.perHour*float64(c.spec.AtOnce)))
	if c.spec.Budget <= 0 {
		return []cloud.Finding{cloud.Passed("sweep", text+"; none goes on past limits.lifetime, which begins with the first")}
	}
	part := c.spec
	part.Budget /= float64(part.Trials)
	limit, err := cloud.PaidFor(part, c.perHour, c.m.Keep(), longest)
	if err != nil {
		return []cloud.Finding{cloud.Warning("sweep", "each trial has an even part of limits.budget: "+err.Error(), "raise limits.budget, or fewer trials")}
	}
	return []cloud.Finding{cloud.Passed("sweep", fmt.Sprintf("%s; of limits.budget each has %s, which ends it after %s; what one leaves is the next ones'", text, units.USD(part.Budget), units.Duration(limit)))}
}

// checkPrice looks what the job costs, and how long that may go on.
func (c *check) checkPrice(ctx context.Context) []cloud.Finding {
	c.perHour = c.price(ctx, c.spec.Instance).PerHour * float64(c.spec.Count)
	limit, err := cloud.PaidFor(c.spec, c.perHour, c.m.Keep(), longest)
	switch {
	case err != nil:
		return []cloud.Finding{cloud.FromError("price", err, "")}
	case c.perHour == 0:
		return []cloud.Finding{cloud.Warning("price", "what "+c.spec.Instance+" costs is not known; SageMaker ends the job after "+units.Duration(limit), "https://aws.amazon.com/sagemaker/pricing")}
	}
	text := fmt.Sprintf("%s an hour; SageMaker ends the job after %s", units.USD(c.perHour), units.Duration(limit))
	if c.spec.Spot {
		text += "; spot costs less, and what it saved is told at the end"
	}
	return append([]cloud.Finding{cloud.Passed("price", text)}, c.checkSweep()...)
}

func (c *check) money(out *cloud.Preflight) {
	if out.PricePerHour, out.MostPerHour = c.perHour, c.perHour*float64(max(c.spec.AtOnce, 1)); c.perHour > 0 {
		out.Costs = []cloud.Cost{{What: fmt.Sprintf("%d × %s", c.spec.Count, c.spec.Instance), PerHour: c.perHour, Source: priceSource}}
	}
}

// text is what would be asked of SageMaker, and the policy that the role needs.
func (c *check) text(out *cloud.Preflight) {
	limit, err := cloud.PaidFor(c.spec, c.perHour, c.m.Keep(), longest)
	if err != nil || c.image == "" {
		return
	}
	j := cloud.Job{Run: "RUN", Replicas: c.spec.Count, Spec: c.spec, Command: []string{"SCRIPT.py"}}
	r := ref{Region: c.region, Name: "RUN", Bucket: c.bucketName, Prefix: "dlwb/LIFE/RUN/", Output: cmp.Or(strings.TrimRight(c.m.Output, "/"), "s3://"+c.bucketName+"/dlwb/output")}
	in, err := requestOf(j, r, settings{life: cloud.Life{Name: c.spec.Name, ID: "LIFE"}, role: cmp.Or(c.role, c.m.Role), image: c.image, limit: limit})
	if err != nil {
		return
	}
	out.Script = "CreateTrainingJob\n" + shown(in) + "\n\nThe least policy of the role:\n" + c.policy + "\n"
}
