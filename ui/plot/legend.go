package plot

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui/scale"
)

// head is the title and the legend in one row, "" when there is neither. The
// legend is as long as fits.
func (c *Chart) head(w int) string {
	var line string
	for _, form := range []extremes{spelled, short, none} {
		var parts []string
		if c.Title != "" {
			parts = append(parts, paint(c.TitleStyle, oneLine(c.Title)))
		}
		for i, l := range c.Series {
			if !c.NoLegend && !l.Behind {
				parts = append(parts, c.entry(i, l, form))
			}
		}
		if len(parts) == 0 {
			return ""
		}
		if line = strings.Join(parts, "  "); lipgloss.Width(line) <= w {
			break
		}
	}
	return fit(line, w, c.ASCII)
}

func (c *Chart) hasHead() bool {
	return c.Title != "" || !c.NoLegend && len(c.numbers()) > 0
}

// numbers are the places in Series of the curves that have a number: those
// that lie behind have none.
func (c *Chart) numbers() []int {
	out := make([]int, 0, len(c.Series))
	for i, l := range c.Series {
		if !l.Behind {
			out = append(out, i)
		}
	}
	return out
}

// extremes is how the legend tells the smallest and largest value.
type extremes int

const (
	spelled extremes = iota // (min 1, max 2)
	short                   // (1…2)
	none
)

// entry is a curve's part of the legend: mark, name, last value, extremes and
// how many values were not finite.
func (c *Chart) entry(i int, l Line, form extremes) string {
	text := " " + oneLine(l.Name)
	if l.Series != nil {
		if _, v, ok := l.Series.Last(); ok {
			text += " " + scale.Short(v)
		}
		if lo, hi, ok := l.Series.Range(); ok && form == spelled {
			text += " (min " + scale.Short(lo) + ", max " + scale.Short(hi) + ")"
		} else if ok && form == short {
			dots := "…"
			if c.ASCII {
				dots = ".."
			}
			text += " (" + scale.Short(lo) + dots + scale.Short(hi) + ")"
		}
		if g := l.Series.Gaps(); g > 0 {
			text += ", " + strconv.Itoa(g) + " not finite"
		}
	}
	return paint(l.Style, c.legendMark(i)) + paint(c.TextStyle, text)
}

func (c *Chart) legendMark(i int) string {
	n := c.numbers()
	k := slices.Index(n, i)
	switch {
	case len(n) > 1 && len(n) <= 9:
		return strconv.Itoa(k + 1)
	case c.ASCII:
		return "*+ox#@%&"[k%8 : k%8+1]
	}
	return "━"
}

// asciiMarks are what the lines of Series are drawn with where there is no braille
// and maybe no colour: what the legend says, and dots for what lies behind.
func (c *Chart) asciiMarks() []byte {
	marks := bytes.Repeat([]byte("."), len(c.Series))
	for _, i := range c.numbers() {
		marks[i] = c.legendMark(i)[0]
	}
	return marks
}

// oneLine makes a name fit for a row: names of metrics come from the nodes.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, sanitize.Plain(s))
}

// fit cuts or fills styled text to w cells.
func fit(s string, w int, ascii bool) string {
	tail := "…"
	if ascii {
		tail = "~"
	}
	s = ansi.Truncate(s, w, tail)
	return s + strings.Repeat(" ", max(0, w-lipgloss.Width(s)))
}

// centre puts plain text in the middle of w cells.
func centre(s string, w int) string {
	s = ansi.Truncate(s, w, "")
	left := (w - lipgloss.Width(s)) / 2
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", w-lipgloss.Width(s)-left)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
