package ui

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/nodes"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/workbench/event"
)

// loaded is a screen of 160×48 with a million log lines, a million points and
// some nodes of eight GPUs.
func loaded(nodes int) *Model {
	m := New(context.Background(), nil, Options{Theme: "dark"})
	m.w, m.h = 160, 48
	m.openSession("charlm")
	m.path = []place{atHome, atTrain}
	st := m.ses.State
	st.Apply(event.Event{Time: m.now, Body: event.ClusterUp{Nodes: clusterOf(nodes)}})
	st.Apply(event.Event{Time: m.now, Run: "r", Body: event.RunStarted{Engine: "torchrun", WorldSize: 8 * nodes, Nodes: nodes}})
	v := 50.0
	for n := range nodes {
		smp := metrics.Sample{CPU: &v, MemUsed: &v, MemTotal: &v, Cores: 96}
		for g := range 8 {
			smp.GPUs = append(smp.GPUs, metrics.GPU{Index: g, Util: &v, MemUsed: &v, MemTotal: &v, Temp: &v, Power: &v})
		}
		for i := range 1200 {
			st.Apply(event.Event{Time: m.now.Add(time.Duration(i-1200) * time.Second), Body: event.Sampled{Node: n, Sample: smp}})
		}
	}
	for i := range int64(1_000_000) {
		at := m.now.Add(time.Duration(i) * time.Millisecond)
		st.AddPoint(metrics.Point{Name: "loss", Step: &i, Ordinal: i, Time: at, Value: 4.6/(1+float64(i)/1e5) + float64(i%97)/300})
		if i%100 == 0 {
			st.AddPoint(metrics.Point{Name: "val/loss", Step: &i, Ordinal: i, Time: at, Value: 4.7 / (1 + float64(i)/1e5)})
			st.AddPoint(metrics.Point{Name: "lr", Step: &i, Ordinal: i, Time: at, Value: 1e-3})
			st.AddPoint(metrics.Point{Name: "tokens/s", Step: &i, Ordinal: i, Time: at, Value: float64(20_000 + i%1000)})
		}
	}
	m.ses.Show(0)
	var b bytes.Buffer
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "epoch 1/6  step %7d  loss 2.123  lr 0.00300   21512 tokens/s\n", i)
		if b.Len() > 1<<20 {
			m.ses.Output(0).Log.Append(b.Bytes())
			b.Reset()
		}
	}
	m.ses.Output(0).Log.Append(b.Bytes())
	m.ses.Output(0).Off = 1
	return m
}

func clusterOf(nodes int) []cloud.Node {
	all := make([]cloud.Node, nodes)
	for i := range all {
		all[i] = cloud.Node{Index: i, Name: session.NodeName(i)}
	}
	return all
}

// BenchmarkView must stay below 5 ms.
func BenchmarkView(b *testing.B) {
	m := loaded(64)
	bench := func(name string, at place, set func()) {
		b.Run(name, func(b *testing.B) {
			m.path[1], m.charts, m.heat = at, chart.View{Of: m.ses}, nodes.Heat{}
			set()
			m.View()
			for b.Loop() {
				m.View()
			}
		})
	}
	bench("train", atTrain, func() {})
	bench("train smoothed and read", atTrain, func() { m.charts.Smooth = 5; m.readOn(-1) })
	bench("train zoomed", atTrain, func() { m.charts.Zoom(0.01) })
	bench("train by time", atTrain, func() { m.charts.Asked = session.AxisTime })
	bench("charts", atCharts, func() {})
	bench("charts smoothed and read", atCharts, func() { m.charts.Smooth = 5; m.readOn(-1) })
	bench("logs", atLogs, func() {})
	bench("GPUs", atHeat, func() {})
	bench("GPUs in full", atHeat, func() { m.heat.ToggleDetail() })
	for i := range int64(20_000) {
		m.ses.State.AddPoint(metrics.Point{Name: fmt.Sprintf("a/m%d", i%300), Step: new(i / 300), Ordinal: i / 300, Value: float64(i % 7)})
	}
	bench("charts of 300 series", atCharts, func() { m.charts.Smooth = 5; m.readOn(-1) })
}
