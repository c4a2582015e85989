package wizard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/planning"
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	styles = text.NewStyles(true)
	look   = text.Look{Styles: &styles, Now: now}
)

// asking is a wizard that waits for the machines of EC2.
func asking() *Wizard {
	z := &Wizard{markets: []string{"ec2"}, read: true, faults: map[string]string{},
		draft: planning.Draft{Name: "lm", Provider: "ec2", Region: "us-east-1", Count: "1"},
		screen: Screen{Ctx: context.Background(), Now: func() time.Time { return now },
			Say: func(string, string) tea.Cmd { return nil }}}
	z.toStep(wizMachine)
	return z
}

func TestWaitingForMachinesSaysForWhichAndSinceWhen(t *testing.T) {
	got := ansi.Strip(strings.Join(asking().Draw(look, 118, 36), "\n"))
	if !strings.Contains(got, "asking ec2 for the machines of us-east-1, for 0s") {
		t.Errorf("the screen does not say what it waits for:\n%s", got)
	}
}

func TestAnswersToEarlierQuestionsAreDropped(t *testing.T) {
	z := asking()
	early := z.market.gen
	z.draft.Region = "eu-west-1"
	z.toStep(wizMachine)
	z.Take(offered{to: z, gen: early, offers: manyOffers(3)})
	if n := z.market.Len(); n != 0 || !z.market.Asking {
		t.Errorf("an answer to an earlier question was taken: %d rows", n)
	}
	z.Take(offered{to: asking(), gen: z.market.gen, offers: manyOffers(3)})
	if n := z.market.Len(); n != 0 || !z.market.Asking {
		t.Errorf("an answer to another draft was taken: %d rows", n)
	}
	z.Take(offered{to: z, gen: z.market.gen, offers: manyOffers(2)})
	if n := z.market.Len(); n != 2 || z.market.Asking {
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
	z := asking()
	z.Take(offered{to: z, gen: z.market.gen, offers: manyOffers(1000)})
	for b.Loop() {
		z.Draw(look, 198, 56)
	}
}
