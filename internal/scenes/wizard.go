package scenes

import (
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui"
)

// Offers are some machines of EC2, the best first.
func Offers() cloud.Offers {
	const gib = 1 << 30
	zones := []cloud.Zone{{Name: "us-east-1a"}, {Name: "us-east-1b"}, {Name: "us-east-1c"}, {Name: "us-east-1d"}, {Name: "us-east-1f"}}
	make := func(instance, gpu string, gpus int, gpuGB, vcpus, ram int, price, spot float64, network string, efa, left int, notes ...string) cloud.Offer {
		o := cloud.Offer{Provider: "ec2", Region: "us-east-1", Instance: instance, Arch: "x86_64", GPU: gpu, GPUs: gpus, GPUShare: 1,
			GPUMemory: int64(gpuGB) * gib, VCPUs: vcpus, Memory: int64(ram) * gib, Network: network, EFA: efa, Notes: notes,
			OnDemand: cloud.Price{PerHour: price, Source: "AWS Price List", At: Epoch.Add(-3 * time.Minute)},
			Spot:     cloud.Price{PerHour: spot, Source: "spot price history", At: Epoch.Add(-3 * time.Minute)},
			Zones:    zones[:2+left%4],
			Quota:    cloud.Quota{Known: true, Name: "Running On-Demand G and VT instances", Code: "L-DB2E81BA", Limit: 64, Left: left}, SpotQuota: cloud.Quota{Known: true, Left: left / 2}}
		if gpus == 0 {
			o.GPUShare = 0
		}
		return o
	}
	half := make("g6f.4xlarge", "L4", 1, 12, 16, 64, 0.97, 0.41, "Up to 25 Gigabit", 0, 4, "has 1/2 of a GPU")
	half.GPUShare = 0.5
	arm := make("g5g.4xlarge", "T4G", 1, 16, 16, 32, 0.828, 0.31, "Up to 10 Gigabit", 0, 4, "needs arm64 wheels")
	arm.Arch = "arm64"
	unknown := make("p5en.48xlarge", "H200", 8, 141, 192, 2048, 63.296, 0, "3200 Gigabit", 16, 0, "the quota \"Running On-Demand P instances\" (L-417A185B) is 0 vCPUs in us-east-1")
	unknown.SpotQuota.Known = false
	return cloud.Offers{Live: true, At: Epoch.Add(-3 * time.Minute), Offers: []cloud.Offer{
		make("g4dn.12xlarge", "T4", 4, 16, 48, 192, 3.912, 1.4, "50 Gigabit", 1, 1),
		make("g6.12xlarge", "L4", 4, 22, 48, 192, 4.602, 1.97, "40 Gigabit", 1, 1),
		make("g5.12xlarge", "A10G", 4, 22, 48, 192, 5.672, 2.31, "40 Gigabit", 1, 1),
		make("g5.xlarge", "A10G", 1, 22, 4, 16, 1.006, 0.44, "Up to 10 Gigabit", 0, 16),
		make("g6.xlarge", "L4", 1, 22, 4, 16, 0.8048, 0.33, "Up to 10 Gigabit", 0, 16),
		make("g6e.xlarge", "L40S", 1, 44, 4, 32, 1.861, 0.9, "Up to 20 Gigabit", 0, 16),
		make("g6e.12xlarge", "L40S", 4, 44, 48, 384, 10.493, 4.72, "100 Gigabit", 1, 1),
		make("p4d.24xlarge", "A100", 8, 40, 96, 1152, 21.958, 9.3, "4x 100 Gigabit", 4, 0, "the quota \"Running On-Demand P instances\" (L-417A185B) is 0 vCPUs in us-east-1"),
		make("p5.48xlarge", "H100", 8, 80, 192, 2048, 55.04, 24.1, "3200 Gigabit", 32, 0, "the quota \"Running On-Demand P instances\" (L-417A185B) is 0 vCPUs in us-east-1", "can also be reserved as a Capacity Block, which dlwb does not buy"),
		unknown, half, arm,
		make("g4dn.xlarge", "T4", 1, 16, 4, 16, 0.526, 0.19, "Up to 25 Gigabit", 0, 16),
		make("g5.48xlarge", "A10G", 8, 22, 192, 768, 16.288, 6.8, "100 Gigabit", 1, 0),
	}}
}

// wizard is a screen on which a new experiment is begun.
func wizard(w, h int, theme string, set func(*Stage)) *Stage {
	s := NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		s.OffersAre, s.PlanIs = Offers(), PlanEC2()
		if set != nil {
			set(s)
		}
	})
	return s.Press("N")
}

// toMachine answers the first questions: EC2, in N. Virginia.
func toMachine(w, h int, theme string, set func(*Stage)) *Stage {
	return wizard(w, h, theme, set).Press("down", "enter", "down", "enter")
}

func wizardRegion(w, h int, theme string) *Stage {
	return wizard(w, h, theme, nil).Press("down", "enter", "down", "c", "down", "down", "c")
}

func wizardMachine(w, h int, theme string) *Stage {
	return toMachine(w, h, theme, nil).Press("down", "c", "down", "c")
}

func wizardCompare(w, h int, theme string) *Stage {
	return wizardMachine(w, h, theme).Press("down", "down", "down", "down", "c", "v", "right")
}

func wizardFacts(w, h int, theme string) *Stage {
	return toMachine(w, h, theme, func(s *Stage) {
		s.OffersAre.Live, s.OffersAre.At = false, Epoch.Add(-72*24*time.Hour)
		s.OffersAre.Notes = []string{"AWS could not be asked about us-east-1 (no credentials were found): this is dlwb's own table of 2026-01-01, with its prices"}
		for i := range s.OffersAre.Offers {
			o := &s.OffersAre.Offers[i]
			o.Spot, o.Zones, o.Quota.Known, o.OnDemand.Source = cloud.Price{}, nil, false, "dlwb's own table of 2026-01-01"
		}
	})
}

// chosen is the wizard after a g5.12xlarge was picked, four of them as spot.
func chosen(w, h int, theme string) *Stage {
	s := wizardMachine(w, h, theme).Press("enter", "enter", "ctrl+u").Type("4").Press("enter", "enter", "down", "enter")
	return s.Press("down", "enter").Type("200GB").Press("enter")
}

func wizardNodes(w, h int, theme string) *Stage { return chosen(w, h, theme) }

func wizardReview(w, h int, theme string) *Stage {
	return chosen(w, h, theme).Press("7", "enter").Type("20USD").Press("enter", "8")
}

func wizardFaults(w, h int, theme string) *Stage {
	s := chosen(w, h, theme).Press("4", "enter", "ctrl+u").Type("two").Press("enter", "7", "enter").Type("20")
	return s.Press("enter", "8")
}
