package wizard

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/offers"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// market is the table of machines that can be had, and what it was asked with.
type market struct {
	offers.Table
	asked  string       // what was asked for; a question that differs is asked anew
	gen    int          // its number
	fault  *event.Fault // why there is no answer
	all    bool         // machines without a GPU too
	chosen *cloud.Offer
}

// openMarket asks for machines, unless the answer is there already.
func (z *Wizard) openMarket() tea.Cmd {
	k := &z.market
	k.Comparing, k.Spot = false, z.draft.Spot
	if k.asked == z.marketQuestion() && k.fault == nil && !k.Asking {
		z.pickChosen()
		return nil
	}
	return z.askMarket(false)
}

// marketQuestion names what would be asked for now.
func (z *Wizard) marketQuestion() string {
	return fmt.Sprint(z.draft.Provider, splitList(z.draft.Region), z.market.all, z.draft.Spot)
}

// askMarket asks the provider. The table that is there stays until it answers.
func (z *Wizard) askMarket(fresh bool) tea.Cmd {
	k := &z.market
	if q := z.marketQuestion(); q != k.asked {
		k.asked = q
		k.Set(cloud.Offers{})
	}
	k.Asking, k.Since, k.fault, k.Spot = true, z.screen.Now(), nil, z.draft.Spot
	k.gen = z.next()
	gen, provider := k.gen, z.draft.Provider
	query := cloud.Query{Regions: splitList(z.draft.Region), Spot: z.draft.Spot, CPU: k.all, Fresh: fresh, Count: max(z.nodeCount(), 1)}
	return func() tea.Msg {
		all, err := z.screen.Bench.Offers(z.screen.Ctx, provider, query)
		return offered{z, gen, all, err}
	}
}

func (z *Wizard) takeOffers(msg offered) {
	k := &z.market
	if k.gen != msg.gen {
		return
	}
	k.Asking = false
	if msg.err != nil {
		f := session.FaultOf("list the machines of "+z.draft.Provider, msg.err)
		k.fault = &f
		return
	}
	k.Set(msg.offers)
	z.pickChosen()
}

// pickChosen puts the cursor on the machine that the draft has.
func (z *Wizard) pickChosen() {
	k := &z.market
	z.picked = 0
	if row := k.Row(z.draft.Instance); row >= 0 {
		z.picked, k.chosen = row, k.At(row)
	}
}

// drawMarket is the table of machines, or why there is none.
func (z *Wizard) drawMarket(l text.Look, w, h int) []string {
	k, s := &z.market, l.Styles
	switch {
	case k.fault != nil:
		return append(sign.Fault(l, *k.fault, w), "", s.Key.Of("r")+" asks again, "+s.Key.Of("enter")+" takes a machine type by its name")
	case k.Asking && len(k.All.Offers) == 0:
		where := "your own region"
		if r := z.draft.Region; r != "" {
			where = r
		}
		return append([]string{l.Spinner() + " asking " + text.Word(z.draft.Provider) + " for the machines of " + text.Word(where) + s.Dim.Of(", for "+text.Since(l.Now, k.Since))},
			text.Indent(text.Wrap("Types, zones, prices on demand and spot, and quotas are asked for at once. Then the answer is remembered.", max(w-2, 1)), 2)...)
	}
	return k.Draw(l, z.picked, w, h)
}

// The keys of the table.

// NotAtMarket says why a key of the table of machines does nothing here.
func (z *Wizard) NotAtMarket() string {
	if z == nil || z.step != wizMachine {
		return "it is for the table of machines"
	}
	return ""
}

// NoOffers says why there is nothing to filter or sort.
func (z *Wizard) NoOffers() string {
	if why := z.NotAtMarket(); why != "" {
		return why
	}
	if len(z.market.All.Offers) == 0 {
		return "there are no machines to choose from"
	}
	return ""
}

// AskFilter asks for words that the machines must have.
func (z *Wizard) AskFilter() tea.Cmd {
	set := func(words string) { z.market.Narrow(words); z.picked = 0 }
	z.screen.Ask(Prompt{Label: "filter", Line: line.New(z.market.Filter), Live: set,
		Done: func(words string) tea.Cmd { set(words); return nil }, Left: func() { set("") }})
	return nil
}

// Sort sorts by the next column.
func (z *Wizard) Sort() tea.Cmd {
	z.market.SortNext()
	z.picked = 0
	return nil
}

// Reverse turns the order round.
func (z *Wizard) Reverse() tea.Cmd {
	z.market.Reverse()
	z.picked = 0
	return nil
}

// Refresh asks the provider again.
func (z *Wizard) Refresh() tea.Cmd { return z.askMarket(true) }

// ToggleAll shows machines without a GPU too, or not.
func (z *Wizard) ToggleAll() tea.Cmd {
	z.market.all = !z.market.all
	return z.askMarket(false)
}

// ToggleSpot judges machines by the price of spot, or on demand.
func (z *Wizard) ToggleSpot() tea.Cmd {
	z.draft.Spot = !z.draft.Spot
	z.judge()
	return z.askMarket(false)
}

// CannotMark says why what is picked can't be marked.
func (z *Wizard) CannotMark() string {
	switch {
	case z != nil && z.step == wizRegion:
		if name := z.region.rows()[z.picked][0]; name == rowDefault || name == rowOther {
			return "mark regions by their names"
		}
		return ""
	case z != nil && z.step == wizMachine && z.market.At(z.picked) == nil:
		return "there is no machine to mark"
	}
	return z.NotAtMarket()
}

// Mark marks what is picked: a region to be tried, a machine to be compared.
func (z *Wizard) Mark() tea.Cmd {
	if z.step == wizRegion {
		z.region.mark(z.region.rows()[z.picked][0])
		return nil
	}
	if !z.market.Mark(z.picked) {
		return z.screen.Say("info", fmt.Sprintf("%d are marked already; v compares them, c on one of them takes its mark away", offers.MostCompared))
	}
	return nil
}

// CannotCompare says why nothing can be set side by side.
func (z *Wizard) CannotCompare() string {
	if why := z.NotAtMarket(); why != "" {
		return why
	}
	if len(z.market.Compared()) < 2 {
		return "mark two or three machines with c first"
	}
	return ""
}

// Compare sets the marked machines side by side, or shows the table again.
func (z *Wizard) Compare() tea.Cmd {
	z.market.Compare()
	z.top = 0
	return nil
}

// chooseMachine takes the picked machine and goes on.
func (z *Wizard) chooseMachine() tea.Cmd {
	o := z.market.At(z.picked)
	if taken := z.market.Taken(); taken != nil {
		o = taken
	}
	switch {
	case o == nil && z.market.Asking:
		return z.screen.Say("info", "the machines are still being asked for")
	case o == nil:
		return z.askInstance()
	}
	taken := *o // the table may be asked for anew
	z.market.chosen, z.draft.Instance = &taken, o.Instance
	z.judge()
	return z.Next()
}

// askInstance takes the name of a machine where there is no table of them.
func (z *Wizard) askInstance() tea.Cmd {
	z.screen.Ask(Prompt{Label: "machine type", Line: line.New(z.draft.Instance), Done: func(text string) tea.Cmd {
		z.draft.Instance = text
		z.judge()
		return z.Next()
	}})
	return nil
}
