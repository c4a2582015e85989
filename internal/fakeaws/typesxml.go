package fakeaws

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

type typeXML struct {
	Name        string       `xml:"instanceType"`
	Current     bool         `xml:"currentGeneration"`
	Free        bool         `xml:"freeTierEligible"`
	Usage       set[string]  `xml:"supportedUsageClasses"`
	Roots       set[string]  `xml:"supportedRootDeviceTypes"`
	Virtual     set[string]  `xml:"supportedVirtualizationTypes"`
	Metal       bool         `xml:"bareMetal"`
	Hypervisor  string       `xml:"hypervisor,omitempty"`
	Processor   processorXML `xml:"processorInfo"`
	VCPU        vcpuXML      `xml:"vCpuInfo"`
	MemoryMiB   int          `xml:"memoryInfo>sizeInMiB"`
	HasStorage  bool         `xml:"instanceStorageSupported"`
	Storage     *storageXML  `xml:"instanceStorageInfo"`
	Network     networkXML   `xml:"networkInfo"`
	GPU         *gpusXML     `xml:"gpuInfo"`
	Strategies  set[string]  `xml:"placementGroupInfo>supportedStrategies"`
	Burst       bool         `xml:"burstablePerformanceSupported"`
	Hibernation bool         `xml:"hibernationSupported"`
}

type processorXML struct {
	Archs        set[string] `xml:"supportedArchitectures"`
	GHz          float64     `xml:"sustainedClockSpeedInGhz"`
	Manufacturer string      `xml:"manufacturer"`
}

type vcpuXML struct {
	VCPUs   int `xml:"defaultVCpus"`
	Cores   int `xml:"defaultCores"`
	Threads int `xml:"defaultThreadsPerCore"`
}

type storageXML struct {
	TotalGB    int          `xml:"totalSizeInGB"`
	Disks      set[diskXML] `xml:"disks"`
	NVMe       string       `xml:"nvmeSupport"`
	Encryption string       `xml:"encryptionSupport"`
}

type diskXML struct {
	GB    int    `xml:"sizeInGB"`
	Count int    `xml:"count"`
	Type  string `xml:"type"`
}

type networkXML struct {
	Performance string       `xml:"networkPerformance"`
	Interfaces  int          `xml:"maximumNetworkInterfaces"`
	MaxCards    int          `xml:"maximumNetworkCards"`
	Default     int          `xml:"defaultNetworkCardIndex"`
	Cards       set[cardXML] `xml:"networkCards"`
	ENA         string       `xml:"enaSupport"`
	EFA         bool         `xml:"efaSupported"`
	EFAInfo     *efaXML      `xml:"efaInfo"`
}

type cardXML struct {
	Index       int     `xml:"networkCardIndex"`
	Performance string  `xml:"networkPerformance"`
	Interfaces  int     `xml:"maximumNetworkInterfaces"`
	Peak        float64 `xml:"peakBandwidthInGbps"`
}

type efaXML struct {
	Max int `xml:"maximumEfaInterfaces"`
}

type gpusXML struct {
	GPUs  set[gpuXML] `xml:"gpus"`
	Total int         `xml:"totalGpuMemoryInMiB"`
}

type gpuXML struct {
	Name         string  `xml:"name"`
	Manufacturer string  `xml:"manufacturer"`
	Count        int     `xml:"count"`
	Logical      int     `xml:"logicalGpuCount"`
	Partition    float64 `xml:"gpuPartitionSize"`
	MemoryMiB    int     `xml:"memoryInfo>sizeInMiB"`
}

func (t instanceType) metal() bool { return strings.HasSuffix(t.Name, ".metal") }

func (t instanceType) xml() typeXML {
	x := typeXML{Name: t.Name, Current: t.CurrentGeneration, Free: t.Name == "t3.micro", Usage: setOf(t.Usage), Roots: setOf([]string{"ebs"}),
		Virtual: setOf([]string{"hvm"}), Metal: t.metal(), Hypervisor: "nitro", Processor: processorXML{setOf([]string{t.Arch}), 3.1, "Intel"},
		VCPU: vcpuXML{t.VCPUs, max(1, t.VCPUs/2), 2}, MemoryMiB: t.MemoryMiB, HasStorage: t.NVMeGB > 0, Strategies: setOf(t.Strategies),
		Burst: t.Burstable, Network: t.network()}
	if t.metal() {
		x.Hypervisor = ""
	}
	if t.Arch == "arm64" {
		x.Processor.Manufacturer, x.VCPU.Threads, x.VCPU.Cores = "AWS", 1, t.VCPUs
	}
	if t.NVMeGB > 0 {
		count, size, _ := strings.Cut(t.Disks, "x")
		x.Storage = &storageXML{t.NVMeGB, setOf([]diskXML{{int(number(size)), int(number(count)), "ssd"}}), "required", "required"}
	}
	if t.GPU != "" {
		g := gpuXML{t.GPU, t.GPUVendor, t.GPUs, t.Logical, t.Partition, t.GPUMemoryMiB}
		orElse(&g.Partition, 1)
		x.GPU = &gpusXML{setOf([]gpuXML{g}), t.TotalGPUMiB}
	}
	return x
}

