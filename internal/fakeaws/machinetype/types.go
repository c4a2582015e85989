// Package machinetype is what AWS tells of instance types: the GPU types of a
// table, and four without GPUs.
package machinetype

import (
	_ "embed"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Type is what is known of one type.
type Type struct {
	Name, Arch                   string
	GPUVendor, GPU               string
	GPUs                         int     // 0 for a part of one
	Partition                    float64 // below 1 for a part of one
	Logical                      int     // how many devices the machine has
	GPUMemoryMiB, TotalGPUMiB    int
	VCPUs                        int
	MemoryMiB                    int
	Network                      string
	PeakGbps                     float64
	Cards                        int
	EFA                          bool
	EFAs                         int
	NVMeGB                       int
	Disks                        string // "8x1000"
	Strategies, Usage            []string
	ZoneCount                    int
	PriceUSD                     float64 // per hour on demand; 0: none
	Burstable, CurrentGeneration bool
	Xen                          bool // it is none of the Nitro System
}

//go:embed types.csv
var typesCSV string

// All are the GPU types of the table, and four without GPUs.
var All = sync.OnceValue(func() []Type {
	rows, err := csv.NewReader(strings.NewReader(typesCSV)).ReadAll()
	if err != nil {
		panic(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	types := plainTypes()
	for _, row := range rows[1:] {
		types = append(types, readType(func(name string) string { return row[column[name]] }))
	}
	slices.SortFunc(types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return types
})

func readType(cell func(string) string) Type {
	t := Type{Name: cell("instance_type"), Arch: cell("arch"), GPUVendor: cell("gpu_vendor"), GPU: cell("gpu_model"),
		GPUs: int(number(cell("gpu_count"))), Partition: number(cell("gpu_partition")), Logical: int(number(cell("logical_gpus"))),
		GPUMemoryMiB: int(number(cell("gpu_mem_mib"))), TotalGPUMiB: int(number(cell("total_gpu_mem_mib"))),
		VCPUs: int(number(cell("vcpus"))), MemoryMiB: int(number(cell("ram_gib")) * 1024),
		Network: cell("network"), PeakGbps: number(cell("net_peak_gbps")), Cards: max(1, int(number(cell("network_cards")))),
		EFA: cell("efa") == "True", EFAs: int(number(cell("efa_max_ifaces"))),
		NVMeGB: int(number(cell("nvme_gb"))), Disks: cell("nvme_disks"),
		ZoneCount: int(number(cell("us_east_1_azs"))), PriceUSD: number(cell("us_east_1_ondemand_usd_h")), CurrentGeneration: true}
	if s := cell("placement"); s != "" {
		t.Strategies = strings.Split(s, "/")
	}
	for _, u := range strings.Split(cell("usage"), "/") {
		t.Usage = append(t.Usage, strings.TrimSuffix(u, " (UltraServer)"))
	}
	if t.Logical == 0 {
		t.Logical = t.GPUs
	}
	return t
}

// number reads a cell; an empty one is 0.
func number(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

func plainTypes() []Type {
	usage := []string{"on-demand", "spot"}
	groups := []string{"cluster", "partition", "spread"}
	return []Type{
		{Name: "t3.micro", Arch: "x86_64", VCPUs: 2, MemoryMiB: 1024, Network: "Up to 5 Gigabit", PeakGbps: 5, Cards: 1,
			Strategies: groups[1:], Usage: usage, ZoneCount: 5, PriceUSD: 0.0104, Burstable: true, CurrentGeneration: true},
		{Name: "c5.large", Arch: "x86_64", VCPUs: 2, MemoryMiB: 4096, Network: "Up to 10 Gigabit", PeakGbps: 10, Cards: 1,
			Strategies: groups, Usage: usage, ZoneCount: 6, PriceUSD: 0.085, CurrentGeneration: true},
		{Name: "m5.xlarge", Arch: "x86_64", VCPUs: 4, MemoryMiB: 16384, Network: "Up to 10 Gigabit", PeakGbps: 10, Cards: 1,
			Strategies: groups, Usage: usage, ZoneCount: 6, PriceUSD: 0.192, CurrentGeneration: true},
		{Name: "m4.xlarge", Arch: "x86_64", VCPUs: 4, MemoryMiB: 16384, Network: "High", PeakGbps: 0.75, Cards: 1, Xen: true,
			Strategies: groups, Usage: usage, ZoneCount: 5, PriceUSD: 0.2},
	}
}

// Family is the letters before the generation: "g", "p", "t".
func (t Type) Family() string {
	return t.Name[:strings.IndexAny(t.Name, "0123456789")]
}

// QuotaCode is the quota that the type counts against.
func (t Type) QuotaCode(spot bool) string {
	switch f := t.Family(); {
	case (f == "g" || f == "gr" || f == "vt") && spot:
		return "L-3819A6DF"
	case f == "g" || f == "gr" || f == "vt":
		return "L-DB2E81BA"
	case f == "p" && !spot:
		return "L-417A185B"
	case strings.HasPrefix(t.Name, "p5"):
		return "L-C4BD4855"
	case f == "p":
		return "L-7212CCBC"
	case spot:
		return "L-34B43A08"
	}
	return "L-1216C47A"
}
