package nodes

import (
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// cluster is so many nodes of so many GPUs, all of which told a sample.
func cluster(nodes, gpus int) Page {
	now := time.Unix(1e6, 0)
	styles := text.NewStyles(true)
	s := session.New(1, "c", now)
	var all []cloud.Node
	for i := range nodes {
		all = append(all, cloud.Node{Index: i, Name: session.NodeName(i), Addr: "10.0.0.1"})
	}
	s.Apply([]event.Event{{Time: now, Body: event.ClusterUp{Nodes: all}}})
	v := 50.0
	for i := range nodes {
		smp := metrics.Sample{CPU: &v, MemUsed: &v, MemTotal: &v, Cores: 8}
		for g := range gpus {
			smp.GPUs = append(smp.GPUs, metrics.GPU{Index: g, Util: &v, Temp: &v})
		}
		s.Apply([]event.Event{{Time: now, Body: event.Sampled{Node: i, Sample: smp}}})
	}
	return Page{Look: text.Look{Styles: &styles, Now: now}, Of: s}
}

func TestPanelsAndHeatmapFitTheirRoom(t *testing.T) {
	for _, nodes := range []int{1, 2, 4, 16, 64} {
		for _, gpus := range []int{0, 1, 4, 8} {
			p := cluster(nodes, gpus)
			for w := 46; w <= 220; w += 29 {
				for h := 1; h <= 60; h += 7 {
					fits(t, "panels", p.Panels(w, h), w, h, nodes, gpus)
					if h >= 8 { // the least body of a screen has ten rows
						fits(t, "heatmap", p.Heatmap(&Heat{}, w, h), w, h, nodes, gpus)
					}
				}
			}
		}
	}
}

func fits(t *testing.T, what string, rows []string, w, h, nodes, gpus int) {
	t.Helper()
	if len(rows) > h {
		t.Errorf("%s of %d × %d GPUs in %d × %d: %d rows", what, nodes, gpus, w, h, len(rows))
	}
	for _, r := range rows {
		if text.Wide(r) > w {
			t.Errorf("%s of %d × %d GPUs in %d × %d: a row of %d cells", what, nodes, gpus, w, h, text.Wide(r))
			return
		}
	}
}

func TestTheHeatmapGoesRoundItsQuantitiesAndStopsAtItsPaces(t *testing.T) {
	var v Heat
	for range session.Quantities {
		v.Next()
	}
	if v.shows != session.GPUUse {
		t.Errorf("it shows %d", v.shows)
	}
	v.Coarser(99)
	if got := v.paceFor(10); got != paces[len(paces)-1] {
		t.Errorf("a column is %v s", got)
	}
	v.Coarser(-99)
	if got := v.paceFor(10); got != paces[0] {
		t.Errorf("a column is %v s", got)
	}
}
