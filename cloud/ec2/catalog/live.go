package catalog

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	quotatypes "github.com/aws/aws-sdk-go-v2/service/servicequotas/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// live asks AWS about one region.
type live struct {
	api    *awsapi.API
	region string
	scope  scope
}

// answered does not repeat a call that never reached AWS: there are facts to
// fall back on, and somebody is waiting. It repeats one whose answer was cut
// off, which the SDK does not: all calls here only read.
type answered struct{ aws.Retryer }

// IsErrorRetryable reports whether a call is worth sending again.
func (r answered) IsErrorRetryable(err error) bool {
	if awsapi.Unserved(err) || awsapi.NotAWS(err) {
		return false
	}
	switch awsapi.Explain(err, awsapi.Call{}).Kind {
	case awsapi.Unreachable:
		return false
	case awsapi.Unknown:
		return true
	}
	return r.Retryer.IsErrorRetryable(err)
}

func (l live) ec2() *ec2.Client {
	return ec2.New(l.api.EC2(l.region).Options(), func(o *ec2.Options) { o.Retryer = answered{o.Retryer} })
}

func (l live) serviceQuotas() *servicequotas.Client {
	return servicequotas.New(l.api.Quotas(l.region).Options(), func(o *servicequotas.Options) { o.Retryer = answered{o.Retryer} })
}

func (l live) priceList() *pricing.Client {
	return pricing.New(l.api.Pricing(l.region).Options(), func(o *pricing.Options) { o.Retryer = answered{o.Retryer} })
}

// explained says in a person's words why a call failed.
func (l live) explained(action string, err error) error {
	return awsapi.Explain(err, awsapi.Call{Action: action, Region: l.region})
}

// typeFilter makes AWS send the types of the scope only; nil sends all.
func (l live) typeFilter() []types.Filter {
	if len(l.scope.patterns) == 0 {
		return nil
	}
	return []types.Filter{{Name: aws.String("instance-type"), Values: l.scope.patterns}}
}

