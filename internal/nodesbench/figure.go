package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// figure is one line of the bench.
type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target string  `json:"target,omitempty"` // empty: told for the record
	OK     bool    `json:"ok"`
	// Missing says why there is no value.
	Missing string `json:"not_run,omitempty"`
}

// String is the line for people and for scripts.
func (f figure) String() string {
	target := f.Target
	if target == "" {
		target = "-"
	}
	if f.Missing != "" {
		return fmt.Sprintf("BENCH %s - - target %s not run: %s", f.Name, target, strings.Join(strings.Fields(f.Missing), " "))
	}
	return fmt.Sprintf("BENCH %s %s %s target %s %s", f.Name, number(f.Value), f.Unit, target, f.verdict())
}

func (f figure) verdict() string {
	if f.OK {
		return "ok"
	}
	return "short"
}

// number has three digits that count.
func number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// add prints a figure and keeps it for the table.
func (b *bench) add(f figure) {
	f.Name = b.group + "/" + f.Name
	b.figures = append(b.figures, f)
	if !b.options.json {
		fmt.Println(f)
		return
	}
	if line, err := json.Marshal(f); err == nil {
		fmt.Println(string(line))
	}
}

// told is a figure that no target asks for.
func (b *bench) told(name string, value float64, unit string) {
	b.add(figure{Name: name, Value: value, Unit: unit, OK: true})
}

func (b *bench) atLeast(name string, value float64, unit string, target float64) {
	b.add(figure{Name: name, Value: value, Unit: unit, Target: "≥" + short(target), OK: value >= target})
}

func (b *bench) atMost(name string, value float64, unit string, target float64) {
	b.add(figure{Name: name, Value: value, Unit: unit, Target: "≤" + short(target), OK: value <= target})
}

func (b *bench) missed(name, why string) { b.add(figure{Name: name, Missing: why}) }

func short(target float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", target), "0"), ".")
}
