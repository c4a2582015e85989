package offers

import (
	"cmp"
	"fmt"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
)

// column is one column of the table of machines.
type column struct {
	name  string
	w     int
	rank  int // which columns are given room first
	left  bool
	cell  func(o *cloud.Offer, spot bool) string
	value func(o *cloud.Offer, spot bool) float64 // to sort by; nil: the text
	most  bool                                    // the largest comes first
}

// columns are all columns, from left to right.
var columns = []column{
	{name: "machine", w: 17, rank: 0, left: true, cell: func(o *cloud.Offer, _ bool) string { return text.Word(o.Instance) }},
	{name: "region", w: 15, rank: 6, left: true, cell: func(o *cloud.Offer, _ bool) string { return text.Word(o.Region) }},
	{name: "GPUs", w: 14, rank: 1, left: true, cell: func(o *cloud.Offer, _ bool) string { return gpusText(o) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.GPUs) * o.GPUShare }},
	{name: "each", w: 8, rank: 5, cell: func(o *cloud.Offer, _ bool) string { return text.OrDash(o.GPUMemory > 0, units.Binary(o.GPUMemory)) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.GPUMemory) }},
	{name: "vCPU", w: 6, rank: 8, cell: func(o *cloud.Offer, _ bool) string { return fmt.Sprint(o.VCPUs) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.VCPUs) }},
	{name: "RAM", w: 10, rank: 9, cell: func(o *cloud.Offer, _ bool) string { return units.Binary(o.Memory) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.Memory) }},
	{name: "$/h", w: 8, rank: 2, cell: func(o *cloud.Offer, _ bool) string { return cents(o.OnDemand.PerHour) },
		value: func(o *cloud.Offer, _ bool) float64 { return o.OnDemand.PerHour }},
	{name: "spot", w: 8, rank: 3, cell: func(o *cloud.Offer, _ bool) string { return cents(o.Spot.PerHour) },
		value: func(o *cloud.Offer, _ bool) float64 { return o.Spot.PerHour }},
	{name: "saves", w: 7, rank: 10, cell: func(o *cloud.Offer, _ bool) string {
		return text.OrDash(o.SpotSaving() > 0, fmt.Sprintf("%.0f%%", 100*o.SpotSaving()))
	}, most: true, value: func(o *cloud.Offer, _ bool) float64 { return o.SpotSaving() }},
	{name: "$/GPU-h", w: 9, rank: 4, cell: func(o *cloud.Offer, spot bool) string { return cents(o.PerGPUHour(spot)) },
		value: func(o *cloud.Offer, spot bool) float64 { return o.PerGPUHour(spot) }},
	{name: "$/GB-h", w: 8, rank: 11, cell: func(o *cloud.Offer, spot bool) string { return cents(o.PerGBHour(spot)) },
		value: func(o *cloud.Offer, spot bool) float64 { return o.PerGBHour(spot) }},
	{name: "quota", w: 7, rank: 7, cell: func(o *cloud.Offer, spot bool) string { return quotaText(o, spot) }, most: true,
		value: func(o *cloud.Offer, spot bool) float64 { return float64(quotaOf(o, spot).Left) }},
	{name: "zones", w: 7, rank: 12, cell: func(o *cloud.Offer, _ bool) string { return text.OrDash(len(o.Zones) > 0, fmt.Sprint(len(o.Zones))) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(len(o.Zones)) }},
}

// compare orders two offers by a column. What is not known comes last, also in
// reverse.
func (c *column) compare(a, b *cloud.Offer, spot, reverse bool) int {
	if c.value == nil {
		if order := cmp.Compare(c.cell(a, spot), c.cell(b, spot)); !reverse {
			return order
		}
		return cmp.Compare(c.cell(b, spot), c.cell(a, spot))
	}
	x, y := c.value(a, spot), c.value(b, spot)
	switch {
	case x == y:
		return 0
	case x == 0:
		return 1
	case y == 0:
		return -1
	case c.most != reverse:
		return cmp.Compare(y, x)
	}
	return cmp.Compare(x, y)
}

// cents is a price for a column; a dash when it is not known.
func cents(v float64) string { return text.OrDash(v > 0, units.Cents(v)) }

func gpusText(o *cloud.Offer) string {
	switch {
	case o.GPUs == 0:
		return "-"
	case o.GPUShare > 0 && o.GPUShare < 1:
		return fmt.Sprintf("1/%.0f %s", 1/o.GPUShare, text.Word(o.GPU))
	}
	return fmt.Sprintf("%d × %s", o.GPUs, text.Word(o.GPU))
}

func quotaOf(o *cloud.Offer, spot bool) cloud.Quota {
	if spot {
		return o.SpotQuota
	}
	return o.Quota
}

// quotaText is how many machines the quota still allows.
func quotaText(o *cloud.Offer, spot bool) string {
	if q := quotaOf(o, spot); q.Known {
		return fmt.Sprint(q.Left)
	}
	return "?"
}

// Price is what a machine costs an hour, as it is judged.
func Price(o *cloud.Offer, spot bool) float64 {
	if spot && o.Spot.Known() {
		return o.Spot.PerHour
	}
	return o.OnDemand.PerHour
}

// fit sets a text into the column, a blank between it and the next.
func (c *column) fit(txt string) string {
	if c.left {
		return text.Fit(txt, c.w-1) + " "
	}
	return text.FlushRight(txt, c.w)
}
