package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/units"
)

// marketed are the sizes that GPU memory is sold as, in GiB.
var marketed = []int64{3, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192, 288}

// tolerance is how much less than its marketed size a GPU may report: ECC and
// the driver take their part before AWS counts. An A10G is sold as 24 GB and
// reports 22888 MiB, which is 93.1 % of it.
const tolerance = 0.07

// marketSize is the size that a GPU's memory is known by: the next size that
// GPUs are sold as, when what it reports is less than 7 % below that; else
// what it reports. A need for ">=24GB" is held against this size.
func marketSize(reported int64) int64 {
	for _, size := range marketed {
		if bytes := size * gib; bytes >= reported {
			if float64(reported) >= float64(bytes)*(1-tolerance) {
				return bytes
			}
			break
		}
	}
	return reported
}

// model is a GPU as people write it.
type model struct {
	name string // "a100", "rtxpro6000"
	gib  int64  // 0: any
}

var (
	separators = pattern.New(`[^a-z0-9]+`)
	// noise are the words that people add to a model or leave out.
	noise    = pattern.New(`^(nvidia|amd|tesla|geforce|server|blackwell|hopper|ampere|edition|gpu|tensor|core|sxm[0-9]?|pcie|nvl|hbm[0-9]?e?)$`)
	sizeWord = pattern.New(`^([0-9]{1,3})(g|gb|gib)$`)
	// aliases are models by their other names.
	aliases = map[string]string{"a10": "a10g", "rtx6000pro": "rtxpro6000", "rtx4500pro": "rtxpro4500", "pro6000": "rtxpro6000", "pro4500": "rtxpro4500", "v520": "radeonprov520"}
)

// parseModel understands "A10G", "nvidia l4", "a100-80gb", "Tesla V100" and
// "RTX PRO 6000", which AWS calls RTX PRO Server 6000.
func parseModel(s string) model {
	var m model
	for _, word := range separators.Split(strings.ToLower(s), -1) {
		if size := sizeWord.FindStringSubmatch(word); size != nil {
			m.gib, _ = strconv.ParseInt(size[1], 10, 64)
		} else if !noise.MatchString(word) {
			m.name += word
		}
	}
	if other, ok := aliases[m.name]; ok {
		m.name = other
	}
	return m
}

// is reports whether an offer's whole GPUs are of the model. A part of a GPU
// is not one: whoever wants it names the type, or says how much memory.
func (m model) is(o cloud.Offer) bool {
	return o.GPUs > 0 && o.GPUShare >= 1 && m.name == parseModel(o.GPU).name &&
		(m.gib == 0 || m.gib*gib == marketSize(o.GPUMemory))
}

// criterion is one part of a need.
type criterion struct {
	text string // "gpu A10G or L4"
	// short is how far an offer is from meeting it; 0: it does.
	short func(cloud.Offer) float64
}

// criteria are the parts of a need. A price that is not known does not meet a
// limit on it.
func criteria(n cloud.Need, spot bool) []criterion {
	var list []criterion
	if len(n.GPU) > 0 {
		models := make([]model, len(n.GPU))
		for i, s := range n.GPU {
			models[i] = parseModel(s)
		}
		list = append(list, criterion{"gpu " + strings.Join(n.GPU, " or "), func(o cloud.Offer) float64 {
			return truth(slices.ContainsFunc(models, func(m model) bool { return m.is(o) }))
		}})
	}
	if n.GPUs > 0 {
		list = append(list, criterion{fmt.Sprintf("gpus >= %d", n.GPUs), func(o cloud.Offer) float64 {
			return shortfall(gpusOf(o), float64(n.GPUs))
		}})
	}
	if n.Memory > 0 {
		list = append(list, criterion{"memory >= " + units.Bytes(n.Memory), func(o cloud.Offer) float64 {
			return shortfall(float64(marketSize(o.GPUMemory)), float64(n.Memory))
		}})
	}
	if n.MaxPrice > 0 {
		list = append(list, criterion{fmt.Sprintf("max_price %.4g $/h", n.MaxPrice), func(o cloud.Offer) float64 {
			return excess(marketPrice(o, spot), n.MaxPrice)
		}})
	}
	return list
}

func truth(meets bool) float64 {
	if meets {
		return 0
	}
	return 1
}

func shortfall(have, want float64) float64 { return max(0, (want-have)/want) }

func excess(price, limit float64) float64 {
	if price <= 0 {
		return 1
	}
	return max(0, (price-limit)/limit)
}

// Ruled is one part of a need and how many types do not meet it.
type Ruled struct {
	Part string // "gpus >= 16"
	Out  int
}

