package catalog

import (
	"slices"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"pgregory.net/rapid"
)

func anyCandidate() *rapid.Generator[candidate] {
	price := rapid.SampledFrom([]float64{0, 0.5, 1, 2, 3.5})
	return rapid.Custom(func(t *rapid.T) candidate {
		return candidate{
			Offer: cloud.Offer{
				Instance: rapid.StringMatching(`[gp][3-6]\.(large|xlarge)`).Draw(t, "name"),
				GPUs:     rapid.IntRange(0, 8).Draw(t, "gpus"), GPUShare: rapid.SampledFrom([]float64{0.125, 1}).Draw(t, "share"),
				GPUMemory: rapid.Int64Range(0, 96*gib).Draw(t, "memory"),
				OnDemand:  cloud.Price{PerHour: price.Draw(t, "price")},
				Spot:      cloud.Price{PerHour: price.Draw(t, "spot")},
			},
			turn: rapid.IntRange(0, 3).Draw(t, "turn"),
			bar:  rapid.SampledFrom([]string{"", "", "quota"}).Draw(t, "bar"),
			odd:  rapid.Bool().Draw(t, "odd"),

			unsure: rapid.Bool().Draw(t, "unsure"),
		}
	})
}

func TestARankingIsOrderedAndLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(anyCandidate(), 0, 20).Draw(t, "list")
		spot := rapid.Bool().Draw(t, "spot")
		got := rank(slices.Clone(list), spot)
		if len(got) != len(list) {
			t.Fatalf("%d of %d are left", len(got), len(list))
		}
		for i := 1; i < len(got); i++ {
			a, b := got[i-1], got[i]
			if a.bar != "" && b.bar == "" {
				t.Fatal("what cannot be had stands before what can")
			}
			if (a.bar != "") != (b.bar != "") {
				continue
			}
			if a.unsure && !b.unsure {
				t.Fatal("what only the table knows stands before what AWS told of")
			}
			if a.unsure == b.unsure && orInf(marketPrice(a.Offer, spot)) > orInf(marketPrice(b.Offer, spot)) {
				t.Fatalf("%v before %v", a.Offer, b.Offer)
			}
		}
		for _, c := range list {
			if !slices.ContainsFunc(got, func(g candidate) bool { return same(g, c) }) {
				t.Fatalf("%+v is lost", c)
			}
		}
	})
}

func same(a, b candidate) bool {
	return a.Instance == b.Instance && a.turn == b.turn && a.bar == b.bar && a.OnDemand == b.OnDemand && a.Spot == b.Spot && a.GPUs == b.GPUs && a.unsure == b.unsure
}

func TestARankingDoesNotDependOnTheOrderOfTheAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(anyCandidate(), 0, 12, func(c candidate) [2]any { return [2]any{c.Instance, c.turn} }).Draw(t, "list")
		spot := rapid.Bool().Draw(t, "spot")
		other := rapid.Permutation(list).Draw(t, "permuted")
		a, b := plain(rank(slices.Clone(list), spot)), plain(rank(slices.Clone(other), spot))
		if !slices.Equal(names(a), names(b)) {
			t.Fatalf("%v and %v", names(a), names(b))
		}
	})
}

func TestAnOrderOfAttemptsRespectsTheRegions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(anyCandidate(), 0, 20).Draw(t, "list")
		got := prefer(rank(slices.Clone(list), false))
		for i := 1; i < len(got); i++ {
			a, b := got[i-1], got[i]
			if last(a.bar != "", b.bar != "") > 0 {
				t.Fatal("what cannot be had is tried before what can")
			}
			if (a.bar != "") != (b.bar != "") {
				continue
			}
			if a.unsure != b.unsure {
				if a.unsure {
					t.Fatal("what only the table knows is tried before what AWS told of")
				}
				continue
			}
			if a.odd && !b.odd || a.odd == b.odd && a.turn > b.turn {
				t.Fatalf("%+v is tried before %+v", a, b)
			}
		}
	})
}

// Whatever sift keeps meets every part of the need, whatever it drops does not,
// and the ruled-out counts of an empty answer add up.
func TestSiftKeepsWhatMeetsTheNeed(t *testing.T) {
	models := []string{"A10G", "L4", "A100", "a100-80gb", "H100", "T4", "V100"}
	all := view{region: "us-east-1"}
	list := all.candidates(cloud.Query{})
	rapid.Check(t, func(t *rapid.T) {
		need := cloud.Need{
			GPU:      rapid.SliceOfN(rapid.SampledFrom(models), 0, 3).Draw(t, "gpu"),
			GPUs:     rapid.IntRange(0, 10).Draw(t, "gpus"),
			Memory:   rapid.Int64Range(0, 100).Draw(t, "memory") * gb,
			MaxPrice: rapid.SampledFrom([]float64{0, 0.1, 1, 5, 30}).Draw(t, "max"),
		}
		fit, err := sift(list, need, false)
		if err != nil {
			none := err.(*NoFit)
			if len(fit) > 0 || none.Types != len(list) || none.Nearest == nil || len(none.Misses) == 0 {
				t.Fatalf("%+v: %v", need, err)
			}
			return
		}
		for _, c := range list {
			kept := slices.ContainsFunc(fit, func(f candidate) bool { return f.Instance == c.Instance })
			meets := (need.GPUs == 0 || gpusOf(c.Offer) >= float64(need.GPUs)) &&
				(need.MaxPrice == 0 || c.OnDemand.Known() && c.OnDemand.PerHour <= need.MaxPrice) &&
				(need.Memory == 0 || float64(c.GPUMemory) >= float64(need.Memory)*(1-tolerance) && marketSize(c.GPUMemory) >= need.Memory) &&
				(len(need.GPU) == 0 || slices.ContainsFunc(need.GPU, func(s string) bool { return parseModel(s).is(c.Offer) }))
			if kept != meets {
				t.Fatalf("%s: kept %v, meets %v %+v", c.Instance, kept, meets, need)
			}
		}
	})
}
