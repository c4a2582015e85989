// Package catalog knows which machines EC2 has, what they cost and how many of
// them still fit into the account: facts that came with dlwb, and, when AWS can
// be asked, the market as it is now. It makes nothing and changes nothing.
package catalog

import (
	"bytes"
	_ "embed" // for the table
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// Facts are what is the same of an instance type in every region and account.
type Facts struct {
	Instance string `json:"instance"` // "g5.xlarge"
	Arch     string `json:"arch"`     // "x86_64" or "arm64"
	Vendor   string `json:"vendor"`   // of the GPU: "NVIDIA", "AMD"
	GPU      string `json:"gpu"`      // model, "A10G"; empty: none
	GPUs     int    `json:"gpus"`
	// Share is below 1 for a type that has a part of a GPU.
	Share     float64 `json:"share"`
	GPUMemory int64   `json:"gpu_memory"` // of each GPU or part of one, bytes
	VCPUs     int     `json:"vcpus"`
	Memory    int64   `json:"memory"`  // bytes
	Network   string  `json:"network"` // in AWS's words
	EFA       int     `json:"efa"`     // how many it can have
	Cards     int     `json:"cards"`   // network cards; 0: not known
	NVMe      int64   `json:"nvme"`    // bytes
	// Placement are the strategies that a placement group of it may have.
	Placement []string `json:"placement"`
	// Usage are the ways to buy it: "on-demand", "spot", "capacity-block".
	Usage []string `json:"usage"`
	// Hypervisor is "nitro" or "xen"; empty: none, or not known.
	Hypervisor string `json:"hypervisor,omitempty"`
	// Remark is what else is to be known of it.
	Remark string `json:"remark,omitempty"`
}

const (
	gib = 1 << 30
	mib = 1 << 20
	gb  = 1_000_000_000
)

// The table's facts are from a dump of DescribeInstanceTypes of 2026-08-02
// (those of p3 and p6e-gb200 from general knowledge, and marked), its prices
// from karpenter-provider-aws's generated table for us-east-1.
//
//go:embed gpu.csv
var table []byte

// tableRegion is the one region whose prices are in the table.
const tableRegion = "us-east-1"

const tableSource = "dlwb's own table of 2026-07-20"

var tableDate = time.Date(2026, 7, 20, 0, 0, 0, 0, time.UTC)

// row is one line of the table.
type row struct {
	Facts
	zones int     // of us-east-1 that offered it; -1: not known
	price float64 // on demand in us-east-1; 0: not known
}

// rows is the table by name of the type.
var rows = sync.OnceValue(func() map[string]row {
	lines, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		panic("gpu.csv: " + err.Error()) // it is part of the program
	}
	all := make(map[string]row, len(lines))
	for _, line := range lines[1:] {
		r := parseRow(line)
		all[r.Instance] = r
	}
	return all
})

func parseRow(f []string) row {
	r := row{
		Facts: Facts{
			Instance: f[0], Arch: f[1], Vendor: f[2], GPU: f[3],
			GPUs: int(number(f[4])), Share: number(f[5]), GPUMemory: int64(number(f[6]) * mib),
			VCPUs: int(number(f[7])), Memory: int64(number(f[8]) * gib), Network: f[9],
			EFA: int(number(f[10])), NVMe: int64(number(f[11]) * gb),
			Placement: words(f[12]), Usage: words(f[13]), Remark: f[16],
		},
		zones: -1, price: number(f[15]),
	}
	if f[14] != "" {
		r.zones = int(number(f[14]))
	}
	return r
}

// number reads a field of the table; an empty one is 0.
func number(s string) float64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("gpu.csv: %q is no number", s))
	}
	return n
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "/")
}

// Builtin are the GPU types that dlwb knows without asking anybody, ranked by
// price. It has prices for us-east-1 only: elsewhere they are not known, which
// is not to be mistaken for the price in us-east-1.
func Builtin(region string) []cloud.Offer {
	v := view{region: region}
	return plain(rank(v.candidates(cloud.Query{}), false))
}

// builtinFacts are the facts of the table's types.
func builtinFacts() []Facts {
	all := make([]Facts, 0, len(rows()))
	for _, r := range rows() {
		all = append(all, r.Facts)
	}
	return all
}

// tablePrice is what the table knows of a price on demand.
func tablePrice(region, instance string) cloud.Price {
	r := rows()[instance]
	if region != tableRegion || r.price == 0 {
		return cloud.Price{}
	}
	return cloud.Price{PerHour: r.price, Source: tableSource, At: tableDate}
}

// hoursPerMonth is how AWS turns a month into hours on its price pages.
const hoursPerMonth = 730

// DiskPrice is what one GB of gp3 disk (2^30 bytes, as AWS counts) costs for an
// hour, as far as dlwb knows without asking: the figure of us-east-1, and
// labelled so elsewhere. Market.DiskPrice asks.
func DiskPrice(region string) cloud.Price {
	source := tableSource
	if region != tableRegion {
		source += " for " + tableRegion + "; other regions may differ"
	}
	return cloud.Price{PerHour: 0.08 / hoursPerMonth, Source: source, At: tableDate}
}

// AddressPrice is what one public IPv4 address costs for an hour, in every
// region.
func AddressPrice() cloud.Price {
	return cloud.Price{PerHour: 0.005, Source: tableSource, At: tableDate}
}

// SizeOf is how many GPUs and cores a type has, as far as the table knows it.
func SizeOf(instance string) (gpus, cores int) {
	f, _ := FactsOf(instance)
	return f.GPUs, f.VCPUs
}

// FactsOf is what the table knows of a type, if it does.
func FactsOf(instance string) (Facts, bool) {
	r, known := rows()[instance]
	return r.Facts, known
}
