package machinetype

import (
	"strconv"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

type XML struct {
	Name        string           `xml:"instanceType"`
	Current     bool             `xml:"currentGeneration"`
	Free        bool             `xml:"freeTierEligible"`
	Usage       wire.Set[string] `xml:"supportedUsageClasses"`
	Roots       wire.Set[string] `xml:"supportedRootDeviceTypes"`
	Virtual     wire.Set[string] `xml:"supportedVirtualizationTypes"`
	Metal       bool             `xml:"bareMetal"`
	Hypervisor  string           `xml:"hypervisor,omitempty"`
	Processor   processorXML     `xml:"processorInfo"`
	VCPU        vcpuXML          `xml:"vCpuInfo"`
	MemoryMiB   int              `xml:"memoryInfo>sizeInMiB"`
	HasStorage  bool             `xml:"instanceStorageSupported"`
	Storage     *storageXML      `xml:"instanceStorageInfo"`
	Network     networkXML       `xml:"networkInfo"`
	GPU         *gpusXML         `xml:"gpuInfo"`
	Strategies  wire.Set[string] `xml:"placementGroupInfo>supportedStrategies"`
	Burst       bool             `xml:"burstablePerformanceSupported"`
	Hibernation bool             `xml:"hibernationSupported"`
}

type processorXML struct {
	Archs        wire.Set[string] `xml:"supportedArchitectures"`
	GHz          float64          `xml:"sustainedClockSpeedInGhz"`
	Manufacturer string           `xml:"manufacturer"`
}

type vcpuXML struct {
	VCPUs   int `xml:"defaultVCpus"`
	Cores   int `xml:"defaultCores"`
	Threads int `xml:"defaultThreadsPerCore"`
}

type storageXML struct {
	TotalGB    int               `xml:"totalSizeInGB"`
	Disks      wire.Set[diskXML] `xml:"disks"`
	NVMe       string            `xml:"nvmeSupport"`
	Encryption string            `xml:"encryptionSupport"`
}

type diskXML struct {
	GB    int    `xml:"sizeInGB"`
	Count int    `xml:"count"`
	Type  string `xml:"type"`
}

type networkXML struct {
	Performance string            `xml:"networkPerformance"`
	Interfaces  int               `xml:"maximumNetworkInterfaces"`
	MaxCards    int               `xml:"maximumNetworkCards"`
	Default     int               `xml:"defaultNetworkCardIndex"`
	Cards       wire.Set[cardXML] `xml:"networkCards"`
	ENA         string            `xml:"enaSupport"`
	EFA         bool              `xml:"efaSupported"`
	EFAInfo     *efaXML           `xml:"efaInfo"`
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
	GPUs  wire.Set[gpuXML] `xml:"gpus"`
	Total int              `xml:"totalGpuMemoryInMiB"`
}

type gpuXML struct {
	Name         string  `xml:"name"`
	Manufacturer string  `xml:"manufacturer"`
	Count        int     `xml:"count"`
	Logical      int     `xml:"logicalGpuCount"`
	Partition    float64 `xml:"gpuPartitionSize"`
	MemoryMiB    int     `xml:"memoryInfo>sizeInMiB"`
}

// Metal reports a machine without a hypervisor.
func (t Type) Metal() bool { return strings.HasSuffix(t.Name, ".metal") }

// XML is the type as DescribeInstanceTypes shows it.
func (t Type) XML() XML {
	x := XML{Name: t.Name, Current: t.CurrentGeneration, Free: t.Name == "t3.micro", Usage: wire.SetOf(t.Usage), Roots: wire.SetOf([]string{"ebs"}),
		Virtual: wire.SetOf([]string{"hvm"}), Metal: t.Metal(), Hypervisor: "nitro", Processor: processorXML{wire.SetOf([]string{t.Arch}), 3.1, "Intel"},
		VCPU: vcpuXML{t.VCPUs, max(1, t.VCPUs/2), 2}, MemoryMiB: t.MemoryMiB, HasStorage: t.NVMeGB > 0, Strategies: wire.SetOf(t.Strategies),
		Burst: t.Burstable, Network: t.network()}
	switch {
	case t.Metal():
		x.Hypervisor = ""
	case t.Xen:
		x.Hypervisor = "xen"
	}
	if t.Arch == "arm64" {
		x.Processor.Manufacturer, x.VCPU.Threads, x.VCPU.Cores = "AWS", 1, t.VCPUs
	}
	if t.NVMeGB > 0 {
		count, size, _ := strings.Cut(t.Disks, "x")
		x.Storage = &storageXML{t.NVMeGB, wire.SetOf([]diskXML{{int(number(size)), int(number(count)), "ssd"}}), "required", "required"}
	}
	if t.GPU != "" {
		g := gpuXML{t.GPU, t.GPUVendor, t.GPUs, t.Logical, t.Partition, t.GPUMemoryMiB}
		if g.Partition == 0 {
			g.Partition = 1
		}
		x.GPU = &gpusXML{wire.SetOf([]gpuXML{g}), t.TotalGPUMiB}
	}
	return x
}

func (t Type) network() networkXML {
	x := networkXML{Performance: t.Network, Interfaces: 4 * t.Cards, MaxCards: t.Cards, ENA: "required", EFA: t.EFA}
	for i := range t.Cards {
		x.Cards.Items = append(x.Cards.Items, cardXML{i, t.Network, 4, t.PeakGbps / float64(t.Cards)})
	}
	if t.EFA {
		x.EFAInfo = &efaXML{t.EFAs}
	}
	return x
}

func one(v string) []string { return []string{v} }

func yes(b bool) string { return strconv.FormatBool(b) }

// Fields are the values that the filters of DescribeInstanceTypes look at.
func (t Type) Fields() map[string][]string {
	return map[string][]string{"instance-type": one(t.Name), "processor-info.supported-architecture": one(t.Arch), "current-generation": one(yes(t.CurrentGeneration)),
		"supported-usage-class": t.Usage, "vcpu-info.default-vcpus": one(strconv.Itoa(t.VCPUs)), "network-info.efa-supported": one(yes(t.EFA)),
		"bare-metal": one(yes(t.Metal())), "instance-storage-supported": one(yes(t.NVMeGB > 0)), "supported-root-device-type": one("ebs"),
		"burstable-performance-supported": one(yes(t.Burstable)), "memory-info.size-in-mib": one(strconv.Itoa(t.MemoryMiB)),
		"placement-group-info.supported-strategies": t.Strategies, "supported-virtualization-type": one("hvm"), "hypervisor": one("nitro")}
}

// Text is XML that was made before.
type Text struct {
	Text string `xml:",innerxml"`
}

var typesWritten sync.Map // by their names

// Written is the XML of the type.
func (t Type) Written() Text {
	if w, ok := typesWritten.Load(t.Name); ok {
		return w.(Text)
	}
	w := Text{string(wire.Inner(t.XML()))}
	typesWritten.Store(t.Name, w)
	return w
}
