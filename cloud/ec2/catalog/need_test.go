package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"pgregory.net/rapid"
)

func TestMarketSize(t *testing.T) {
	for _, c := range []struct {
		name     string
		reported int64 // MiB
		want     int64 // GiB
	}{
		{"A10G", 22888, 24}, {"L4", 22888, 24}, {"T4", 16384, 16}, {"L40S", 45776, 48}, {"A100", 40960, 40},
		{"A100 80GB", 81920, 80}, {"H200", 144384, 141}, {"B200", 183359, 192}, {"B300", 275040, 288},
		{"RTX PRO 6000", 98304, 96}, {"L4/2", 11444, 12}, {"L4/4", 5722, 6}, {"L4/8", 2861, 3},
	} {
		if got := marketSize(c.reported * mib); got != c.want*gib {
			t.Errorf("%s: %d MiB is sold as %d GiB, want %d", c.name, c.reported, got/gib, c.want)
		}
	}
	if odd := int64(42 * gib); marketSize(odd) != odd {
		t.Error("42 GiB is more than 7 % below 48 GiB: it is not rounded up")
	}
	if huge := int64(1000 * gib); marketSize(huge) != huge {
		t.Error("what is larger than all sizes stays what it is")
	}
}

func TestMarketSizeNeverTakesAwayAndAddsLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 400*gib).Draw(t, "reported")
		got := marketSize(n)
		if got < n || float64(n) < float64(got)*(1-tolerance) {
			t.Fatalf("%d became %d", n, got)
		}
	})
}

func TestModelsByTheirCommonSpellings(t *testing.T) {
	all := Builtin("us-east-1")
	for _, c := range []struct {
		spelling string
		yes, no  string
	}{
		{"A10G", "g5.xlarge", "g6.xlarge"},
		{"a10g", "g5.xlarge", "g6.xlarge"},
		{"A10", "g5.xlarge", "g6.xlarge"},
		{"NVIDIA L4", "g6.xlarge", "g6e.xlarge"},
		{"nvidia-l4", "gr6.4xlarge", "g6f.large"}, // a part of an L4 is no L4
		{"L40S", "g6e.xlarge", "g6.xlarge"},
		{"T4", "g4dn.xlarge", "g5g.xlarge"},
		{"t4g", "g5g.xlarge", "g4dn.xlarge"},
		{"Tesla V100", "p3.2xlarge", "p4d.24xlarge"},
		{"V100-SXM2-32GB", "p3dn.24xlarge", "p3.16xlarge"},
		{"A100", "p4d.24xlarge", "p5.48xlarge"},
		{"A100", "p4de.24xlarge", "g5.xlarge"},
		{"a100-80gb", "p4de.24xlarge", "p4d.24xlarge"},
		{"A100-40GB", "p4d.24xlarge", "p4de.24xlarge"},
		{"NVIDIA A100-SXM4-80GB", "p4de.24xlarge", "p4d.24xlarge"},
		{"h100", "p5.4xlarge", "p5en.48xlarge"},
		{"H100 80GB HBM3", "p5.48xlarge", "p5e.48xlarge"},
		{"H200", "p5en.48xlarge", "p5.48xlarge"},
		{"B200", "p6-b200.48xlarge", "p6e-gb200.36xlarge"},
		{"RTX PRO 6000", "g7e.2xlarge", "g7.2xlarge"},
		{"rtx-pro-6000-blackwell-server-edition", "g7e.2xlarge", "g7.2xlarge"},
		{"RTX PRO Server 6000", "g7e.2xlarge", "g7.2xlarge"},
		{"RTX PRO 4500", "g7.2xlarge", "g7e.2xlarge"},
		{"Radeon Pro V520", "g4ad.xlarge", "g4dn.xlarge"},
	} {
		m := parseModel(c.spelling)
		if !m.is(find(t, all, c.yes)) {
			t.Errorf("%q (%+v) is not found in %s", c.spelling, m, c.yes)
		}
		if m.is(find(t, all, c.no)) {
			t.Errorf("%q (%+v) is mistaken for %s", c.spelling, m, c.no)
		}
	}
}

// builtin is a market that nobody can ask.
func builtin() *Market { return NewMarket(nil, "") }

