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

// Every row of a form can be seen while it is picked, with what it is about, however
// low the terminal is.
func TestWhatIsPickedInAFormIsOnTheScreen(t *testing.T) {
	z := asking()
	z.screen.Bench = noBench{}
	z.draft.Provider = "kubernetes"
	z.toStep(wizNodes)
	fields := z.fields()
	if len(fields) < 8 {
		t.Fatalf("%d fields: the form is not tall", len(fields))
	}
	for _, w := range []int{78, 140} {
		for h := 10; h < headRows+2*len(fields); h++ {
			for z.picked = range len(fields) + 1 {
				z.faults = map[string]string{}
				label := "go on to the next step"
				if z.picked < len(fields) {
					label = fields[z.picked].label
					z.faults[fields[z.picked].key] = "this is wrong"
				}
				rows := z.Draw(look, w, h)
				shown := ansi.Strip(strings.Join(rows, "\n"))
				if len(rows) > h || !strings.Contains(shown, "› "+label) {
					t.Fatalf("%d×%d, %q is picked, %d rows:\n%s", w, h, label, len(rows), shown)
				}
				if z.picked < len(fields) && (!strings.Contains(shown, "this is wrong") || !strings.Contains(shown, fields[z.picked].hint[:min(20, len(fields[z.picked].hint))])) {
					t.Fatalf("%d×%d, what is wrong with %q, or what it is about, is not shown:\n%s", w, h, label, shown)
				}
			}
		}
	}
}

// noBench knows nothing.
type noBench struct{ Drafter }

func (noBench) Known(string, string) []string { return nil }

// BenchmarkMarket must stay below 5 ms.
func BenchmarkMarket(b *testing.B) {
	z := asking()
	z.Take(offered{to: z, gen: z.market.gen, offers: manyOffers(1000)})
	for b.Loop() {
		z.Draw(look, 198, 56)
	}
}

// An image is one of a machine where machines are rented, and a container's elsewhere.
func TestTheImageIsWordedForTheProvider(t *testing.T) {
	for provider, container := range map[string]bool{"ec2": false, "kubernetes": true, "slurm": true, "sagemaker": true, "ecs": true} {
		z := &Wizard{}
		z.draft.Provider = provider
		f := &field{key: "machines.image", hint: "of a machine"}
		if got := z.worded(f).hint; (got != f.hint) != container {
			t.Errorf("%s: %q", provider, got)
		}
	}
}
