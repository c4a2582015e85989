package fakeaws

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	prices "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

func TestInstanceTypesSayWhatTheyHave(t *testing.T) {
	r := start(t, Options{})
	ctx := t.Context()
	out := must(r.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"g5.12xlarge", "g6f.large", "p5.48xlarge", "t3.micro"}}))(t)
	g5, g6f, p5, t3 := out.InstanceTypes[0], out.InstanceTypes[1], out.InstanceTypes[2], out.InstanceTypes[3]
	same(t, "name", g5.InstanceType, "g5.12xlarge")
	same(t, "vCPUs", *g5.VCpuInfo.DefaultVCpus, 48)
	same(t, "memory", *g5.MemoryInfo.SizeInMiB, 192*1024)
	same(t, "architecture", g5.ProcessorInfo.SupportedArchitectures[0], "x86_64")
	same(t, "GPU", fmt.Sprint(*g5.GpuInfo.Gpus[0].Name, *g5.GpuInfo.Gpus[0].Manufacturer, *g5.GpuInfo.Gpus[0].Count, *g5.GpuInfo.Gpus[0].MemoryInfo.SizeInMiB,
		*g5.GpuInfo.TotalGpuMemoryInMiB), "A10GNVIDIA4 22888 91552")
	same(t, "network", *g5.NetworkInfo.NetworkPerformance, "40 Gigabit")
	same(t, "EFA", *g5.NetworkInfo.EfaSupported, true)
	same(t, "EFA interfaces", *g5.NetworkInfo.EfaInfo.MaximumEfaInterfaces, 1)
	same(t, "NVMe", *g5.InstanceStorageInfo.TotalSizeInGB, 3800)
	if !slices.Contains(g5.PlacementGroupInfo.SupportedStrategies, "cluster") || !slices.Contains(g5.SupportedUsageClasses, "spot") {
		t.Errorf("%+v %+v", g5.PlacementGroupInfo, g5.SupportedUsageClasses)
	}
	gpu := g6f.GpuInfo.Gpus[0]
	same(t, "part of a GPU", fmt.Sprint(*gpu.Count, *gpu.LogicalGpuCount, *gpu.GpuPartitionSize), "0 1 0.125")
	same(t, "network cards", len(p5.NetworkInfo.NetworkCards), 32)
	if t3.GpuInfo != nil || *t3.BurstablePerformanceSupported != true || *t3.InstanceStorageSupported {
		t.Errorf("t3.micro is %+v", t3)
	}
	_, err := r.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"x9.large"}})
	r.refuses("InvalidInstanceType", err)

	some := must(r.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{filter("instance-type", "g5g.*", "g6f.*"),
		filter("processor-info.supported-architecture", "arm64")}}))(t).InstanceTypes
	same(t, "arm64 types", len(some), 6)
}

// Whatever the size of a page, all pages together are the whole list.
func TestEveryPagedListIsWhole(t *testing.T) {
	r := start(t, Options{PageSize: 7})
	ctx := t.Context()
	var names []string
	for p := ec2.NewDescribeInstanceTypesPaginator(r.ec2, &ec2.DescribeInstanceTypesInput{}); p.HasMorePages(); {
		out := must(p.NextPage(ctx))(t)
		if len(out.InstanceTypes) > 7 {
			t.Fatalf("%d types on a page", len(out.InstanceTypes))
		}
		for _, v := range out.InstanceTypes {
			names = append(names, string(v.InstanceType))
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) < 70 {
		t.Errorf("%d types", len(names))
	}
	ids := r.launch(20)
	var got []string
	for p := ec2.NewDescribeInstancesPaginator(r.ec2, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(6)}); p.HasMorePages(); {
		for _, res := range must(p.NextPage(ctx))(t).Reservations {
			for _, i := range res.Instances {
				got = append(got, *i.InstanceId)
			}
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("pages have %v, want %v", got, ids)
	}
	same(t, "asked for by id", len(r.describe(ids...)), 20)
	offerings, kinds := 0, map[string]bool{}
	for p := ec2.NewDescribeInstanceTypeOfferingsPaginator(r.ec2, &ec2.DescribeInstanceTypeOfferingsInput{LocationType: "availability-zone"}); p.HasMorePages(); {
		for _, o := range must(p.NextPage(ctx))(t).InstanceTypeOfferings {
			kinds[*o.Location] = true
			offerings++
		}
	}
	same(t, "zones", len(kinds), 3)
	if offerings < 150 {
		t.Errorf("%d offerings", offerings)
	}
	history := 0
	for p := ec2.NewDescribeSpotPriceHistoryPaginator(r.ec2, &ec2.DescribeSpotPriceHistoryInput{InstanceTypes: []types.InstanceType{"g5.xlarge"},
		ProductDescriptions: []string{"Linux/UNIX"}}); p.HasMorePages(); {
		for _, v := range must(p.NextPage(ctx))(t).SpotPriceHistory {
			usd, _ := strconv.ParseFloat(*v.SpotPrice, 64)
			if usd <= 0.25 || usd > 0.5 || !strings.HasPrefix(*v.AvailabilityZone, "us-east-1") || v.Timestamp == nil {
				t.Errorf("a spot price is %+v", v)
			}
			history++
		}
	}
	same(t, "spot prices", history, 6)
	parameters := 0
	for p := ssm.NewGetParametersByPathPaginator(r.api.SSM("us-east-1"), &ssm.GetParametersByPathInput{Path: aws.String("/aws/service/deeplearning/ami/x86_64"),
		Recursive: aws.Bool(true)}); p.HasMorePages(); {
		parameters += len(must(p.NextPage(ctx))(t).Parameters)
	}
	same(t, "parameters", parameters, 10)
	quotas := 0
	for p := servicequotas.NewListServiceQuotasPaginator(r.api.Quotas("us-east-1"), &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("ec2"),
		MaxResults: aws.Int32(2)}); p.HasMorePages(); {
		quotas += len(must(p.NextPage(ctx))(t).Quotas)
	}
	same(t, "quotas", quotas, 6)
}

