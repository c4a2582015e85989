package watch

import (
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
)

// Receipt is each resource with the proof that it is gone.
func (p Page) Receipt(w int) []string {
	s, r := p.Styles, p.Of.State.Receipt
	if r == nil {
		return []string{"No receipt yet: the cluster was not torn down."}
	}
	head := s.Good.Of("✓ Everything is gone, and that was looked at again.")
	if !r.Proven {
		head = s.Bad.Of("! UNRESOLVED") + "  Not everything is proven gone" + p.stillCosts()
	}
	out := []string{text.Cut(head, w), ""}
	sum := func(k, v string) { out = append(out, s.Dim.Of(text.Fit(k, 12))+v) }
	sum("lived", units.Seconds(r.Lived))
	sum("cost", units.USD(r.Cost))
	sum("left", text.Plural(r.ProcessesLeft, "process")+", "+text.Plural(r.FilesLeft, "file"))
	out = append(out, p.receiptTable(r.Resources, w)...)
	return append(out, p.receiptNext(w)...)
}

func (p Page) stillCosts() string {
	if rate := p.Of.State.Account.Rate(p.Now); rate > 0 {
		return ": up to " + units.PerHour(rate) + " goes on."
	}
	return "."
}

// receiptNext is what it all came to, and what to do now.
func (p Page) receiptNext(w int) []string {
	s, st := p.Styles, p.Of.State
	var out []string
	if e := st.Ended; e != nil {
		out = append(out, "", sign.Verdict(p.Look, e.Verdict, &e.ExitCode)+"  "+e.Cause)
	}
	out = append(out, p.resultsRows(w)...)
	if st.Receipt.Proven {
		return append(out, "", s.Key.Of("t")+" shows the run again, "+s.Key.Of("R")+" runs anew, "+s.Key.Of("esc")+" goes home")
	}
	if f := p.Of.Failed(); f != nil && f.Next != "" {
		out = append(out, "", s.Key.Of("next"))
		for _, l := range text.Wrap(f.Next, max(w-2, 1)) {
			out = append(out, "  "+l)
		}
	}
	return append(out, "", s.Key.Of("X")+" tries again; removing twice does no harm")
}

// receiptColumns are the widths of a receipt's table.
type receiptColumns struct {
	kind, id int
	paid     bool // what each lived and cost is known
	w        int
}

const (
	receiptState = 12
	receiptPaid  = 20 // lived and cost together
	// leastProof is the narrowest column for a proof; below that it has rows
	// of its own.
	leastProof = 16
)

// head is what stands before the proof.
func (c receiptColumns) head() int {
	n := 2 + c.kind + c.id + receiptState
	if c.paid {
		n += receiptPaid
	}
	return n
}

func (p Page) receiptTable(all []cloud.Resource, w int) []string {
	c := receiptColumns{kind: 12, id: 26, w: w}
	for _, res := range all {
		c.kind = min(max(c.kind, text.Wide(res.Kind)+1), 18)
		c.paid = c.paid || res.Lived > 0 || res.Cost > 0
	}
	title := "  " + text.Fit("resource", c.kind) + text.Fit("id", c.id) + text.Fit("state", receiptState)
	if c.paid {
		title += text.Fit("lived", 11) + text.Fit("cost", receiptPaid-11)
	}
	if w-c.head() >= leastProof {
		title += "proof"
	}
	out := []string{"", p.Styles.Dim.Of(text.Cut(title, w))}
	for _, res := range all {
		out = append(out, p.resourceRows(res, c)...)
	}
	if len(all) == 0 {
		out = append(out, "  there was nothing to remove")
	}
	return out
}

func (p Page) resourceRows(res cloud.Resource, c receiptColumns) []string {
	s := p.Styles
	state := map[cloud.State]string{cloud.Gone: s.Good.Of(text.Fit("✓ gone", receiptState)), cloud.Alive: s.Bad.Of(text.Fit("✗ alive", receiptState))}[res.State]
	if state == "" {
		state = s.Warn.Of(text.Fit("? unknown", receiptState))
	}
	id := text.Word(res.ID)
	if res.Node != "" {
		id = text.Word(res.Node) + " " + id
	}
	head := "  " + text.Fit(text.Word(res.Kind), c.kind) + text.Fit(text.EndOf(id, c.id-1), c.id-1) + " " + state
	if c.paid {
		head += paidCells(res)
	}
	room := c.w - c.head()
	if room < leastProof || res.State != cloud.Gone && text.Wide(text.Word(res.Proof)) > room { // how to do it by hand must not be cut up
		return append([]string{text.Cut(head, c.w)}, p.proofRows(res, 6, c.w)...)
	}
	rows := p.proofRows(res, c.head(), c.w)
	if len(rows) > 0 {
		rows[0] = head + strings.TrimLeft(rows[0], " ")
	} else {
		rows = []string{text.Cut(head, c.w)}
	}
	return rows
}

// paidCells is what a resource lived and cost.
func paidCells(res cloud.Resource) string {
	lived, cost := "", ""
	if res.Lived > 0 {
		lived = units.Duration(res.Lived)
	}
	if res.Cost > 0 {
		cost = units.USD(res.Cost)
	}
	return text.Fit(lived, 11) + text.Fit(cost, receiptPaid-11)
}

func (p Page) proofRows(res cloud.Resource, left, w int) []string {
	var out []string
	for _, l := range text.Wrap(text.Word(res.Proof), max(w-left, 1)) {
		out = append(out, strings.Repeat(" ", left)+p.Styles.Dim.Of(l))
	}
	return out
}
