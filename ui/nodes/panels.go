// Package nodes draws the nodes of a session: panels in four densities, the whole
// list, and every GPU over time as a heatmap.
package nodes

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/spark"
	"github.com/dlwb/dlwb/ui/text"
)

// Node panels come in four densities. The densest that needs no more rows
// than there are is not taken: the roomiest that fits is.

// Page is the nodes of a session as they are drawn.
type Page struct {
	text.Look
	Of *session.Session
}

// cardMin is the narrowest card that keeps its columns.
const cardMin = 46

// headroom keeps the top of a full sparkline free, or several below each other
// run together into a wall.
const headroom = 1.22

// Panels draws all nodes in at most h rows.
func (p Page) Panels(w, h int) []string {
	st := p.Of.State
	if len(st.Nodes) == 0 {
		return []string{p.Styles.Dim.Of("no node has answered yet")}
	}
	for _, d := range p.densities(w) {
		if d.rows <= h {
			return d.draw(w)
		}
	}
	rows := p.wideGrid(w)
	if len(rows) > h {
		rows = p.tightGrid(w)
	}
	if len(rows) <= h {
		return rows
	}
	if h < 1 {
		return nil
	}
	if n := len(rows) - 1; n == h && st.Simulated() {
		return rows[:n] // the cells are marked; the sentence about the mark has to go
	}
	return append(rows[:h-1:h-1], p.Styles.Dim.Of("… n shows all "+text.Plural(len(st.Nodes), "node")))
}

// density is a way of drawing all nodes and the rows it takes.
type density struct {
	rows int
	draw func(w int) []string
}

// densities lists the ways from the roomiest on. Rows are counted, not drawn:
// only one of them will be seen.
func (p Page) densities(w int) []density {
	nodes := p.Of.State.Nodes
	card, gpus := 4, 0
	for i := range nodes {
		if s := nodes[i].Sample; s != nil {
			card = max(card, 4+max(len(s.GPUs), 1))
			gpus += len(s.GPUs)
		}
	}
	across, _ := cardsAcross(w, len(nodes))
	deep := (len(nodes) + across - 1) / across
	return []density{
		{deep*(card+1) - 1, p.cards},
		{len(nodes) + gpus, p.rowsWithGPUs},
		{len(nodes), p.rows},
	}
}

// cardsAcross is how many cards stand side by side, and how wide each is.
func cardsAcross(w, nodes int) (across, cw int) {
	across = text.Clamp((w+4)/(cardMin+4), 1, max(nodes, 1))
	return across, min((w-4*(across-1))/across, 96)
}

// cards puts a card for each node side by side, as many as fit.
func (p Page) cards(w int) []string {
	nodes := p.Of.State.Nodes
	across, cw := cardsAcross(w, len(nodes))
	var out []string
	for i := 0; i < len(nodes); i += across {
		var row []text.Block
		for j := i; j < min(i+across, len(nodes)); j++ {
			row = append(row, text.Block{W: cw, Lines: p.card(&nodes[j], cw)})
		}
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, text.Beside(4, row...)...)
	}
	return out
}

// card is everything about one node: a line for each quantity.
func (p Page) card(n *session.Node, w int) []string {
	out := []string{p.title(n, w)}
	if n.Sample == nil {
		if p.Of.Over() {
			return append(out, "", "", "")
		}
		return append(out, text.Cut(p.Styles.Dim.Of("  "+p.noSample()), w), "", "")
	}
	s, grey := n.Sample, p.grey(n)
	sw := text.Clamp(w-36, 6, 40)
	line := func(name string, t session.Trace, limit float64, txt string) {
		spark := p.spark(t, sw, limit, grey)
		out = append(out, text.Cut(p.Styles.Dim.Of(text.Fit(name, 5))+spark+p.value(txt, grey), w))
	}
	cores := ""
	if s.Cores > 0 {
		cores = p.dimIf(text.Plural(s.Cores, "core"), grey)
	}
	line("cpu", n.CPU, 100, percent(s.CPU)+"  "+cores)
	line("mem", n.Mem, 100, percent(session.Percent(s.MemUsed, s.MemTotal))+"  "+p.dimIf(usage(s.MemUsed, s.MemTotal, units.Binary, units.BinaryOf), grey))
	line("net", n.Rx, 0, " "+rates(s))
	if len(s.GPUs) == 0 {
		out = append(out, p.Styles.Dim.Of(text.Fit("gpu", 5)+gpuAbsence(s)))
	}
	for i, g := range s.GPUs {
		var t session.Trace
		if i < len(n.GPUs) {
			t = n.GPUs[i]
		}
		line(fmt.Sprintf("gpu%d", g.Index), t, 100, gpuText(g))
	}
	return out
}