func TestPlacesAreListed(t *testing.T) {
	r := start(t, Options{})
	ctx := t.Context()
	regions := func(all bool) (out []string) {
		for _, v := range must(r.ec2.DescribeRegions(ctx, &ec2.DescribeRegionsInput{AllRegions: &all}))(t).Regions {
			out = append(out, *v.RegionName+" "+*v.OptInStatus)
		}
		return out
	}
	same(t, "enabled", len(regions(false)), 4)
	same(t, "all", regions(true)[4], "ap-east-1 not-opted-in")
	zones := must(r.ec2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{}))(t).AvailabilityZones
	same(t, "zones", len(zones), 3)
	same(t, "zone", fmt.Sprint(*zones[0].ZoneName, *zones[0].ZoneId, zones[0].State, *zones[0].RegionName), "us-east-1ause1-az3availableus-east-1")
	vpc := must(r.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []types.Filter{filter("is-default", "true")}}))(t).Vpcs[0]
	subnets := must(r.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("vpc-id", *vpc.VpcId), filter("availability-zone", "us-east-1b")}}))(t).Subnets
	same(t, "subnets", len(subnets), 1)
	same(t, "subnet", fmt.Sprint(*subnets[0].VpcId, *subnets[0].AvailabilityZone, *subnets[0].DefaultForAz, *subnets[0].MapPublicIpOnLaunch), *vpc.VpcId+"us-east-1btrue true")
	in := r.launch(1, func(in *ec2.RunInstancesInput) { in.SubnetId = subnets[0].SubnetId })
	same(t, "zone by subnet", *r.describe(in...)[0].Placement.AvailabilityZone, "us-east-1b")
	scores := must(r.ec2.GetSpotPlacementScores(ctx, &ec2.GetSpotPlacementScoresInput{TargetCapacity: aws.Int32(2), SingleAvailabilityZone: aws.Bool(true),
		InstanceTypes: []string{"g5.xlarge"}, RegionNames: []string{"us-east-1"}}))(t).SpotPlacementScores
	same(t, "scores", fmt.Sprint(len(scores), *scores[0].AvailabilityZoneId, *scores[0].Score), "3use1-az33")
}

func TestImagesAreFoundByParameterAndByName(t *testing.T) {
	r := start(t, Options{})
	ctx := t.Context()
	const name = "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-24.04/latest/ami-id"
	p := must(r.api.SSM("us-east-1").GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)}))(t).Parameter
	same(t, "kind", *p.DataType, "aws:ec2:image")
	i := must(r.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{*p.Value}}))(t).Images[0]
	same(t, "image", fmt.Sprint(*i.Name, i.Architecture, i.State, *i.RootDeviceName, *i.OwnerId, *i.ImageOwnerAlias),
		"Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.10 (Ubuntu 24.04) 20261002x86_64available/dev/sda1898082745236amazon")
	same(t, "size", *i.BlockDeviceMappings[0].Ebs.VolumeSize, 90)
	if i.CreationDate == nil || i.BlockDeviceMappings[0].Ebs.SnapshotId == nil {
		t.Errorf("%+v", i)
	}
	found := must(r.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{
		filter("name", "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *"), filter("state", "available")}}))(t).Images
	same(t, "by name", len(found), 1)
	found = must(r.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, IncludeDeprecated: aws.Bool(true), Filters: []types.Filter{
		filter("name", "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *")}}))(t).Images
	same(t, "with old ones", len(found), 2)
	_, err := r.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
	r.refuses("InvalidAMIID.NotFound", err)
	_, err = r.api.SSM("us-east-1").GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/none")})
	r.refuses("ParameterNotFound", err)
	out := must(r.api.SSM("us-east-1").GetParameters(ctx, &ssm.GetParametersInput{Names: []string{name, "/none"}}))(t)
	same(t, "parameters", fmt.Sprint(*out.Parameters[0].Value, out.InvalidParameters), *p.Value+"[/none]")
	r.launch(1, func(in *ec2.RunInstancesInput) { in.ImageId = aws.String("resolve:ssm:" + name) })
}