// NoFit says that no type meets a need.
type NoFit struct {
	Regions []string
	Types   int // that were looked at, each region's for itself
	Ruled   []Ruled
	// Nearest is the type that misses the fewest parts of the need, and by the
	// least; nil when there are no types at all.
	Nearest *cloud.Offer
	Misses  []string // the parts that it misses
	// Unpriced is how many types have no known price; they meet no max_price.
	Unpriced int
	// Models are the GPUs that there are, when none of them is asked for.
	Models  []string
	nearest string
}

func (e *NoFit) Error() string {
	where := cmp.Or(strings.Join(e.Regions, ", "), "any region that was asked")
	if e.Nearest == nil {
		return "no machine meets the need: there are no GPU types in " + where
	}
	parts := make([]string, len(e.Ruled))
	for i, r := range e.Ruled {
		parts[i] = fmt.Sprintf("%s rules out %d", r.Part, r.Out)
		if i == 0 && len(e.Models) > 0 {
			parts[i] += " (there are " + strings.Join(e.Models, ", ") + ")"
		}
	}
	text := fmt.Sprintf("no machine in %s meets the need: of %d types, %s", where, e.Types, strings.Join(parts, ", "))
	if e.Unpriced > 0 {
		text += fmt.Sprintf(" (the price of %d is not known)", e.Unpriced)
	}
	return text + "; the nearest is " + e.nearest + ", which misses " + strings.Join(e.Misses, " and ")
}

// sift keeps the candidates that meet the need; none is a *NoFit.
func sift(all []candidate, n cloud.Need, spot bool) ([]candidate, error) {
	parts := criteria(n, spot)
	var fit []candidate
	for _, c := range all {
		if !slices.ContainsFunc(parts, func(p criterion) bool { return p.short(c.Offer) > 0 }) {
			fit = append(fit, c)
		}
	}
	if len(fit) > 0 {
		return fit, nil
	}
	return nil, noFit(all, parts, n, spot)
}

func noFit(all []candidate, parts []criterion, n cloud.Need, spot bool) *NoFit {
	e := &NoFit{Types: len(all)}
	for _, p := range parts {
		r := Ruled{Part: p.text}
		for _, c := range all {
			if p.short(c.Offer) > 0 {
				r.Out++
			}
		}
		e.Ruled = append(e.Ruled, r)
	}
	if len(n.GPU) > 0 && len(all) > 0 && e.Ruled[0].Out == len(all) {
		e.Models = gpuNames(all)
	}
	for _, c := range all {
		if !slices.Contains(e.Regions, c.Region) {
			e.Regions = append(e.Regions, c.Region)
		}
		if n.MaxPrice > 0 && marketPrice(c.Offer, spot) == 0 {
			e.Unpriced++
		}
	}
	if len(all) > 0 {
		e.setNearest(all, parts, spot)
	}
	return e
}

// gpuNames are the names of all GPUs, each once.
func gpuNames(all []candidate) []string {
	var names []string
	for _, c := range all {
		if c.GPUs > 0 {
			names = append(names, c.GPU)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (e *NoFit) setNearest(all []candidate, parts []criterion, spot bool) {
	near := slices.MinFunc(all, func(a, b candidate) int {
		missA, sumA := misses(a.Offer, parts)
		missB, sumB := misses(b.Offer, parts)
		return cmp.Or(
			cmp.Compare(len(missA), len(missB)),
			cmp.Compare(sumA, sumB),
			cmp.Compare(orInf(marketPrice(a.Offer, spot)), orInf(marketPrice(b.Offer, spot))),
			cmp.Compare(a.Instance, b.Instance),
		)
	})
	e.Nearest = &near.Offer
	e.Misses, _ = misses(near.Offer, parts)
	e.nearest = describe(near.Offer, marketPrice(near.Offer, spot))
}

// misses are the parts that an offer does not meet, and by how much together.
func misses(o cloud.Offer, parts []criterion) (missed []string, sum float64) {
	for _, p := range parts {
		if short := p.short(o); short > 0 {
			missed = append(missed, p.text)
			sum += short
		}
	}
	return missed, sum
}

// describe is an offer in half a sentence.
func describe(o cloud.Offer, price float64) string {
	text := o.Instance
	if o.GPUs > 0 {
		text += fmt.Sprintf(" (%d × %s with %s)", o.GPUs, o.GPU, units.Binary(o.GPUMemory))
	}
	if price > 0 {
		return text + " at " + units.PerHour(price)
	}
	return text + ", whose price is not known"
}