// matches reports whether a type is in the scope.
func (l live) matches(name string) bool {
	return len(l.scope.patterns) == 0 || slices.ContainsFunc(l.scope.patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// facts lists the types of the scope that the region has. No region is without
// any: an answer that is empty comes from an endpoint that knows no patterns,
// which is asked for all.
func (l live) facts(ctx context.Context) ([]Facts, error) {
	all, err := l.listFacts(ctx, l.typeFilter())
	if err == nil && len(all) == 0 && l.scope.gpu {
		all, err = l.listFacts(ctx, nil)
		if err == nil && len(all) == 0 {
			err = errors.New("AWS lists no type at all in " + l.region)
		}
	}
	others := len(all)
	all = slices.DeleteFunc(all, func(f Facts) bool { return !l.matches(f.Instance) })
	if err == nil && len(all) == 0 && others > 0 && !l.scope.gpu {
		return l.factsByName(ctx)
	}
	return all, err
}

// factsByName asks an endpoint that knows no filter, and sent other types than those
// that were asked for: it is asked for them by name. What it does not have then is not
// known to be missing.
func (l live) factsByName(ctx context.Context) ([]Facts, error) {
	in := &ec2.DescribeInstanceTypesInput{}
	for _, name := range l.scope.patterns {
		if !strings.ContainsAny(name, "*?[") {
			in.InstanceTypes = append(in.InstanceTypes, types.InstanceType(name))
		}
	}
	if len(in.InstanceTypes) > 0 {
		all, err := l.pagesOfFacts(ctx, in)
		all = slices.DeleteFunc(all, func(f Facts) bool { return !l.matches(f.Instance) })
		if err != nil || len(all) > 0 {
			return all, err
		}
	}
	return nil, errors.New("AWS sends types that it was not asked for, and none that it was")
}

func (l live) listFacts(ctx context.Context, filter []types.Filter) ([]Facts, error) {
	return l.pagesOfFacts(ctx, &ec2.DescribeInstanceTypesInput{Filters: filter})
}

func (l live) pagesOfFacts(ctx context.Context, in *ec2.DescribeInstanceTypesInput) ([]Facts, error) {
	all := []Facts{}
	pages := ec2.NewDescribeInstanceTypesPaginator(l.ec2(), in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, l.explained("DescribeInstanceTypes", err)
		}
		for _, t := range page.InstanceTypes {
			all = append(all, factsOf(t))
		}
	}
	return all, nil
}

func factsOf(t types.InstanceTypeInfo) Facts {
	f := Facts{Instance: string(t.InstanceType), Arch: "x86_64", Share: 1}
	if p := t.ProcessorInfo; p != nil {
		for _, arch := range p.SupportedArchitectures {
			if arch == types.ArchitectureTypeArm64 {
				f.Arch = "arm64"
			}
		}
	}
	if t.VCpuInfo != nil {
		f.VCPUs = int(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
	}
	if t.MemoryInfo != nil {
		f.Memory = aws.ToInt64(t.MemoryInfo.SizeInMiB) * mib
	}
	if n := t.NetworkInfo; n != nil {
		f.Network, f.Cards = aws.ToString(n.NetworkPerformance), int(aws.ToInt32(n.MaximumNetworkCards))
		if n.EfaInfo != nil {
			f.EFA = int(aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces))
		}
	}
	if t.InstanceStorageInfo != nil {
		f.NVMe = aws.ToInt64(t.InstanceStorageInfo.TotalSizeInGB) * gb
	}
	if t.PlacementGroupInfo != nil {
		f.Placement = texts(t.PlacementGroupInfo.SupportedStrategies)
	}
	f.Usage, f.Hypervisor = texts(t.SupportedUsageClasses), string(t.Hypervisor)
	if t.GpuInfo != nil && len(t.GpuInfo.Gpus) > 0 {
		f.addGPU(t.GpuInfo.Gpus[0])
	}
	return f
}

// addGPU takes the GPUs over. Of a type that has a part of a GPU, AWS says that
// the count is 0: the logical count and the size of the part say what it is.
func (f *Facts) addGPU(g types.GpuDeviceInfo) {
	f.Vendor, f.GPU = aws.ToString(g.Manufacturer), aws.ToString(g.Name)
	f.GPUs = int(aws.ToInt32(g.Count))
	if f.GPUs == 0 {
		f.GPUs = max(1, int(aws.ToInt32(g.LogicalGpuCount)))
	}
	if share := aws.ToFloat64(g.GpuPartitionSize); share > 0 && share < 1 {
		f.Share = share
	}
	if g.MemoryInfo != nil {
		f.GPUMemory = int64(aws.ToInt32(g.MemoryInfo.SizeInMiB)) * mib
	}
}

func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// offered lists the zones that offer each type; as facts, where an endpoint
// knows no patterns.
func (l live) offered(ctx context.Context) (map[string][]string, error) {
	all, err := l.offerings(ctx, types.LocationTypeAvailabilityZone, l.typeFilter())
	if err == nil && len(all) == 0 && l.scope.gpu {
		all, err = l.offerings(ctx, types.LocationTypeAvailabilityZone, nil)
		if err == nil && len(all) == 0 {
			err = errors.New("AWS lists no type at all in " + l.region)
		}
	}
	maps.DeleteFunc(all, func(name string, _ []string) bool { return !l.matches(name) })
	return all, err
}

// names lists every type that the region has, by name only.
func (l live) names(ctx context.Context) ([]string, error) {
	found, err := l.offerings(ctx, types.LocationTypeRegion, nil)
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	return names, err
}

func (l live) offerings(ctx context.Context, by types.LocationType, filter []types.Filter) (map[string][]string, error) {
	all := map[string][]string{}
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(l.ec2(),
		&ec2.DescribeInstanceTypeOfferingsInput{LocationType: by, Filters: filter})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, l.explained("DescribeInstanceTypeOfferings", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			name := string(o.InstanceType)
			all[name] = append(all[name], aws.ToString(o.Location))
		}
	}
	return all, nil
}

// zoneIDs gives the zones' ids, which are the same in every account, by the
// names that they have in this one.
func (l live) zoneIDs(ctx context.Context) (map[string]string, error) {
	out, err := l.ec2().DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, l.explained("DescribeAvailabilityZones", err)
	}
	ids := map[string]string{}
	for _, z := range out.AvailabilityZones {
		ids[aws.ToString(z.ZoneName)] = aws.ToString(z.ZoneId)
	}
	return ids, nil
}

// spot gives the newest spot price of each type in each zone. With a start time
// of now AWS sends the price that holds now and no history.
func (l live) spot(ctx context.Context, names []string) (map[string]map[string]float64, error) {
	in := &ec2.DescribeSpotPriceHistoryInput{
		StartTime:           aws.Time(time.Now()),
		ProductDescriptions: []string{string(types.RIProductDescriptionLinuxUnix)},
	}
	for _, name := range names {
		in.InstanceTypes = append(in.InstanceTypes, types.InstanceType(name))
	}
	newest := map[[2]string]types.SpotPrice{}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(l.ec2(), in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, l.explained("DescribeSpotPriceHistory", err)
		}
		for _, p := range page.SpotPriceHistory {
			key := [2]string{string(p.InstanceType), aws.ToString(p.AvailabilityZone)}
			if old, seen := newest[key]; !seen || aws.ToTime(p.Timestamp).After(aws.ToTime(old.Timestamp)) {
				newest[key] = p
			}
		}
	}
	return spotPrices(newest), nil
}