// title names a node and says what is wrong or untrue about its panel.
func (p Page) title(n *session.Node, w int) string {
	name := p.Styles.Strong.Of(n.Name)
	if n.Head {
		name += p.Styles.Dim.Of(" head")
	}
	badge := ""
	if n.Simulated() {
		badge = "  " + p.Styles.Badge.Of(" SIMULATED ")
	}
	if p.Of.Over() {
		return text.Spread(name, p.Styles.Dim.Of(n.LastSeen())+badge, w)
	}
	if why := p.stale(n); why != "" {
		return text.Spread(p.Styles.Dim.Of(n.Name), p.Styles.Warn.Of("? "+why)+badge, w)
	}
	if n.Addr != "" && w >= 40 {
		name += "  " + p.Styles.Faint.Of(text.Word(n.Addr))
	}
	return text.Spread(name, strings.TrimSpace(badge), w)
}

// rowsWithGPUs is a row for each node and one for each of its GPUs.
func (p Page) rowsWithGPUs(w int) []string {
	var out []string
	for i := range p.Of.State.Nodes {
		n := &p.Of.State.Nodes[i]
		out = append(out, p.row(n, w, false))
		if n.Sample == nil {
			continue
		}
		grey := p.grey(n)
		for j, g := range n.Sample.GPUs {
			var t session.Trace
			if j < len(n.GPUs) {
				t = n.GPUs[j]
			}
			out = append(out, text.Cut(text.Fit("", 8)+p.Styles.Dim.Of(fmt.Sprintf("gpu%-2d", g.Index))+
				p.spark(t, text.Clamp(w-58, 6, 30), 100, grey)+p.value(gpuText(g), grey), w))
		}
	}
	return out
}

// rows is one row for each node, all its GPUs as one bar each.
func (p Page) rows(w int) []string {
	var out []string
	for i := range p.Of.State.Nodes {
		out = append(out, p.row(&p.Of.State.Nodes[i], w, true))
	}
	return out
}

// row is a node in one line. GPUs are in it when there is no line of
// their own, or when there are none and that must be said.
func (p Page) row(n *session.Node, w int, withGPUs bool) string {
	name := text.Fit(n.Name, 7) + " "
	if why := p.stale(n); why != "" {
		return text.Cut(p.Styles.Dim.Of(name)+p.Styles.Warn.Of("? "+why)+p.Styles.Dim.Of("  "+n.Why), w)
	}
	if n.Sample == nil {
		return text.Cut(p.Styles.Strong.Of(name)+p.Styles.Dim.Of(p.noSample()), w)
	}
	s, mark := n.Sample, p.simulatedMark(n, w)
	room := w - text.Wide(mark) - 2
	if mark == "" {
		room = w
	}
	if p.Of.Over() {
		mark = strings.TrimSpace(p.Styles.Dim.Of("at the end") + "  " + mark)
		room = w - text.Wide(mark) - 2
	}
	row := p.Styles.Strong.Of(name) + p.Styles.Dim.Of("cpu ") + p.spark(n.CPU, text.Clamp((w-66)/2, 0, 16), 100, false) +
		percent(s.CPU) + "  " + p.Styles.Dim.Of("mem ") + memShort(s, w)
	for _, part := range p.rowParts(s, withGPUs) {
		if text.Wide(row)+2+text.Wide(part) <= room {
			row += "  " + part
		}
	}
	return text.Spread(row, mark, w)
}

