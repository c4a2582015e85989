package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
)

// find picks one offer out of a list.
func find(t *testing.T, offers []cloud.Offer, name string) cloud.Offer {
	t.Helper()
	i := slices.IndexFunc(offers, func(o cloud.Offer) bool { return o.Instance == name })
	if i < 0 {
		t.Fatalf("%s is not among %d offers", name, len(offers))
	}
	return offers[i]
}

func names(offers []cloud.Offer) []string {
	var list []string
	for _, o := range offers {
		list = append(list, o.Instance)
	}
	return list
}

func TestTheTableIsReadWhole(t *testing.T) {
	all := Builtin("us-east-1")
	if len(all) != 74 {
		t.Fatalf("%d types, want 74", len(all))
	}
	for _, o := range all {
		if o.Provider != "ec2" || o.Region != "us-east-1" || o.GPU == "" || o.GPUs < 1 || o.GPUMemory < gib ||
			o.VCPUs < 2 || o.Memory < gib || o.GPUShare <= 0 || o.GPUShare > 1 || o.Notes == nil || o.Zones == nil {
			t.Errorf("%s is not whole: %+v", o.Instance, o)
		}
		if o.Quota.Known || o.SpotQuota.Known || o.Quota.Why == "" {
			t.Errorf("%s: nobody was asked, and yet the quota is known: %+v", o.Instance, o.Quota)
		}
		if o.OnDemand.Known() && (o.OnDemand.At != tableDate || !strings.Contains(o.OnDemand.Source, "2026-07-20")) {
			t.Errorf("%s: the price does not say how old it is: %+v", o.Instance, o.OnDemand)
		}
	}
}

func TestFactsOfTheTable(t *testing.T) {
	all := Builtin("us-east-1")
	g5 := find(t, all, "g5.12xlarge")
	if g5.GPU != "A10G" || g5.GPUs != 4 || g5.GPUMemory != 22888*mib || g5.VCPUs != 48 || g5.Memory != 192*gib ||
		g5.OnDemand.PerHour != 5.672 || g5.EFA != 1 || g5.NVMe != 3800*gb || g5.Arch != "x86_64" {
		t.Errorf("g5.12xlarge: %+v", g5)
	}
	part := find(t, all, "g6f.large")
	if part.GPUs != 1 || part.GPUShare != 0.125 || part.GPUMemory != 2861*mib {
		t.Errorf("g6f.large: %+v", part)
	}
	if p := find(t, all, "p5e.48xlarge"); p.OnDemand.Known() || !strings.Contains(p.Notes[0], "no zone of us-east-1") {
		t.Errorf("p5e is not to be had in us-east-1: %+v", p)
	}
}

func TestAPriceOfUsEast1IsNoPriceElsewhere(t *testing.T) {
	for _, o := range Builtin("eu-west-1") {
		if o.OnDemand.Known() || o.Spot.Known() {
			t.Fatalf("%s has a price in eu-west-1 that nobody told: %+v", o.Instance, o.OnDemand)
		}
	}
	if p := DiskPrice("eu-west-1"); !strings.Contains(p.Source, "us-east-1") {
		t.Errorf("the disk price does not say that it is another region's: %q", p.Source)
	}
	if got := DiskPrice("us-east-1").PerHour * hoursPerMonth; got < 0.0799 || got > 0.0801 {
		t.Errorf("a GB of gp3 costs $%v a month", got)
	}
	if AddressPrice().PerHour != 0.005 {
		t.Errorf("an address costs %+v", AddressPrice())
	}
}

func TestRemarks(t *testing.T) {
	all := Builtin("us-east-1")
	for name, want := range map[string]string{
		"g5g.xlarge":         "needs arm64 wheels",
		"g4ad.xlarge":        "CUDA programs do not run on it",
		"p3.2xlarge":         "not supported by the open driver of the Deep Learning AMI",
		"p3dn.24xlarge":      "not supported by the open driver of the Deep Learning AMI",
		"g6f.large":          "has 1/8 of a GPU",
		"p5.48xlarge":        "reserved as a Capacity Block",
		"p6e-gb200.36xlarge": "sold only as Capacity Blocks",
	} {
		if o := find(t, all, name); !strings.Contains(strings.Join(o.Notes, "; "), want) {
			t.Errorf("%s: notes %q lack %q", name, o.Notes, want)
		}
	}
	if o := find(t, all, "g6.xlarge"); len(o.Notes) != 0 {
		t.Errorf("there is nothing to be said of g6.xlarge: %q", o.Notes)
	}
}

func TestEachTypeCountsAgainstItsOwnQuota(t *testing.T) {
	for _, c := range []struct{ instance, onDemand, spot string }{
		{"g5.xlarge", "L-DB2E81BA", "L-3819A6DF"},
		{"gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"},
		{"g6f.large", "L-DB2E81BA", "L-3819A6DF"},
		{"g5g.metal", "L-DB2E81BA", "L-3819A6DF"},
		{"vt1.3xlarge", "L-DB2E81BA", "L-3819A6DF"},
		{"p4d.24xlarge", "L-417A185B", "L-7212CCBC"},
		{"p3.2xlarge", "L-417A185B", "L-7212CCBC"},
		{"p5.48xlarge", "L-417A185B", "L-C4BD4855"},
		{"p5en.48xlarge", "L-417A185B", "L-C4BD4855"},
		{"p6-b200.48xlarge", "L-417A185B", ""},
		{"t3.micro", "L-1216C47A", "L-34B43A08"},
		{"c7i.large", "L-1216C47A", "L-34B43A08"},
		{"im4gn.large", "L-1216C47A", "L-34B43A08"},
		{"trn1.2xlarge", "", ""},
		{"inf2.xlarge", "", ""},
		{"hpc7a.96xlarge", "", ""},
		{"x2gd.large", "", ""},
		{"u-6tb1.metal", "", ""},
		{"", "", ""},
	} {
		name, code := QuotaName(c.instance, false)
		if code != c.onDemand || (name == "") != (code == "") {
			t.Errorf("%s on demand: %q (%s), want %s", c.instance, name, code, c.onDemand)
		}
		if _, code := QuotaName(c.instance, true); code != c.spot {
			t.Errorf("%s as spot: %s, want %s", c.instance, code, c.spot)
		}
	}
}