func (t instanceType) network() networkXML {
	x := networkXML{Performance: t.Network, Interfaces: 4 * t.Cards, MaxCards: t.Cards, ENA: "required", EFA: t.EFA}
	for i := range t.Cards {
		x.Cards.Items = append(x.Cards.Items, cardXML{i, t.Network, 4, t.PeakGbps / float64(t.Cards)})
	}
	if t.EFA {
		x.EFAInfo = &efaXML{t.EFAs}
	}
	return x
}

func (t instanceType) fields() fields {
	return fields{"instance-type": one(t.Name), "processor-info.supported-architecture": one(t.Arch), "current-generation": one(yesNo(t.CurrentGeneration)),
		"supported-usage-class": t.Usage, "vcpu-info.default-vcpus": one(strconv.Itoa(t.VCPUs)), "network-info.efa-supported": one(yesNo(t.EFA)),
		"bare-metal": one(yesNo(t.metal())), "instance-storage-supported": one(yesNo(t.NVMeGB > 0)), "supported-root-device-type": one("ebs"),
		"burstable-performance-supported": one(yesNo(t.Burstable)), "memory-info.size-in-mib": one(strconv.Itoa(t.MemoryMiB)),
		"placement-group-info.supported-strategies": t.Strategies, "supported-virtualization-type": one("hvm"), "hypervisor": one("nitro")}
}

// offered reports whether any zone has the type.
func (r *region) offered(t instanceType) bool {
	return slices.ContainsFunc(r.zones(), func(z string) bool { return r.offeredIn(t, z) })
}

// typesPage is the most types that are on one page.
const typesPage = 100

func describeInstanceTypes(q *request) (any, error) {
	names := q.list("InstanceType")
	for _, name := range names {
		if t, ok := q.s.byName[name]; !ok || !q.region.offered(t) {
			return nil, bad("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	var found []instanceType
	for _, t := range q.s.types {
		ok, err := q.passes(nil, t.fields())
		if err != nil {
			return nil, err
		}
		if ok && among(t.Name, names) && q.region.offered(t) {
			found = append(found, t)
		}
	}
	found, next, err := page(q, found, typesPage, func(t instanceType) string { return t.Name })
	if err != nil {
		return nil, err
	}
	return struct {
		Types set[written] `xml:"instanceTypeSet"`
		listing
	}{setOf(each(found, instanceType.written)), listing{next}}, nil
}

// written is XML that was made before.
type written struct {
	Text string `xml:",innerxml"`
}

var typesWritten sync.Map // by their names

func (t instanceType) written() written {
	if w, ok := typesWritten.Load(t.Name); ok {
		return w.(written)
	}
	w := written{string(inner(t.xml()))}
	typesWritten.Store(t.Name, w)
	return w
}

type offeringXML struct {
	Type     string `xml:"instanceType"`
	Kind     string `xml:"locationType"`
	Location string `xml:"location"`
}

func (o offeringXML) key() string { return o.Type + " " + o.Location }

func describeInstanceTypeOfferings(q *request) (any, error) {
	kind := q.str("LocationType")
	orElse(&kind, "region")
	var found []offeringXML
	for _, t := range q.s.types {
		for _, sub := range q.region.subnets {
			o := offeringXML{t.Name, kind, map[string]string{"region": q.region.Name, "availability-zone": sub.Zone, "availability-zone-id": sub.ZoneID}[kind]}
			if o.Location == "" {
				return nil, bad("InvalidParameterValue", "Value (%s) for parameter locationType is invalid.", kind)
			}
			ok, err := q.passes(nil, fields{"instance-type": one(o.Type), "location": one(o.Location)})
			if err != nil {
				return nil, err
			}
			if ok && q.region.offeredIn(t, sub.Zone) && !slices.Contains(found, o) {
				found = append(found, o)
			}
		}
	}
	slices.SortFunc(found, func(a, b offeringXML) int { return strings.Compare(a.key(), b.key()) })
	found, next, err := page(q, found, 1000, offeringXML.key)
	if err != nil {
		return nil, err
	}
	return struct {
		Offerings set[offeringXML] `xml:"instanceTypeOfferingSet"`
		listing
	}{setOf(found), listing{next}}, nil
}
