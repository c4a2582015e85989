package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// market is the table of machines that can be had.
type market struct {
	asked  string // what was asked for; a question that differs is asked anew
	gen    int    // its number
	busy   bool
	since  time.Time // when it was asked
	offers cloud.Offers
	fault  *event.Fault // why there is no answer
	all    bool         // machines without a GPU too
	spot   bool         // judged by the price of spot machines

	filter  string
	sort    int // index of a column, plus one; 0 is the order of the offers
	reverse bool
	rows    []int // of offers, as shown
	texts   []string

	marked    []string // to be compared
	comparing bool
	column    int // picked among what is compared
	chosen    *cloud.Offer
}

// openMarket asks for machines, unless the answer is there already.
func (m *Model) openMarket() tea.Cmd {
	z := m.wiz
	z.market.comparing, z.market.spot = false, z.draft.Spot
	if z.market.asked == m.marketQuestion() && z.market.fault == nil && !z.market.busy {
		z.pickChosen()
		return nil
	}
	return m.askMarket(false)
}

// marketQuestion names what would be asked for now.
func (m *Model) marketQuestion() string {
	z := m.wiz
	return fmt.Sprint(z.draft.Provider, splitList(z.draft.Region), z.market.all, z.draft.Spot)
}

// askMarket asks the provider. The table that is there stays until it answers.
func (m *Model) askMarket(fresh bool) tea.Cmd {
	z := m.wiz
	k := &z.market
	if q := m.marketQuestion(); q != k.asked {
		k.asked = q
		k.offers, k.rows = cloud.Offers{}, nil
	}
	k.busy, k.since, k.fault, k.spot = true, m.now, nil, z.draft.Spot
	k.gen = m.nextAsk()
	gen, provider := k.gen, z.draft.Provider
	query := cloud.Query{Regions: splitList(z.draft.Region), Spot: z.draft.Spot, CPU: k.all, Fresh: fresh, Count: max(z.nodeCount(), 1)}
	return func() tea.Msg {
		offers, err := m.bench.Offers(m.ctx, provider, query)
		return offered{gen, offers, err}
	}
}

func (m *Model) takeOffers(msg offered) {
	z := m.wiz
	if z == nil || z.market.gen != msg.gen {
		return
	}
	k := &z.market
	k.busy = false
	if msg.err != nil {
		f := session.FaultOf("list the machines of "+z.draft.Provider, msg.err)
		k.fault = &f
		return
	}
	k.offers = msg.offers
	k.texts = make([]string, len(k.offers.Offers))
	for i := range k.offers.Offers {
		o := &k.offers.Offers[i]
		k.texts[i] = strings.ToLower(strings.Join(append([]string{o.Instance, o.Region, o.GPU, o.Arch, o.Network}, o.Notes...), " "))
	}
	k.narrow(k.filter)
	z.pickChosen()
}

// pickChosen puts the cursor on the machine that the draft has.
func (z *wizard) pickChosen() {
	k := &z.market
	z.picked = 0
	for i, row := range k.rows {
		if o := &k.offers.Offers[row]; o.Instance == z.draft.Instance {
			z.picked, k.chosen = i, o
			return
		}
	}
}

// narrow shows the offers that have all the words, in the chosen order.
func (k *market) narrow(filter string) {
	k.filter, k.rows = filter, k.rows[:0]
	want := strings.Fields(strings.ToLower(filter))
	for i := range k.offers.Offers {
		if text.HasAll(k.texts[i], want) {
			k.rows = append(k.rows, i)
		}
	}
	if k.sort > 0 {
		by := &offerColumns[k.sort-1]
		slices.SortStableFunc(k.rows, func(a, b int) int {
			return by.compare(&k.offers.Offers[a], &k.offers.Offers[b], k.spot, k.reverse)
		})
	} else if k.reverse {
		slices.Reverse(k.rows)
	}
}

// at is the offer on a row; nil where there is none.
func (k *market) at(row int) *cloud.Offer {
	if row < 0 || row >= len(k.rows) {
		return nil
	}
	return &k.offers.Offers[k.rows[row]]
}

func offerKey(o *cloud.Offer) string { return o.Region + " " + o.Instance }

// mostCompared is how many machines stand side by side.
const mostCompared = 3

// compared are the marked offers that are there, in the order of marking.
func (k *market) compared() []*cloud.Offer {
	var out []*cloud.Offer
	for _, key := range k.marked {
		for i := range k.offers.Offers {
			if o := &k.offers.Offers[i]; offerKey(o) == key {
				out = append(out, o)
			}
		}
	}
	return out
}

