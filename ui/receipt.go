package ui

import (
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// drawReceipt is each resource with the proof that it is gone.
func (m *Model) drawReceipt(w int) []string {
	s, r := m.styles, m.ses.st.receipt
	if r == nil {
		return []string{"No receipt yet: the cluster was not torn down."}
	}
	head := s.Good.of("✓ Everything is gone, and that was looked at again.")
	if !r.Proven {
		head = s.Bad.of("! UNRESOLVED") + "  Not everything is proven gone" + m.stillCosts()
	}
	out := []string{cut(head, w), ""}
	sum := func(k, v string) { out = append(out, s.Dim.of(fit(k, 12))+v) }
	sum("lived", units.Seconds(r.Lived))
	sum("cost", units.USD(r.Cost))
	sum("left", plural(r.ProcessesLeft, "process")+", "+plural(r.FilesLeft, "file"))
	out = append(out, m.receiptTable(r.Resources, w)...)
	return append(out, m.receiptNext(w)...)
}

func (m *Model) stillCosts() string {
	if p := m.ses.st.account.Rate(); p > 0 {
		return ": up to " + units.PerHour(p) + " goes on."
	}
	return "."
}

// receiptNext is what it all came to, and what to do now.
func (m *Model) receiptNext(w int) []string {
	s, st := m.styles, m.ses.st
	var out []string
	if e := st.ended; e != nil {
		out = append(out, "", m.verdictText(e.Verdict, &e.ExitCode)+"  "+e.Cause)
	}
	out = append(out, m.resultsRows()...)
	if st.receipt.Proven {
		return append(out, "", s.Key.of("t")+" shows the run again, "+s.Key.of("R")+" runs anew, "+s.Key.of("esc")+" goes home")
	}
	if f := m.ses.failed(); f != nil && f.Next != "" {
		out = append(out, "", s.Key.of("next"))
		for _, l := range wrap(f.Next, max(w-2, 1)) {
			out = append(out, "  "+l)
		}
	}
	return append(out, "", s.Key.of("X")+" tries again; removing twice does no harm")
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

func (m *Model) receiptTable(all []cloud.Resource, w int) []string {
	c := receiptColumns{kind: 12, id: 26, w: w}
	for _, res := range all {
		c.kind = min(max(c.kind, wide(res.Kind)+1), 18)
		c.paid = c.paid || res.Lived > 0 || res.Cost > 0
	}
	title := "  " + fit("resource", c.kind) + fit("id", c.id) + fit("state", receiptState)
	if c.paid {
		title += fit("lived", 11) + fit("cost", receiptPaid-11)
	}
	if w-c.head() >= leastProof {
		title += "proof"
	}
	out := []string{"", m.styles.Dim.of(cut(title, w))}
	for _, res := range all {
		out = append(out, m.resourceRows(res, c)...)
	}
	if len(all) == 0 {
		out = append(out, "  there was nothing to remove")
	}
	return out
}

func (m *Model) resourceRows(res cloud.Resource, c receiptColumns) []string {
	s := m.styles
	state := map[cloud.State]string{cloud.Gone: s.Good.of(fit("✓ gone", receiptState)), cloud.Alive: s.Bad.of(fit("✗ alive", receiptState))}[res.State]
	if state == "" {
		state = s.Warn.of(fit("? unknown", receiptState))
	}
	id := word(res.ID)
	if res.Node != "" {
		id = word(res.Node) + " " + id
	}
	head := "  " + fit(word(res.Kind), c.kind) + fit(endOf(id, c.id-1), c.id-1) + " " + state
	if c.paid {
		head += paidCells(res)
	}
	room := c.w - c.head()
	if room < leastProof || res.State != cloud.Gone && wide(word(res.Proof)) > room { // how to do it by hand must not be cut up
		return append([]string{cut(head, c.w)}, m.proofRows(res, 6, c.w)...)
	}
	rows := m.proofRows(res, c.head(), c.w)
	if len(rows) > 0 {
		rows[0] = head + strings.TrimLeft(rows[0], " ")
	} else {
		rows = []string{cut(head, c.w)}
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
	return fit(lived, 11) + fit(cost, receiptPaid-11)
}

func (m *Model) proofRows(res cloud.Resource, left, w int) []string {
	var out []string
	for _, l := range wrap(word(res.Proof), max(w-left, 1)) {
		out = append(out, strings.Repeat(" ", left)+m.styles.Dim.of(l))
	}
	return out
}
