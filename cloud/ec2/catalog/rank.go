package catalog

import (
	"cmp"
	"math"
	"slices"

	"github.com/dlwb/dlwb/cloud"
)

// rank sorts: what can be had before what cannot, and what AWS told of before
// what only the table knows; then by price of the machine, of a GPU and of a GB
// of its memory. What has no price comes last. The names
// make the order total.
func rank(list []candidate, spot bool) []candidate {
	slices.SortStableFunc(list, func(a, b candidate) int {
		pa, pb := marketPrice(a.Offer, spot), marketPrice(b.Offer, spot)
		return cmp.Or(
			last(a.bar != "", b.bar != ""),
			last(a.unsure, b.unsure),
			cmp.Compare(orInf(pa), orInf(pb)),
			cmp.Compare(per(pa, gpusOf(a.Offer)), per(pb, gpusOf(b.Offer))),
			cmp.Compare(per(pa, gpuBytes(a.Offer)), per(pb, gpuBytes(b.Offer))),
			cmp.Compare(a.Instance, b.Instance),
			cmp.Compare(a.turn, b.turn),
		)
	})
	return list
}

// prefer turns a ranking into an order of attempts.
func prefer(list []candidate) []candidate {
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(
			last(a.bar != "", b.bar != ""),
			last(a.unsure, b.unsure),
			last(a.odd, b.odd),
			cmp.Compare(a.turn, b.turn),
		)
	})
	return list
}

// last puts what is true behind what is not.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// marketPrice is the price of a machine in one market; 0 when not known. A
// spot machine never costs more than one on demand, so that is its price for
// as long as nothing better is known.
func marketPrice(o cloud.Offer, spot bool) float64 {
	if spot && o.Spot.Known() {
		return o.Spot.PerHour
	}
	return o.OnDemand.PerHour
}

// gpusOf counts GPUs; a part of one is that part.
func gpusOf(o cloud.Offer) float64 { return float64(o.GPUs) * o.GPUShare }

func gpuBytes(o cloud.Offer) float64 { return float64(o.GPUs) * float64(o.GPUMemory) }

func per(price, n float64) float64 {
	if n <= 0 {
		return math.Inf(1)
	}
	return orInf(price) / n
}

// orInf is a price for comparing: one that is not known is more than any.
func orInf(price float64) float64 {
	if price <= 0 {
		return math.Inf(1)
	}
	return price
}
