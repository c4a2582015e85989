package text

import (
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/ui/logview"
)

// Ink is a way of setting text. The escape is made once: a frame has
// thousands of pieces.
type Ink struct{ On string }

// Of sets a text in this ink.
func (i Ink) Of(s string) string {
	if s == "" || i.On == "" {
		return s
	}
	return i.On + s + "\x1b[m"
}

// Styles are the semantic tokens of the screen. Nothing else names a colour,
// and no meaning hangs on one alone: words and signs carry it too.
type Styles struct {
	Dark bool

	Text, Strong, Dim, Faint   Ink
	Accent, Good, Warn, Bad    Ink
	Trace                      Ink // sparklines: many, so softer than the rest
	Key, Picked, Cursor, Badge Ink
	Alarm                      Ink // a whole row: what can't wait

	Series    []color.Color // for curves, apart for colour-blind eyes too
	Behind    []color.Color // the same, faded: values behind their average
	Heat      []Ink         // from idle to full
	HeatPair  [][]Ink       // two of them in one cell: the upper half, then the lower
	Axis      lipgloss.Style
	Rule, Gap lipgloss.Style
	Log       logview.Styles

	HelpKey, HelpName lipgloss.Style // Key and Dim, for bubbles' help
	Done, Open        color.Color    // Accent and Faint, for bubbles' progress
}

// palette is the raw material of a theme.
type palette struct {
	dim, faint, accent, good, warn, bad string
	trace                               string
	badgeOn, badgeOff                   string
	alarmOn, alarmOff                   string
	ground                              string // what a terminal of this theme most likely has
	series                              []string
	heat                                []string
}

var darkPalette = palette{
	ground: "#1B1E26", trace: "#5D83BA", dim: "#8B94A7", faint: "#6A748B", accent: "#7FB2F5", good: "#63C7A8",
	warn: "#E5B567", bad: "#F2808A", badgeOn: "#1B1E26", badgeOff: "#E5B567",
	alarmOn: "#FFFFFF", alarmOff: "#B3202E",
	series: []string{"#7FB2F5", "#F0A868", "#63C7A8", "#C79BF0", "#E5D567", "#F2808A"},
	heat:   []string{"#272B3D", "#2C3A5C", "#2E5074", "#2F6A86", "#37858F", "#4C9F96", "#6FB89B", "#9BCFA4"},
}

var lightPalette = palette{
	ground: "#FFFFFF", trace: "#6F9AD6", dim: "#5A6274", faint: "#818A9B", accent: "#1F5FBF", good: "#00755C",
	warn: "#8A5A00", bad: "#B3202E", badgeOn: "#FFFFFF", badgeOff: "#8A5A00",
	alarmOn: "#FFFFFF", alarmOff: "#B3202E",
	series: []string{"#1F5FBF", "#BC5700", "#00755C", "#7A3FB8", "#7A6A00", "#B3202E"},
	heat:   []string{"#EEF1F5", "#D3E0EC", "#A9CBE0", "#76B1CF", "#4A92BD", "#2C70A6", "#1F4E8A", "#1A2F66"},
}

// NewStyles makes the styles of a dark or a light terminal.
func NewStyles(dark bool) Styles {
	p := lightPalette
	if dark {
		p = darkPalette
	}
	fg := func(hex string, bold bool) Ink {
		s := ansi.Style{}
		if bold {
			s = s.Bold()
		}
		return Ink{s.ForegroundColor(lipgloss.Color(hex)).String()}
	}
	st := Styles{
		Dark: dark, Strong: Ink{ansi.Style{}.Bold().String()},
		Dim: fg(p.dim, false), Faint: fg(p.faint, false),
		Accent: fg(p.accent, false), Good: fg(p.good, false),
		Warn: fg(p.warn, false), Bad: fg(p.bad, true), Trace: fg(p.trace, false),
		Key: fg(p.accent, true), Picked: fg(p.accent, true),
		Cursor: Ink{ansi.Style{}.Reverse(true).String()},
		Badge: Ink{ansi.Style{}.Bold().ForegroundColor(lipgloss.Color(p.badgeOn)).
			BackgroundColor(lipgloss.Color(p.badgeOff)).String()},
		Alarm: Ink{ansi.Style{}.Bold().ForegroundColor(lipgloss.Color(p.alarmOn)).
			BackgroundColor(lipgloss.Color(p.alarmOff)).String()},
	}
	st.HelpKey = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color(p.accent))
	st.Done, st.Open = lipgloss.Color(p.accent), lipgloss.Color(p.faint)
	st.HelpName = lipgloss.NewStyle().Foreground(lipgloss.Color(p.dim))
	st.Axis = lipgloss.NewStyle().Foreground(lipgloss.Color(p.dim))
	st.Log = logview.Styles{
		Match:   lipgloss.NewStyle().Bold(true).Underline(true).Foreground(lipgloss.Color(p.warn)),
		Current: lipgloss.NewStyle().Bold(true).Reverse(true),
		Note:    lipgloss.NewStyle().Foreground(lipgloss.Color(p.faint)),
	}
	st.Rule = lipgloss.NewStyle().Foreground(lipgloss.Color(p.accent))
	st.Gap = lipgloss.NewStyle().Foreground(lipgloss.Color(p.warn)).Bold(true)
	for _, hex := range p.series {
		c := lipgloss.Color(hex)
		st.Series = append(st.Series, c)
		st.Behind = append(st.Behind, mixed(c, lipgloss.Color(p.ground), 0.42))
	}
	for _, up := range p.heat {
		st.Heat = append(st.Heat, fg(up, false))
		var pairs []Ink
		for _, low := range p.heat {
			pairs = append(pairs, Ink{ansi.Style{}.ForegroundColor(lipgloss.Color(up)).BackgroundColor(lipgloss.Color(low)).String()})
		}
		st.HeatPair = append(st.HeatPair, pairs)
	}
	return st
}

// mixed is a colour of which only a part is left on a ground.
func mixed(c, ground color.Color, part float64) color.Color {
	r, g, b, _ := c.RGBA()
	x, y, z, _ := ground.RGBA()
	mix := func(a, b uint32) uint8 { return uint8((float64(a)*part + float64(b)*(1-part)) / 257) }
	return color.RGBA{mix(r, x), mix(g, y), mix(b, z), 255}
}

// FgOf is the escape that sets a colour.
func FgOf(c color.Color) string {
	return ansi.Style{}.ForegroundColor(c).String()
}