func TestQuotasAreAppliedOrDefault(t *testing.T) {
	r := start(t, Options{})
	ctx, q := t.Context(), r.api.Quotas("us-east-1")
	r.SetQuota("us-east-1", "L-DB2E81BA", 0)
	g := must(q.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-DB2E81BA")}))(t).Quota
	same(t, "quota", fmt.Sprint(*g.QuotaName, *g.Value), "Running On-Demand G and VT instances0")
	_, err := q.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-C4BD4855")})
	r.refuses("NoSuchResourceException", err)
	d := must(q.GetAWSDefaultServiceQuota(ctx, &servicequotas.GetAWSDefaultServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-C4BD4855")}))(t).Quota
	same(t, "default", *d.Value, 768)
	all := must(q.ListAWSDefaultServiceQuotas(ctx, &servicequotas.ListAWSDefaultServiceQuotasInput{ServiceCode: aws.String("ec2")}))(t).Quotas
	same(t, "defaults", len(all), 7)
}

func TestThePriceListIsStringsOfJSON(t *testing.T) {
	r := start(t, Options{})
	match := func(field, value string) prices.Filter {
		return prices.Filter{Type: "TERM_MATCH", Field: &field, Value: &value}
	}
	in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), Filters: []prices.Filter{match("regionCode", "us-east-1"), match("operatingSystem", "Linux"),
		match("tenancy", "Shared"), match("capacitystatus", "Used"), match("preInstalledSw", "NA")}}
	got, pages := map[string]string{}, 0
	for p := pricing.NewGetProductsPaginator(r.api.Pricing(), in, func(o *pricing.GetProductsPaginatorOptions) { o.Limit = 50 }); p.HasMorePages(); pages++ {
		for _, s := range must(p.NextPage(t.Context()))(t).PriceList {
			var v struct {
				Product struct{ Attributes map[string]string }
				Terms   struct {
					OnDemand map[string]struct {
						PriceDimensions map[string]struct {
							Unit         string
							PricePerUnit map[string]string
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(s), &v); err != nil {
				t.Fatal(err)
			}
			for _, term := range v.Terms.OnDemand {
				for _, d := range term.PriceDimensions {
					got[v.Product.Attributes["instanceType"]] += d.PricePerUnit["USD"] + " " + d.Unit
				}
			}
		}
	}
	same(t, "g5.xlarge", got["g5.xlarge"], "1.0060000000 Hrs")
	same(t, "pages", pages, 2)
	same(t, "one without a price", got["p5e.48xlarge"], "")
}

func TestWithoutADefaultVPCASubnetIsNeeded(t *testing.T) {
	r := start(t, Options{Regions: []Region{{Name: "us-east-1", NoDefaultVPC: true}}})
	same(t, "VPCs", len(must(r.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}))(t).Vpcs), 0)
	_, err := r.run(r.order(1))
	r.refuses("VPCIdNotSpecified", err)
}

func TestAPrivateSubnetHasARouteTableOfItsOwn(t *testing.T) {
	r := start(t, Options{Regions: []Region{{Name: "us-east-1", Private: []string{"b"}}}})
	vpc := must(r.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}))(t).Vpcs[0]
	tables := must(r.ec2.DescribeRouteTables(t.Context(), &ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("vpc-id", *vpc.VpcId)}}))(t).RouteTables
	got := map[string]string{}
	for _, table := range tables {
		for _, a := range table.Associations {
			out := table.Routes[1]
			got[aws.ToString(a.SubnetId)] = fmt.Sprint(*a.Main, *out.DestinationCidrBlock, out.GatewayId != nil, out.NatGatewayId != nil, out.State)
		}
	}
	same(t, "tables", fmt.Sprint(got), fmt.Sprint(map[string]string{
		"": "true0.0.0.0/0true falseactive", r.Subnet("us-east-1", "us-east-1b"): "false0.0.0.0/0false trueactive"}))
}
