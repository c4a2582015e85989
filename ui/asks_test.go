package ui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench"
)

// asking is a screen that waits for the machines of EC2.
func asking() *Model {
	m := New(context.Background(), nil, Options{Theme: "dark"})
	m.w, m.h = 120, 40
	m.path = []place{atHome, atNew}
	m.wiz = &wizard{markets: []string{"ec2"}, read: true, draft: workbench.Draft{Name: "lm", Provider: "ec2", Region: "us-east-1", Count: "1"}}
	m.toStep(wizMachine)
	return m
}

func TestWaitingForMachinesSaysForWhichAndSinceWhen(t *testing.T) {
	m := asking()
	if got := ansi.Strip(m.Frame()); !strings.Contains(got, "asking ec2 for the machines of us-east-1, for 0s") {
		t.Errorf("the screen does not say what it waits for:\n%s", got)
	}
}

func TestAnswersToEarlierQuestionsAreDropped(t *testing.T) {
	m := asking()
	early := m.wiz.market.gen
	m.wiz.draft.Region = "eu-west-1"
	m.toStep(wizMachine)
	m.Update(offered{gen: early, offers: manyOffers(3)})
	if n := len(m.wiz.market.rows); n != 0 || !m.wiz.market.busy {
		t.Errorf("an answer to an earlier question was taken: %d rows", n)
	}
	m.Update(offered{gen: m.wiz.market.gen, offers: manyOffers(2)})
	if n := len(m.wiz.market.rows); n != 2 || m.wiz.market.busy {
		t.Errorf("%d rows, want the 2 of the answer", n)
	}
}

func manyOffers(n int) cloud.Offers {
	o := cloud.Offers{Live: true}
	for i := range n {
		o.Offers = append(o.Offers, cloud.Offer{Region: "us-east-1", Instance: fmt.Sprintf("g5.%dxlarge", i), GPU: "A10G", GPUs: 1, GPUShare: 1,
			OnDemand: cloud.Price{PerHour: 1 + float64(i)}, Notes: []string{"needs arm64 wheels"}})
	}
	return o
}

// BenchmarkMarket must stay below 5 ms.
func BenchmarkMarket(b *testing.B) {
	m := asking()
	m.w, m.h = 200, 60
	m.Update(offered{gen: m.wiz.market.gen, offers: manyOffers(1000)})
	for b.Loop() {
		m.View()
	}
}