// rowParts is what a node's row says beyond CPU and memory, the most telling
// first: what does not fit is left out whole.
func (p Page) rowParts(s *metrics.Sample, withGPUs bool) []string {
	net := p.Styles.Dim.Of("net ") + rates(s)
	switch {
	case len(s.GPUs) == 0:
		return []string{p.Styles.Dim.Of(gpuAbsence(s)), net}
	case withGPUs:
		return []string{p.Styles.Dim.Of("gpu ") + p.gpuBars(s) + " " + gpuMean(s), net}
	}
	return []string{net}
}

func (p Page) simulatedMark(n *session.Node, w int) string {
	switch {
	case !n.Simulated():
		return ""
	case w >= 100:
		return p.Styles.Badge.Of(" SIMULATED ")
	}
	return p.Styles.Badge.Of("SIMULATED")
}

// wideGrid packs several nodes into a row: for many nodes on a small screen.
func (p Page) wideGrid(w int) []string { return p.grid(w, true) }

// tightGrid leaves the CPU out where there are GPUs.
func (p Page) tightGrid(w int) []string { return p.grid(w, false) }

func (p Page) grid(w int, cpu bool) []string {
	nodes := p.Of.State.Nodes
	cell := 8
	var cells []string
	for i := range nodes {
		cells = append(cells, p.cell(&nodes[i], cpu))
		cell = max(cell, text.Wide(cells[i]))
	}
	across := max((w+3)/(cell+3), 1)
	var out []string
	for i := 0; i < len(cells); i += across {
		row := cells[i:min(i+across, len(cells))]
		for j := range row {
			row[j] = text.Fit(row[j], cell)
		}
		out = append(out, text.Cut(strings.Join(row, "   "), w))
	}
	if p.Of.State.Simulated() {
		out = append(out, p.Styles.Badge.Of("SIMULATED")+p.Styles.Dim.Of(" where marked sim"))
	}
	return out
}

func (p Page) cell(n *session.Node, cpu bool) string {
	name := text.Fit(n.Name, 7)
	switch {
	case p.stale(n) != "":
		return p.Styles.Dim.Of(name) + p.Styles.Warn.Of("? stale")
	case n.Sample == nil:
		if job.LackOf(p.Of.State.Lacks, job.Telemetry) != nil {
			return name + p.Styles.Dim.Of("none")
		}
		return name + p.Styles.Dim.Of("waiting")
	}
	text := name
	switch {
	case len(n.Sample.GPUs) == 0:
		text += p.Styles.Dim.Of("cpu ") + percent(n.Sample.CPU)
	case cpu:
		text += percent(n.Sample.CPU) + " "
	}
	text += p.gpuBars(n.Sample)
	if n.Simulated() {
		text += p.Styles.Warn.Of(" sim")
	}
	return text
}

// gpuBars is one cell for each GPU, as high as it is used.
func (p Page) gpuBars(s *metrics.Sample) string {
	var b strings.Builder
	for _, g := range s.GPUs {
		if g.Util == nil {
			b.WriteString("?")
			continue
		}
		b.WriteString(p.glyphs().Sparkline([]float64{*g.Util}, 1, 100*headroom))
	}
	return p.Styles.Trace.Of(b.String())
}

// gpuMean is what all GPUs of a node do together.
func gpuMean(s *metrics.Sample) string {
	var sum, hot float64
	n := 0
	for _, g := range s.GPUs {
		if g.Util != nil {
			sum, n = sum+*g.Util, n+1
		}
		if g.Temp != nil {
			hot = max(hot, *g.Temp)
		}
	}
	if n == 0 {
		return "N/A"
	}
	mean := sum / float64(n)
	text := percent(&mean)
	if hot > 0 {
		text += fmt.Sprintf(" %.0f °C", hot)
	}
	return text
}

