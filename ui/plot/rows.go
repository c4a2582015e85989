package plot

import (
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dlwb/dlwb/ui/scale"
)

// paint gives text a style without lipgloss's work on layout, which would cost
// more than the whole chart.
func paint(s lipgloss.Style, text string) string {
	open, shut := pen(s)
	return open + text + shut
}

// pen is what opens and what closes a style.
func pen(s lipgloss.Style) (open, shut string) {
	open, shut, _ = strings.Cut(s.Inline(true).Render("x"), "x")
	return open, shut
}

// rows are the plot with its axes, f.h rows of f.w cells.
func (f *frame) rows() []string {
	labels := f.labelsByRow(f.yTicks, f.values[0])
	open := f.pens()
	axisOpen, axisShut := pen(f.AxisStyle)
	ends := f.endsByRow(open)
	if f.rTicks != nil {
		ends = f.rightByRow(axisOpen, axisShut)
	}
	var marks []byte
	if f.ASCII {
		marks = f.asciiMarks()
	}
	out := make([]string, 0, f.h)
	var b strings.Builder
	for y := range f.plotH {
		b.Reset()
		if f.left > 0 {
			b.WriteString(axisOpen + f.axisCell(labels[y]) + axisShut)
		}
		f.plotRow(&b, y, open, marks)
		b.WriteString(ends[y])
		out = append(out, b.String())
	}
	if f.xAxis == 2 {
		out = append(out, f.xLine(axisOpen, axisShut))
	}
	if f.xAxis > 0 {
		out = append(out, axisOpen+f.xLabels()+axisShut)
	}
	return out
}

// pens are what opens and closes the style of each pen.
func (f *frame) pens() [][2]string {
	open := make([][2]string, rulePen+1)
	for i, l := range f.Series {
		open[min(i+1, rulePen-1)][0], open[min(i+1, rulePen-1)][1] = pen(l.Style)
	}
	open[rulePen][0], open[rulePen][1] = pen(f.RuleStyle)
	return open
}

// axisCell is the label and the piece of the axis left of a row.
func (f *frame) axisCell(label string) string {
	mark := f.glyph("│", "|")
	if label != "" {
		mark = f.glyph("┤", "+")
	}
	return strings.Repeat(" ", f.yWidth-lipgloss.Width(label)) + label + mark
}

// rightByRow is the second value axis.
func (f *frame) rightByRow(open, shut string) []string {
	labels := f.labelsByRow(f.rTicks, f.values[1])
	out := make([]string, f.plotH)
	for y := range out {
		mark := f.glyph("│", "|")
		if labels[y] != "" {
			mark = f.glyph("├", "+")
		}
		out[y] = open + mark + labels[y] + strings.Repeat(" ", f.right-1-lipgloss.Width(labels[y])) + shut
	}
	return out
}

func (f *frame) glyph(unicode, ascii string) string {
	if f.ASCII {
		return ascii
	}
	return unicode
}

// plotRow writes one row of the canvas, each run of one curve in one go.
func (f *frame) plotRow(b *strings.Builder, y int, open [][2]string, marks []byte) {
	c := &f.canvas
	last := uint8(0)
	for x := range c.w {
		i := y*c.w + x
		if p := c.pens[i]; p != last && (c.bits[i] != 0 || c.marks[i] != 0) {
			b.WriteString(open[last][1])
			b.WriteString(open[p][0])
			last = p
		}
		switch {
		case c.marks[i] != 0:
			b.WriteRune(c.marks[i])
		case c.bits[i] == 0:
			b.WriteByte(' ')
		case f.ASCII:
			b.WriteByte(marks[int(c.pens[i])-1])
		default:
			b.WriteRune(rune(0x2800) + rune(c.bits[i]))
		}
	}
	b.WriteString(open[last][1])
}

// xTicks are the labelled places of the x axis with their columns.
func (f *frame) xTicks() ([]scale.Tick, []int) {
	var all []scale.Tick
	switch n := max(2, f.plotW/9); {
	case f.Seconds:
		all = scale.ClockTicks(f.x0, f.x1, max(2, f.plotW/14))
	case f.Whole:
		all = scale.WholeTicks(f.x0, f.x1, n)
	default:
		all = scale.Ticks(f.x0, f.x1, n)
	}
	columns := make([]int, len(all))
	for i, t := range all {
		if f.FormatX != nil {
			all[i].Text = oneLine(f.FormatX(t.At))
		}
		columns[i] = f.left + int(f.px(t.At)+0.5)/f.canvas.sx
	}
	return all, columns
}

// xLine is the axis itself. Where values are not finite it has a cross: a curve
// that merely stops looks like one that goes on soon.
func (f *frame) xLine(open, shut string) string {
	line := make([]string, f.w)
	for i := range line {
		line[i] = f.glyph("─", "-")
		if i < f.left || i >= f.left+f.plotW {
			line[i] = " "
		}
	}
	if f.left > 0 {
		line[f.left-1] = f.glyph("└", "+")
	}
	if f.rTicks != nil {
		line[f.left+f.plotW] = f.glyph("┘", "+")
	}
	_, columns := f.xTicks()
	for _, x := range columns {
		if x >= f.left && x < f.left+f.plotW {
			line[x] = f.glyph("┬", "+")
		}
	}
	gapOpen, gapShut := pen(f.GapStyle)
	for x, g := range f.gaps {
		if g > 0 {
			line[f.left+x] = shut + gapOpen + f.glyph("×", "x") + gapShut + open
		}
	}
	return open + strings.Join(line, "") + shut
}

// xLabels writes the numbers below their places, from the left, leaving out
// those that would touch, and what x is at the right end.
func (f *frame) xLabels() string {
	right := ""
	if label := oneLine(f.XLabel); label != "" && lipgloss.Width(label)+8 <= f.plotW {
		right = "  " + label
	}
	room := f.w - lipgloss.Width(right)
	var b strings.Builder
	end := 0
	all, columns := f.xTicks()
	for i, t := range all {
		width := lipgloss.Width(t.Text)
		at := min(max(columns[i]-width/2, f.left), room-width)
		if at < f.left || end > 0 && at < end+2 {
			continue
		}
		b.WriteString(strings.Repeat(" ", at-end) + t.Text)
		end = at + width
	}
	b.WriteString(strings.Repeat(" ", max(0, room-end)) + right)
	return b.String()
}
