// Package vitals reads the telemetry that a node sends of itself: processors, memory,
// network, disk, GPUs.
package vitals

import (
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/smi"
)

// smiStale is the age in seconds from which nvidia-smi's last answer is not
// shown any more: it hangs. What is asked less often may be older by as much.
const smiStale = 5

// SMISilent is what metrics.Sample.GPUError says then.
const SMISilent = "nvidia-smi does not answer"

// mostCores is more than a node can have.
const mostCores = 1 << 20

// Reader turns the frames of one node's telemetry stream into samples. A
// frame is text, one fact a line:
//
//	frame <uptime seconds>
//	every <seconds from a frame to the next>
//	cores <n>
//	cpu <busy jiffies> <total jiffies>
//	mem <used KiB> <total KiB>
//	net <received bytes> <sent bytes>
//	disk <used KiB> <total KiB>
//	smi <one CSV line of nvidia-smi, see smi.Fields>
//	smierr <what nvidia-smi said instead>
//	smiage <seconds since it answered>
//	sim
//	end
//
// Whatever a node can't know is left out. Counters become rates between two
// frames, by the node's own uptime, so that no clock has to be right.
type Reader struct {
	last *frame
}

// frame is what one frame says.
type frame struct {
	sample metrics.Sample
	dated  bool // it said the uptime
	cpu    *[2]float64
	net    *[2]float64
	smiAge float64
}

// mostEvery is more than a stream's frames are ever apart, in seconds.
const mostEvery = 3600

// NewReader makes a parser for one stream.
func NewReader() *Reader { return &Reader{} }

// Frame reads one whole frame; false when it is none.
func (t *Reader) Frame(text []byte) (metrics.Sample, bool) {
	var f frame
	for line := range strings.Lines(string(text)) {
		key, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		f.fact(key, strings.TrimSpace(rest))
	}
	if !f.dated {
		return metrics.Sample{}, false
	}
	f.judgeGPUs()
	f.rates(t.last)
	t.last = &f
	return f.sample, true
}

// fact takes over one line. What is not understood is left out.
func (f *frame) fact(key, rest string) {
	s := &f.sample
	switch key {
	case "frame":
		if n := numbers(rest, 1); n != nil {
			s.Uptime, f.dated = n[0], true
		}
	case "every":
		if n := numbers(rest, 1); n != nil && n[0] <= mostEvery {
			s.Every = n[0]
		}
	case "cores":
		if n := numbers(rest, 1); n != nil && n[0] <= mostCores {
			s.Cores = int(n[0])
		}
	case "cpu":
		f.cpu = pair(rest)
	case "net":
		f.net = pair(rest)
	case "mem":
		s.MemUsed, s.MemTotal = kibibytes(rest)
	case "disk":
		s.DiskUsed, s.DiskTotal = kibibytes(rest)
	case "smi":
		f.gpu(rest)
	case "smierr":
		s.GPUError = rest
	case "smiage":
		if n := numbers(rest, 1); n != nil {
			f.smiAge = n[0]
		}
	case "sim":
		s.Simulated = true
	}
}

// gpu takes over one line of nvidia-smi's. Its errors come among its answers.
func (f *frame) gpu(line string) {
	s := &f.sample
	g, ok := smi.Parse(line)
	if !ok {
		if s.GPUError == "" {
			s.GPUError = line
		}
		return
	}
	if g.Index < 0 {
		g.Index = len(s.GPUs)
	}
	s.GPUs = append(s.GPUs, g)
}

// judgeGPUs drops readings that are too old to be shown as the present, also
// where there never were any.
func (f *frame) judgeGPUs() {
	if f.smiAge <= smiStale+f.sample.Every {
		return
	}
	f.sample.GPUs = nil
	if f.sample.GPUError == "" {
		f.sample.GPUError = SMISilent
	}
}

// rates fills in what needs two frames. A counter that fell back was reset:
// there is nothing to say until the next frame.
func (f *frame) rates(last *frame) {
	if last == nil {
		return
	}
	seconds := f.sample.Uptime - last.sample.Uptime
	if !(seconds > 0) {
		return
	}
	if a, b := last.cpu, f.cpu; a != nil && b != nil && b[1] > a[1] {
		busy := min(max((b[0]-a[0])/(b[1]-a[1])*100, 0), 100)
		f.sample.CPU = &busy
	}
	if a, b := last.net, f.net; a != nil && b != nil && b[0] >= a[0] && b[1] >= a[1] {
		rx, tx := (b[0]-a[0])/seconds, (b[1]-a[1])/seconds
		f.sample.NetRx, f.sample.NetTx = &rx, &tx
	}
}

func pair(text string) *[2]float64 {
	if n := numbers(text, 2); n != nil {
		return &[2]float64{n[0], n[1]}
	}
	return nil
}

// kibibytes reads two amounts of KiB as bytes.
func kibibytes(text string) (used, total *float64) {
	p := pair(text)
	if p == nil {
		return nil, nil
	}
	return new(p[0] * 1024), new(p[1] * 1024)
}

// largestCounter is above any counter of a node, and far below where
// differences of floating-point numbers lose their meaning.
const largestCounter = 1e18

// numbers reads at least n numbers; nil when one is missing or is nothing that
// a node can have counted.
func numbers(text string, n int) []float64 {
	words := strings.Fields(text)
	if len(words) < n {
		return nil
	}
	values := make([]float64, n)
	for i := range values {
		v, err := strconv.ParseFloat(words[i], 64)
		if err != nil || !(v >= 0 && v <= largestCounter) {
			return nil
		}
		values[i] = v
	}
	return values
}
