package offers

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
)

// comparedFact is one row of a comparison.
type comparedFact struct {
	name  string
	text  func(o *cloud.Offer, spot bool) string
	value func(o *cloud.Offer, spot bool) float64 // what is better; nil: nothing is
	least bool                                    // the least is best
}

// comparedFacts are the columns of the table as rows, and what has no column.
func comparedFacts() []comparedFact {
	var out []comparedFact
	long := map[string]string{"each": "memory of each", "$/h": "$/h on demand", "spot": "$/h spot", "quota": "quota left"}
	for i := 1; i < len(columns); i++ {
		c := &columns[i]
		name := c.name
		if l := long[name]; l != "" {
			name = l
		}
		out = append(out, comparedFact{name, c.cell, c.value, !c.most})
		if c.name == "each" {
			out = append(out, comparedFact{"memory of all", func(o *cloud.Offer, _ bool) string {
				return text.OrDash(o.GPUs > 0, units.Binary(o.GPUMemory*int64(o.GPUs)))
			}, func(o *cloud.Offer, _ bool) float64 { return float64(o.GPUMemory) * float64(o.GPUs) }, false})
		}
	}
	return append(out,
		comparedFact{name: "network", text: func(o *cloud.Offer, _ bool) string { return text.Word(o.Network) }},
		comparedFact{name: "EFA", text: func(o *cloud.Offer, _ bool) string { return text.OrDash(o.EFA > 0, fmt.Sprint(o.EFA)) }},
		comparedFact{name: "NVMe", text: func(o *cloud.Offer, _ bool) string { return text.OrDash(o.NVMe > 0, units.Bytes(o.NVMe)) }},
		comparedFact{name: "processor", text: func(o *cloud.Offer, _ bool) string { return text.Word(o.Arch) }},
	)
}

// DrawComparison sets the marked machines side by side. What is best in a row
// is marked, where they differ.
func (k *Table) DrawComparison(l text.Look, w int) []string {
	s := l.Styles
	all := k.Compared()
	if len(all) == 0 {
		return []string{"Nothing is marked any more.", s.Key.Of("v") + " goes back to the table"}
	}
	labelW := 17
	cw := text.Clamp((w-labelW)/len(all), 12, 34)
	head := text.Fit("", labelW)
	for i, o := range all {
		name := text.Fit("  "+text.Word(o.Instance), cw)
		if i == text.Clamp(k.column, 0, len(all)-1) {
			name = s.Picked.Of(text.Fit("› "+text.Word(o.Instance), cw))
		}
		head += name
	}
	out := []string{text.Cut(head, w)}
	for _, f := range comparedFacts() {
		out = append(out, k.comparedRow(l, f, all, labelW, cw, w))
	}
	out = append(out, comparedNotes(l, all, labelW, cw)...)
	return append(out, "", s.Dim.Of("✓ is best in its row.  ")+s.Key.Of("←→")+" pick, "+s.Key.Of("enter")+" takes it, "+s.Key.Of("v")+" goes back to the table")
}

func (k *Table) comparedRow(l text.Look, f comparedFact, all []*cloud.Offer, labelW, cw, w int) string {
	row := l.Styles.Dim.Of(text.Fit(f.name, labelW))
	best := f.best(all, k.Spot)
	for i, o := range all {
		txt := text.Fit("  "+f.text(o, k.Spot), cw)
		if best[i] {
			txt = l.Styles.Good.Of(text.Fit("✓ "+f.text(o, k.Spot), cw))
		}
		row += txt
	}
	return text.Cut(row, w)
}

// best tells which of the offers are best in a row; none where all are alike.
func (f *comparedFact) best(all []*cloud.Offer, spot bool) []bool {
	out := make([]bool, len(all))
	if f.value == nil {
		return out
	}
	top, differ := 0.0, false
	for i, o := range all {
		v := f.value(o, spot)
		differ = differ || i > 0 && v != f.value(all[0], spot)
		if v != 0 && (top == 0 || f.least == (v < top)) {
			top = v
		}
	}
	for i, o := range all {
		out[i] = differ && top != 0 && f.value(o, spot) == top
	}
	return out
}

// comparedNotes are what should be known of each, wrapped into its column.
func comparedNotes(l text.Look, all []*cloud.Offer, labelW, cw int) []string {
	blocks := []text.Block{{W: labelW, Lines: []string{l.Styles.Dim.Of("notes")}}}
	for _, o := range all {
		notes := strings.Join(text.Words(o.Notes), "; ")
		blocks = append(blocks, text.Block{W: cw, Lines: text.Indent(text.Wrap(text.OrDash(notes != "", notes), cw-3), 2)})
	}
	return text.Beside(0, blocks...)
}