// gpuAbsence says why there are no GPUs to show.
func gpuAbsence(s *metrics.Sample) string {
	if s.GPUError == "" || s.GPUError == "no GPU" {
		return "no GPU"
	}
	return "no GPU values: " + s.GPUError
}

func (p Page) grey(n *session.Node) bool { return p.stale(n) != "" }

// noSample says why there is no telemetry of a node.
func (p Page) noSample() string {
	if lack := job.LackOf(p.Of.State.Lacks, job.Telemetry); lack != nil {
		return lack.String()
	}
	return "no telemetry yet"
}

// stale says why a node's values can't be trusted. What is over has its last
// values, and says so.
func (p Page) stale(n *session.Node) string {
	if p.Of.Over() {
		return ""
	}
	return n.Stale(p.Now)
}

// spark is the history of a quantity, grey when it is not to be trusted.
func (p Page) spark(t session.Trace, w int, limit float64, grey bool) string {
	if w <= 0 {
		return ""
	}
	if limit == 0 { // no natural limit: that of what is shown
		for _, v := range t[max(len(t)-w, 0):] {
			if v > limit {
				limit = v
			}
		}
	}
	text := text.Fit(p.glyphs().Sparkline(t, w, limit*headroom), w)
	if grey {
		return p.Styles.Faint.Of(text) + " "
	}
	return p.Styles.Trace.Of(text) + " "
}

func (p Page) value(text string, grey bool) string {
	if grey {
		return p.Styles.Faint.Of(text)
	}
	return text
}

func (p Page) dimIf(text string, grey bool) string {
	if grey {
		return text // the whole line is set in one ink already
	}
	return p.Styles.Dim.Of(text)
}

// percent is four cells: " 96%", "100%", " N/A".
func percent(v *float64) string {
	if v == nil {
		return " N/A"
	}
	return fmt.Sprintf("%3.0f%%", *v)
}

// usage is "1.2/7.8 GiB", or N/A.
func usage(used, total *float64, one func(int64) string, both func(part, whole int64) string) string {
	switch {
	case used == nil:
		return "N/A"
	case total == nil:
		return one(int64(*used))
	}
	return both(int64(*used), int64(*total))
}

func memShort(s *metrics.Sample, w int) string {
	txt := percent(session.Percent(s.MemUsed, s.MemTotal))
	if w >= 100 {
		txt += " " + text.Fit(usage(s.MemUsed, s.MemTotal, units.Binary, units.BinaryOf), 18)
	}
	return txt
}

func rates(s *metrics.Sample) string {
	return "↓ " + rate(s.NetRx) + " ↑ " + rate(s.NetTx)
}

// rate is nine cells, so that nothing beside it moves.
func rate(v *float64) string {
	if v == nil {
		return text.Fit("N/A", 9)
	}
	return text.FlushRight(units.Bytes(int64(*v))+"/s", 9)
}

// gpuText is use, memory, temperature and power of a GPU; N/A where
// nvidia-smi has no answer.
func gpuText(g metrics.GPU) string {
	mem := "N/A"
	switch {
	case g.MemUsed != nil && g.MemTotal != nil:
		mem = units.BinaryOf(mebi(*g.MemUsed), mebi(*g.MemTotal))
	case g.MemUsed != nil:
		mem = units.Binary(mebi(*g.MemUsed))
	}
	return percent(g.Util) + "  " + text.FlushRight(mem, 11) + " " + unit(g.Temp, "°C", 5) + " " + unit(g.Power, "W", 5)
}

// mebi is memory in bytes; nvidia-smi counts it in MiB.
func mebi(v float64) int64 { return int64(v * (1 << 20)) }

func unit(v *float64, u string, w int) string {
	if v == nil {
		return text.FlushRight("N/A", w)
	}
	return text.FlushRight(fmt.Sprintf("%.0f %s", *v, u), w)
}

// glyphs are those of a history.
func (p Page) glyphs() spark.Glyphs {
	if p.ASCII {
		return spark.ASCII
	}
	return spark.Unicode
}
