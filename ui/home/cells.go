package home

import (
	"fmt"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// column is one column of the list of clusters.
type column struct {
	w    int
	cell func(p Page, c *event.ClusterInfo) string
}

// columns are those at the right, in the order in which they are given
// room: what something costs always has it.
var columns = []column{
	{10, func(_ Page, c *event.ClusterInfo) string { return units.PerHour(c.PricePerHour) }},
	{10, func(_ Page, c *event.ClusterInfo) string { return units.USD(c.Spent) }},
	{16, Page.endsCell},
	{14, func(p Page, c *event.ClusterInfo) string { return p.Styles.Dim.Of(units.Ago(p.Now, c.CreatedAt)) }},
}

const (
	phaseW = 14
	nodesW = 16 // "local, 2 nodes"
	// machinesW is what "4 × p4d.24xlarge spot, us-east-1" needs.
	machinesW = 34
)

// endsCell is when the machines of a cluster end by themselves.
func (p Page) endsCell(c *event.ClusterInfo) string {
	if c.Next == nil {
		return ""
	}
	return sign.Ends(p.Look, c.Next.At)
}

func (p Page) clusterCells(c *event.ClusterInfo, w int) string {
	left := text.Fit(sign.Phase(p.Look, c.Phase), phaseW)
	room := w - phaseW - nodesW
	if p.List.anyMachines() && room-machinesW+nodesW >= columns[0].w+columns[1].w {
		room -= machinesW - nodesW
		left += text.Fit(machinesText(c, true), machinesW)
	} else {
		left += text.Fit(machinesText(c, false), nodesW)
	}
	right := ""
	for _, col := range columns {
		if col.w > room {
			break
		}
		room -= col.w
		right += text.FlushRight(col.cell(p, c), col.w)
	}
	watcher := ""
	switch {
	case c.Owner != 0:
		watcher = fmt.Sprintf("process %d", c.Owner)
	case c.Run != "": // it is as it was when dlwb last looked
		watcher = "not watched"
	}
	if room > text.Wide(watcher) {
		left += p.Styles.Dim.Of(watcher)
	}
	return text.Spread(left, right, w)
}

// machinesText says what a cluster consists of.
func machinesText(c *event.ClusterInfo, whole bool) string {
	if c.Instance == "" || !whole {
		return text.Word(c.Provider) + ", " + text.Plural(len(c.Nodes), "node")
	}
	return text.Word(cloud.MachinesText(c.Nodes, c.Instance, c.Spot)) + ", " + text.Word(c.Region)
}

// anyMachines reports whether any cluster has machines of a type of its own.
func (h *List) anyMachines() bool {
	for i := range h.all.Clusters {
		if h.all.Clusters[i].Instance != "" {
			return true
		}
	}
	return false
}

// Title is what stands behind "dlwb" and at the right of the first row.
func (p Page) Title() (left, right string) { return p.filterSign(), p.sum() }

// sum is the line that says what all clusters cost together.
func (p Page) sum() string {
	var price, spent float64
	n := 0
	for _, c := range p.List.all.Clusters {
		if c.Phase != event.PhaseGone {
			n, price, spent = n+1, price+c.PricePerHour, spent+c.Spent
		}
	}
	if n == 0 {
		return p.Styles.Dim.Of("nothing runs")
	}
	return fmt.Sprintf("%s  %s  %s so far", text.Plural(n, "cluster"), units.PerHour(price), units.USD(spent))
}
