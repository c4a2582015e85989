package session

import (
	"math"
	"time"

	"github.com/dlwb/dlwb/metrics"
)

// samplesKept is how many samples of a node are kept for the heatmap: ten minutes
// of one a second, 77 KB for eight GPUs.
const samplesKept = 600

// gpuSample is what the GPUs of a node did at one moment.
type gpuSample struct {
	at   time.Time
	gpus [][Quantities]float32 // NaN where nvidia-smi had no answer
}

// Quantity is what a heatmap shows.
type Quantity int

// What a heatmap can show. Quantities is how many there are.
const (
	GPUUse Quantity = iota
	GPUMemory
	GPUTemperature
	GPUPower
	Quantities
)

// noteHeat keeps a sample for the heatmap.
func (n *Node) noteHeat(at time.Time, gpus []metrics.GPU) {
	s := gpuSample{at: at, gpus: make([][Quantities]float32, len(gpus))}
	for i, g := range gpus {
		s.gpus[i] = [Quantities]float32{or(g.Util), or(Percent(g.MemUsed, g.MemTotal)), or(g.Temp), or(Percent(g.Power, g.PowerLimit))}
	}
	n.heat = append(n.heat, s)
	if len(n.heat) > 2*samplesKept {
		n.heat = append([]gpuSample(nil), n.heat[len(n.heat)-samplesKept:]...)
	}
}

// or is a value, NaN when there is none.
func or(v *float64) float32 {
	if v == nil {
		return float32(math.NaN())
	}
	return float32(*v)
}

// Cell is one GPU in one column.
type Cell struct {
	Value float64 // NaN when nvidia-smi had no answer
	Known bool    // else nothing came for longer than a sample may be old
}

// Heatmap is a node's GPUs by columns of some seconds, the newest at the right.
// A column without a sample repeats the last, as long as that is not stale.
func (n *Node) Heatmap(q Quantity, gpus, columns int, now time.Time, pace float64) [][]Cell {
	out := make([][]Cell, gpus)
	for g := range out {
		out[g] = make([]Cell, columns)
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
func meanOf(samples []gpuSample, q Quantity, g int) Cell {
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
		return Cell{math.NaN(), there}
	}
	return Cell{sum / float64(n), true}
}

// Mean is what several GPUs did together: their mean, known when any is.
func Mean(cells []Cell) Cell {
	sum, n, known := 0.0, 0, false
	for _, c := range cells {
		known = known || c.Known
		if c.Known && c.Value == c.Value {
			sum, n = sum+c.Value, n+1
		}
	}
	if n == 0 {
		return Cell{math.NaN(), known}
	}
	return Cell{sum / float64(n), true}
}

// WithoutGPUs reports whether the newest sample of a node has no GPU.
func (n *Node) WithoutGPUs() bool {
	return len(n.heat) > 0 && len(n.heat[len(n.heat)-1].gpus) == 0
}
