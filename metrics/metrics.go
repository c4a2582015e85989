// Package metrics turns bytes into series of values, GPU and host samples.
// It is pure: it reads what it is given, keeps no clock and does no I/O.
package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/metrics/smi"
)

// Point is one value of one series.
type Point struct {
	// Name is the name to show, as split/base: "loss", "val/loss", "lr".
	Name string `json:"name"`
	// Step and Epoch are what the line said of its place; nil when it said
	// nothing. Step counts within the whole run, never within an epoch.
	Step  *int64   `json:"step"`
	Epoch *float64 `json:"epoch,omitempty"`
	// Ordinal counts the points of this series in this reader from 0.
	Ordinal int64     `json:"ordinal"`
	Value   float64   `json:"value"`
	Time    time.Time `json:"time"` // when the line arrived
	// Source is the file that it was read from; empty for output.
	Source string `json:"source,omitempty"`
	// X says by what the line itself placed the value.
	X Axis `json:"-"`
}

// Place is by what a point is ordered among those of its series that are placed
// by the same axis; AxisNone where nothing places it.
func (p Point) Place() (x float64, by Axis) {
	switch {
	case p.X >= AxisInner && p.Step != nil:
		return float64(*p.Step), p.X
	case p.X == AxisEpoch && p.Epoch != nil:
		return *p.Epoch, p.X
	}
	return 0, AxisNone
}

// Progress is how far a run says it is. Zero totals mean not printed.
type Progress struct {
	Epoch  float64 `json:"epoch"`
	Epochs float64 `json:"epochs"`
	Step   int64   `json:"step"`
	Steps  int64   `json:"steps"`
	// Begun is true when the run has said of the epoch only that it begins.
	Begun bool `json:"begun,omitempty"`
}

// Share is how much of the run is done, from 0 to 1: by its steps, or by its
// epochs where it counts only those. It is false when the run has not said how
// long it will be, or is past that.
func (p Progress) Share() (float64, bool) {
	done := 0.0
	switch {
	case p.Steps > 0:
		done = float64(p.Step) / float64(p.Steps)
	case p.Epochs > 0 && p.Begun:
		done = max(p.Epoch-1, 0) / p.Epochs
	case p.Epochs > 0:
		done = p.Epoch / p.Epochs
	default:
		return 0, false
	}
	return done, done >= 0 && done <= 1
}

// GPU is one GPU at one moment.
type GPU = smi.GPU

// Sample is one node at one moment, as its telemetry stream told it. Rates
// are computed between two frames of the stream by the node's own uptime.
type Sample struct {
	Uptime float64 `json:"uptime_s"`
	// Every is how many seconds there are from one sample to the next, when
	// they are taken less often than each second; else 0.
	Every     float64  `json:"every_s,omitempty"`
	CPU       *float64 `json:"cpu"` // percent of all cores, 0–100
	Cores     int      `json:"cores"`
	MemUsed   *float64 `json:"mem_used"`   // bytes
	MemTotal  *float64 `json:"mem_total"`  // bytes
	NetRx     *float64 `json:"net_rx"`     // bytes per second
	NetTx     *float64 `json:"net_tx"`     // bytes per second
	DiskUsed  *float64 `json:"disk_used"`  // bytes, file system of the home directory
	DiskTotal *float64 `json:"disk_total"` // bytes
	GPUs      []GPU    `json:"gpus"`
	// GPUError says why there are no GPUs to show: "no GPU" where there is
	// none, else what nvidia-smi answered.
	GPUError  string `json:"gpu_error,omitempty"`
	Simulated bool   `json:"simulated,omitempty"`
}

// MarshalJSON writes a value that JSON has no number for as "nan", "inf" or
// "-inf". The time is left to the event that carries the point.
func (p Point) MarshalJSON() ([]byte, error) {
	type plain Point
	var value any = p.Value
	if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
		value = strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(p.Value, 'g', -1, 64), "+"))
	}
	return json.Marshal(struct {
		plain
		Value any       `json:"value"`
		Time  *struct{} `json:"time,omitempty"` // hides the one inside
	}{plain(p), value, nil})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Point) UnmarshalJSON(b []byte) error {
	type plain Point
	text := struct {
		*plain
		Value json.RawMessage `json:"value"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	value := strings.Trim(string(text.Value), `"`)
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("read the value %s of series %q: it is neither a number nor nan, inf or -inf", text.Value, p.Name)
	}
	p.Value = v
	return nil
}