func spotPrices(newest map[[2]string]types.SpotPrice) map[string]map[string]float64 {
	prices := map[string]map[string]float64{}
	for key, p := range newest {
		if dollars, ok := amount(aws.ToString(p.SpotPrice)); ok {
			if prices[key[0]] == nil {
				prices[key[0]] = map[string]float64{}
			}
			prices[key[0]][key[1]] = dollars
		}
	}
	return prices
}

// amount reads a price: a finite number above 0.
func amount(s string) (float64, bool) {
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && n > 0 && n < 1e9
}

// quotas asks for the limit of every class and counts what runs. Only when no
// limit at all is known it fails.
func (l live) quotas(ctx context.Context) (quotas, error) {
	client := l.serviceQuotas()
	limits := make([]limit, len(classes))
	errs := make([]error, len(classes))
	q := quotas{Limits: map[string]limit{}}
	var wg sync.WaitGroup
	for i, c := range classes {
		wg.Go(func() { limits[i], errs[i] = l.limit(ctx, client, c.code) })
	}
	wg.Go(func() {
		q.Used, q.UsedWhy = l.used(ctx)
	})
	wg.Wait()
	failed := 0
	for i, c := range classes {
		if errs[i] != nil {
			limits[i].Why = sentence(errs[i])
			failed++
		}
		q.Limits[c.code] = limits[i]
	}
	if failed == len(classes) {
		return quotas{}, errs[0]
	}
	return q, nil
}

// limit asks for one quota. One that was never changed may be known to AWS by
// its default only.
func (l live) limit(ctx context.Context, client *servicequotas.Client, code string) (limit, error) {
	applied, err := client.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{
		ServiceCode: aws.String("ec2"), QuotaCode: aws.String(code)})
	if err == nil && applied.Quota != nil {
		return limit{VCPUs: int(aws.ToFloat64(applied.Quota.Value))}, nil
	}
	if missing := new(quotatypes.NoSuchResourceException); err != nil && !errors.As(err, &missing) {
		return limit{}, l.explained("GetServiceQuota", err)
	}
	byDefault, err := client.GetAWSDefaultServiceQuota(ctx, &servicequotas.GetAWSDefaultServiceQuotaInput{
		ServiceCode: aws.String("ec2"), QuotaCode: aws.String(code)})
	if err != nil {
		return limit{}, l.explained("GetAWSDefaultServiceQuota", err)
	}
	if byDefault.Quota == nil {
		return limit{}, errors.New("Service Quotas does not have the quota " + code)
	}
	return limit{VCPUs: int(aws.ToFloat64(byDefault.Quota.Value))}, nil
}

// used sums the vCPUs of what runs or is about to, by quota, and says of which
// quotas it could not, and why.
func (l live) used(ctx context.Context) (sum map[string]int, why map[string]string) {
	sum, why = map[string]int{}, map[string]string{}
	running, err := l.running(ctx)
	if err != nil {
		for _, c := range classes {
			why[c.code] = sentence(err)
		}
		return sum, why
	}
	vcpus, err := l.vcpus(ctx, running)
	for _, i := range running {
		name := string(i.InstanceType)
		c := classOf(name, i.InstanceLifecycle == types.InstanceLifecycleTypeSpot)
		switch {
		case c.code == "", i.InstanceLifecycle == types.InstanceLifecycleTypeCapacityBlock: // has quotas of its own
		case vcpus[name] > 0:
			sum[c.code] += vcpus[name]
		case err != nil:
			why[c.code] = sentence(err)
		default:
			why[c.code] = "AWS does not say how many vCPUs the running " + name + " has"
		}
	}
	return sum, why
}

func (l live) running(ctx context.Context) ([]types.Instance, error) {
	var running []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(l.ec2(), &ec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"pending", "running"}}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, l.explained("DescribeInstances", err)
		}
		for _, r := range page.Reservations {
			running = append(running, r.Instances...)
		}
	}
	return running, nil
}

// vcpus says how many each type has, which is what a quota counts: an instance
// may have switched some of them off. Types that the table lacks are asked for.
func (l live) vcpus(ctx context.Context, running []types.Instance) (map[string]int, error) {
	known := map[string]int{}
	l.scope = scope{}
	for _, i := range running {
		name := string(i.InstanceType)
		if known[name] = rows()[name].VCPUs; known[name] == 0 && !slices.Contains(l.scope.patterns, name) {
			l.scope.patterns = append(l.scope.patterns, name)
		}
	}
	if len(l.scope.patterns) == 0 {
		return known, nil
	}
	facts, err := l.facts(ctx)
	for _, f := range facts {
		known[f.Instance] = f.VCPUs
	}
	return known, err
}