// turn picks another of what is compared.
func (k *market) turn(d int) {
	if n := len(k.compared()); k.comparing && n > 0 {
		k.column = (k.column + d + n) % n
	}
}

// The keys of the table.

func (m *Model) notAtMarket() string {
	if m.wiz == nil || m.wiz.step != wizMachine {
		return "it is for the table of machines"
	}
	return ""
}

func (m *Model) noOffers() string {
	if why := m.notAtMarket(); why != "" {
		return why
	}
	if len(m.wiz.market.offers.Offers) == 0 {
		return "there are no machines to choose from"
	}
	return ""
}

func (m *Model) askOfferFilter() tea.Cmd {
	set := func(m *Model, text string) { m.wiz.market.narrow(text); m.wiz.picked = 0 }
	m.ask = &prompt{label: "filter", line: line.New(m.wiz.market.filter), live: set,
		done: func(m *Model, text string) tea.Cmd { set(m, text); return nil },
		left: func(m *Model) { set(m, "") }}
	return nil
}

func (m *Model) sortOffers() tea.Cmd {
	k := &m.wiz.market
	k.sort, k.reverse = (k.sort+1)%(len(offerColumns)+1), false
	k.narrow(k.filter)
	m.wiz.picked = 0
	return nil
}

func (m *Model) reverseOffers() tea.Cmd {
	k := &m.wiz.market
	k.reverse = !k.reverse
	k.narrow(k.filter)
	m.wiz.picked = 0
	return nil
}

func (m *Model) refreshOffers() tea.Cmd { return m.askMarket(true) }

func (m *Model) toggleAllOffers() tea.Cmd {
	m.wiz.market.all = !m.wiz.market.all
	return m.askMarket(false)
}

func (m *Model) toggleSpot() tea.Cmd {
	m.wiz.draft.Spot = !m.wiz.draft.Spot
	m.judge()
	return m.askMarket(false)
}

func (m *Model) cannotMark() string {
	switch z := m.wiz; {
	case z != nil && z.step == wizRegion:
		if name := z.region.rows()[z.picked][0]; name == rowDefault || name == rowOther {
			return "mark regions by their names"
		}
		return ""
	case z != nil && z.step == wizMachine && z.market.at(z.picked) == nil:
		return "there is no machine to mark"
	}
	return m.notAtMarket()
}

// mark marks what is picked: a region to be tried, a machine to be compared.
func (m *Model) mark() tea.Cmd {
	z := m.wiz
	if z.step == wizRegion {
		z.region.mark(z.region.rows()[z.picked][0])
		return nil
	}
	k := &z.market
	key := offerKey(k.at(z.picked))
	if i := slices.Index(k.marked, key); i >= 0 {
		k.marked = slices.Delete(k.marked, i, i+1)
		return nil
	}
	if len(k.compared()) >= mostCompared {
		return m.say("info", fmt.Sprintf("%d are marked already; v compares them, c on one of them takes its mark away", mostCompared))
	}
	k.marked = append(k.marked, key)
	return nil
}

func (m *Model) cannotCompare() string {
	if why := m.notAtMarket(); why != "" {
		return why
	}
	if len(m.wiz.market.compared()) < 2 {
		return "mark two or three machines with c first"
	}
	return ""
}

func (m *Model) compareOffers() tea.Cmd {
	k := &m.wiz.market
	k.comparing, k.column = !k.comparing, 0
	m.scroll[atNew] = 0
	return nil
}

// chooseMachine takes the picked machine and goes on.
func (m *Model) chooseMachine() tea.Cmd {
	z := m.wiz
	o := z.market.at(z.picked)
	if all := z.market.compared(); z.market.comparing && len(all) > 0 {
		o = all[text.Clamp(z.market.column, 0, len(all)-1)]
	}
	switch {
	case o == nil && z.market.busy:
		return m.say("info", "the machines are still being asked for")
	case o == nil:
		return m.askInstance()
	}
	taken := *o // the table may be asked for anew
	z.market.chosen, z.draft.Instance = &taken, o.Instance
	m.judge()
	return m.nextStep()
}

// askInstance takes the name of a machine where there is no table of them.
func (m *Model) askInstance() tea.Cmd {
	m.ask = &prompt{label: "machine type", line: line.New(m.wiz.draft.Instance), done: func(m *Model, text string) tea.Cmd {
		m.wiz.draft.Instance = text
		m.judge()
		return m.nextStep()
	}}
	return nil
}
