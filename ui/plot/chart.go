package plot

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Line is one curve of a chart. Of its style the colours and attributes count,
// not padding or borders.
type Line struct {
	Name   string
	Series *Series
	Style  lipgloss.Style

	// Origin is taken from every x before it is drawn: curves of several runs
	// lie over each other when each counts from its own beginning.
	Origin float64
	// Values are those that the right end tells the newest of, where the curve is an
	// average of them; nil for the curve's own.
	Values *Series
	// Behind draws the curve below the others, without name, number or value:
	// the raw values behind their average.
	Behind bool
	// Axis is by which value axis it is drawn: 0 is the one at the left, 1 the one
	// at the right. With more than two each has the whole height, and no numbers.
	Axis int
	// Low and High are the edges of a band around the curve; nil for none.
	Low, High *Series
	// Best is the point to be marked; nil for none. Its X is that of the
	// series.
	Best *Mark
}

// Mark is a place of a curve.
type Mark struct{ X, Y float64 }

// Chart draws curves over a common x. The zero value of every field is a good
// choice.
type Chart struct {
	Title  string
	Series []Line
	LogY   bool   // values of zero and below are then left out
	Whole  bool   // x counts whole things: its ticks are not between them
	XLabel string // stands at the right end of the x axis: "step"

	// XMin and XMax are the part to show when XMax > XMin, else all is shown.
	// YMin and YMax are the same for a fixed scale.
	XMin, XMax float64
	YMin, YMax float64

	// Seconds says that x counts seconds: its ticks are then at whole minutes
	// and hours, and FormatX should write them so.
	Seconds bool

	// Cursor draws a line at an x, and a ring on each curve at its nearest
	// point; nil for none.
	Cursor *float64

	// FormatX writes the numbers at the x axis; nil writes them short.
	FormatX func(float64) string

	Empty    string // what to say when there is nothing to draw
	ASCII    bool   // draw with ASCII only
	NoLegend bool   // leave out names and values
	Ends     bool   // write each curve's value at its right end

	// FormatY writes the values at the ends; nil writes them short.
	FormatY func(float64) string

	TitleStyle lipgloss.Style
	AxisStyle  lipgloss.Style // axes, their numbers, the empty text
	TextStyle  lipgloss.Style // the legend's values
	RuleStyle  lipgloss.Style // the line at the cursor
	GapStyle   lipgloss.Style // the signs at the axis where values are not finite
}

// Draw returns exactly h rows of exactly w cells.
func (c *Chart) Draw(w, h int) string {
	if w <= 0 || h <= 0 {
		return ""
	}
	rows := make([]string, 0, h)
	if head := c.head(w); head != "" {
		rows = append(rows, head)
	}
	if left := h - len(rows); left > 0 {
		f := c.frame(w, left)
		if f == nil {
			rows = append(rows, c.nothing(w, left)...)
		} else {
			rows = append(rows, f.rows()...)
		}
	}
	return strings.Join(rows, "\n")
}

// nothing is h rows with the reason why nothing is drawn in their middle.
func (c *Chart) nothing(w, h int) []string {
	rows := make([]string, h)
	for i := range rows {
		rows[i] = strings.Repeat(" ", w)
	}
	rows[(h-1)/2] = paint(c.AxisStyle, centre(c.why(), w))
	return rows
}

// why says why there is nothing to draw.
func (c *Chart) why() string {
	gaps, points := 0, false
	for _, l := range c.Series {
		if l.Series != nil {
			gaps += l.Series.Gaps()
			points = points || l.Series.some
		}
	}
	switch {
	case points && c.XMax > c.XMin:
		return "nothing in this part"
	case points:
		return "no value above zero"
	case gaps > 0:
		return count(gaps, "value", "values") + " came, none is finite"
	case c.Empty != "":
		return oneLine(c.Empty)
	}
	return "no points yet"
}
