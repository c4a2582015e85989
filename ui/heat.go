package ui

import (
	"math"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/text"
)

// heatBack is how many samples of a node are kept for the heatmap: ten minutes
// of one a second, 77 KB for eight GPUs.
const heatBack = 600

// heatSample is what the GPUs of a node did at one moment.
type heatSample struct {
	at   time.Time
	gpus [][quantities]float32 // NaN where nvidia-smi had no answer
}

// quantity is what a heatmap shows.
type quantity int

const (
	heatUse quantity = iota
	heatMemory
	heatTemperature
	heatPower
	quantities
)

// scales say what is drawn as idle and what as full.
var scales = [quantities]struct {
	name, unit string
	lo, hi     float64
}{
	{"utilisation", "%", 0, 100},
	{"memory", "%", 0, 100},
	{"temperature", "°C", 30, 90},
	{"power", "% of its limit", 0, 100},
}

// heatView is how the heatmap is looked at.
type heatView struct {
	shows  quantity
	pace   int  // which of the paces, counted from 1; 0 is what suits the width
	detail bool // a row for each GPU, whatever room there is
	top    int
}

// heatSpan is how many seconds are at least shown until somebody says otherwise.
const heatSpan = 120

// paceFor is how many seconds a column stands for.
func (v *heatView) paceFor(columns int) float64 {
	if v.pace > 0 {
		return paces[v.pace-1]
	}
	for _, p := range paces {
		if p*float64(columns) >= heatSpan {
			return p
		}
	}
	return paces[len(paces)-1]
}

// paces are the seconds that one column stands for.
var paces = []float64{1, 2, 5, 10, 20, 30, 60}

// heatCommands are the keys of the heatmap.
func heatCommands() []command {
	return []command{
		{keys: []string{"h"}, name: "GPUs", help: "every GPU of every node over time, as a heatmap", at: inSession &^ atHeat, foot: 4, show: atNodes | atTrain, can: (*Model).noHeat, do: goer(atHeat)},
		{keys: []string{"c"}, name: "quantity", help: "utilisation, memory, temperature, power", at: atHeat, foot: 1, do: (*Model).nextQuantity},
		{keys: []string{"enter"}, name: "each GPU", help: "a row for each GPU, or all nodes on one screen again", at: atHeat, foot: 2, do: (*Model).toggleHeatDetail},
		{keys: []string{"+", "="}, name: "finer", help: "less time in one column", at: atHeat, foot: 3, do: func(m *Model) tea.Cmd { return m.heatPace(-1) }},
		{keys: []string{"-"}, name: "coarser", help: "more time in one column", at: atHeat, do: func(m *Model) tea.Cmd { return m.heatPace(1) }},
	}
}

func (m *Model) noHeat() string {
	if m.ses == nil || len(m.ses.st.nodes) == 0 {
		return "no node has answered yet"
	}
	return ""
}

func (m *Model) nextQuantity() tea.Cmd {
	m.ses.heat.shows = (m.ses.heat.shows + 1) % quantities
	return nil
}

func (m *Model) toggleHeatDetail() tea.Cmd {
	m.ses.heat.detail, m.ses.heat.top = !m.ses.heat.detail, 0
	return nil
}

func (m *Model) heatPace(d int) tea.Cmd {
	v := &m.ses.heat
	if v.pace == 0 {
		v.pace = 3
	}
	v.pace = text.Clamp(v.pace+d, 1, len(paces))
	return nil
}

// moveHeat scrolls by nodes' rows.
func (m *Model) moveHeat(d int) { m.ses.heat.top = max(m.ses.heat.top+text.Clamp(d, -1<<20, 1<<20), 0) }

// noteHeat keeps a sample for the heatmap.
func (n *nodeState) noteHeat(at time.Time, gpus []metrics.GPU) {
	s := heatSample{at: at, gpus: make([][quantities]float32, len(gpus))}
	for i, g := range gpus {
		s.gpus[i] = [quantities]float32{or(g.Util), or(ratio(g.MemUsed, g.MemTotal)), or(g.Temp), or(ratio(g.Power, g.PowerLimit))}
	}
	n.heat = append(n.heat, s)
	if len(n.heat) > 2*heatBack {
		n.heat = append([]heatSample(nil), n.heat[len(n.heat)-heatBack:]...)
	}
}

// or is a value, NaN when there is none.
func or(v *float64) float32 {
	if v == nil {
		return float32(math.NaN())
	}
	return float32(*v)
}

// heatCell is one GPU in one column.
type heatCell struct {
	value float64 // NaN when nvidia-smi had no answer
	known bool    // else nothing came for longer than a sample may be old
}

// heatmap is a node's GPUs by columns of some seconds, the newest at the right.
// A column without a sample repeats the last, as long as that is not stale.
func (n *nodeState) heatmap(q quantity, gpus, columns int, now time.Time, pace float64) [][]heatCell {
	out := make([][]heatCell, gpus)
	for g := range out {
		out[g] = make([]heatCell, columns)
	}
	at := len(n.heat)
	hold := max(staleAfter.Seconds(), pace)
	for col := columns - 1; col >= 0; col-- {
		end := now.Add(-time.Duration(float64(columns-1-col) * pace * float64(time.Second)))
		begin := end.Add(-time.Duration(pace * float64(time.Second)))
		for at > 0 && n.heat[at-1].at.After(end) {
			at--
		}
		if at == 0 {
			break
		}
		from := at
		for from > 0 && n.heat[from-1].at.After(begin) {
			from--
		}
		if from == at { // nothing in this column
			if end.Sub(n.heat[at-1].at).Seconds() > hold {
				continue
			}
			from = at - 1
		}
		for g := range out {
			out[g][col] = meanOf(n.heat[from:at], q, g)
		}
	}
	return out
}

// meanOf is what a GPU did in a few samples; one that is missing in all of
// them is not known.
func meanOf(samples []heatSample, q quantity, g int) heatCell {
	sum, n, there := 0.0, 0, false
	for i := range samples {
		if g >= len(samples[i].gpus) {
			continue
		}
		there = true
		if v := float64(samples[i].gpus[g][q]); v == v {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return heatCell{math.NaN(), there}
	}
	return heatCell{sum / float64(n), true}
}

// acrossGPUs is what several GPUs did together: their mean, known when any is.
func acrossGPUs(cells []heatCell) heatCell {
	sum, n, known := 0.0, 0, false
	for _, c := range cells {
		known = known || c.known
		if c.known && c.value == c.value {
			sum, n = sum+c.value, n+1
		}
	}
	if n == 0 {
		return heatCell{math.NaN(), known}
	}
	return heatCell{sum / float64(n), true}
}