func offers(t *testing.T, q cloud.Query) cloud.Offers {
	t.Helper()
	o, err := builtin().Offers(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheNeedOfTheManual(t *testing.T) {
	need := cloud.Need{GPU: []string{"A10G", "L4"}, GPUs: 4, Memory: 24 * gb, MaxPrice: 6}
	got := names(offers(t, cloud.Query{Need: need}).Offers)
	if want := []string{"g6.12xlarge", "g5.12xlarge"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	need.Memory = 24 * gib
	if binary := names(offers(t, cloud.Query{Need: need}).Offers); !slices.Equal(binary, got) {
		t.Errorf("24 GiB finds %v, 24 GB %v", binary, got)
	}
}

func TestMemoryOfEachGPU(t *testing.T) {
	for _, o := range offers(t, cloud.Query{Need: cloud.Need{Memory: 80 * gb}}).Offers {
		if o.GPUMemory < 80*gb*93/100 {
			t.Errorf("%s has %d bytes for each GPU", o.Instance, o.GPUMemory)
		}
	}
	got := offers(t, cloud.Query{Need: cloud.Need{GPU: []string{"A100"}, Memory: 44 * gb}}).Offers
	if !slices.Equal(names(got), []string{"p4de.24xlarge"}) {
		t.Errorf("an A100 with 44 GB is the one with 80: %v", names(got))
	}
}

func TestOfflineTheTableAnswersAndSaysSo(t *testing.T) {
	o := offers(t, cloud.Query{})
	if o.Live || len(o.Offers) != 74 || len(o.Notes) != 1 || !o.At.Equal(tableDate) {
		t.Fatalf("live %v, %d offers, at %v, notes %q", o.Live, len(o.Offers), o.At, o.Notes)
	}
	for _, want := range []string{"us-east-1", "there is no AWS configuration", "2026-07-20"} {
		if !strings.Contains(o.Notes[0], want) {
			t.Errorf("the note lacks %q: %s", want, o.Notes[0])
		}
	}
}

func TestARankingAcrossRegionsPutsUnknownPricesLast(t *testing.T) {
	got := offers(t, cloud.Query{Regions: []string{"eu-west-1", "us-east-1"}, Need: cloud.Need{GPU: []string{"T4"}, GPUs: 8}})
	if len(got.Offers) != 2 || got.Offers[0].Region != "us-east-1" || got.Offers[1].OnDemand.Known() || len(got.Notes) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestNoFitSaysWhichPartRulesOutWhat(t *testing.T) {
	for _, c := range []struct {
		need    cloud.Need
		nearest string
		misses  []string
		text    []string
	}{
		{cloud.Need{GPU: []string{"A10G", "L4"}, GPUs: 16}, "g6.48xlarge", []string{"gpus >= 16"},
			[]string{"of 74 types", "gpu A10G or L4 rules out 56", "gpus >= 16 rules out 74", "g6.48xlarge (8 × L4 with 22 GiB) at $13.35/h"}},
		{cloud.Need{GPU: []string{"H100"}, MaxPrice: 5}, "p5.4xlarge", []string{"max_price 5 $/h"},
			[]string{"the price of 2 is not known"}},
		{cloud.Need{GPU: []string{"MI300X"}}, "", []string{"gpu MI300X"}, []string{"rules out 74 (there are A100, A10G, B200,"}},
		{cloud.Need{Memory: 300 * gb}, "p6-b300.48xlarge", nil, nil},
		{cloud.Need{Memory: 400 * gb}, "p6-b300.48xlarge", []string{"memory >= 400 GB"}, nil},
	} {
		_, err := builtin().Offers(context.Background(), cloud.Query{Need: c.need})
		if c.misses == nil {
			if err != nil {
				t.Errorf("%+v: %v", c.need, err)
			}
			continue
		}
		var none *NoFit
		if !errors.As(err, &none) {
			t.Errorf("%+v: %v is no *NoFit", c.need, err)
			continue
		}
		if c.nearest != "" && none.Nearest.Instance != c.nearest || !slices.Equal(none.Misses, c.misses) {
			t.Errorf("%+v: nearest %s misses %q", c.need, none.Nearest.Instance, none.Misses)
		}
		for _, want := range c.text {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
	}
}

func TestAPriceThatIsNotKnownMeetsNoLimit(t *testing.T) {
	_, err := builtin().Offers(context.Background(), cloud.Query{Regions: []string{"eu-west-1"}, Need: cloud.Need{MaxPrice: 1000}})
	if none := (*NoFit)(nil); !errors.As(err, &none) || none.Unpriced != 74 {
		t.Errorf("%v", err)
	}
}

func TestChoosePrefersMachinesThatTheUsualWheelsRunOn(t *testing.T) {
	got, err := builtin().Choose(context.Background(), cloud.Spec{Need: cloud.Need{GPUs: 1, MaxPrice: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Instance != "g4dn.xlarge" {
		t.Errorf("the first choice is %s; the cheaper ones are AMD or arm64", got[0].Instance)
	}
	if last := got[len(got)-1]; last.Notes[0] == "" || last.Instance != "p3dn.24xlarge" {
		t.Errorf("what cannot be had comes last, not %s", last.Instance)
	}
	v100, err := builtin().Choose(context.Background(), cloud.Spec{Need: cloud.Need{GPU: []string{"V100"}, MaxPrice: 1000}})
	if err != nil || len(v100) != 4 || v100[0].Instance != "p3.2xlarge" {
		t.Errorf("whoever names V100 gets it: %v, %v", names(v100), err)
	}
}

func TestChooseKeepsTheOrderOfRegions(t *testing.T) {
	spec := cloud.Spec{Instance: " G5.xlarge ", Regions: []string{"us-west-2", "us-east-1", "eu-west-1"}}
	got, err := builtin().Choose(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	var regions []string
	for _, o := range got {
		regions = append(regions, o.Region)
	}
	if !slices.Equal(regions, spec.Regions) {
		t.Errorf("%v", regions)
	}
}

func TestChooseAsksForSomething(t *testing.T) {
	if _, err := builtin().Choose(context.Background(), cloud.Spec{}); err == nil || !strings.Contains(err.Error(), "which machine") {
		t.Errorf("%v", err)
	}
}

func TestUnknownNamesAreAnsweredWithTheNearest(t *testing.T) {
	for name, want := range map[string]string{"g5.xlrage": "g5.xlarge", "p4d.24xlrg": "p4d.24xlarge", "g6e.12xlage": "g6e.12xlarge"} {
		_, err := builtin().Lookup(context.Background(), "us-east-1", name)
		var unknown *UnknownType
		if !errors.As(err, &unknown) || len(unknown.Nearest) == 0 || unknown.Nearest[0] != want || unknown.Unasked == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := builtin().Lookup(context.Background(), "us-east-1", "g*"); err == nil {
		t.Error("a pattern is no type")
	}
	if o, err := builtin().Lookup(context.Background(), "us-east-1", "G5.XLARGE"); err != nil || o.Instance != "g5.xlarge" {
		t.Errorf("%v, %v", o, err)
	}
	if _, err := builtin().Offers(context.Background(), cloud.Query{Regions: []string{"../../etc"}}); err == nil {
		t.Error("a path is no region")
	}
}

// Whoever asks for a GPU and names no price must not wake up with eight of them.
func TestAFallbackCostsNotMuchMoreThanTheFirstChoice(t *testing.T) {
	for _, spot := range []bool{false, true} {
		got, err := builtin().Choose(context.Background(), cloud.Spec{Spot: spot, Need: cloud.Need{GPUs: 1}})
		if err != nil || len(got) < 3 {
			t.Fatal(got, err)
		}
		for _, o := range got {
			if o.OnDemand.PerHour <= 0 || o.OnDemand.PerHour > Dearest*got[0].OnDemand.PerHour {
				t.Errorf("%s costs %v, the first %v", o.Instance, o.OnDemand.PerHour, got[0].OnDemand.PerHour)
			}
		}
		dear, err := builtin().Choose(context.Background(), cloud.Spec{Spot: spot, Need: cloud.Need{GPUs: 1, MaxPrice: 1000}})
		if err != nil || len(dear) <= len(got) {
			t.Errorf("with a price of one's own: %d choices, without %d", len(dear), len(got))
		}
	}
}
