package atnode

import (
	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// Visits are the nodes of a cluster whose replicas are only visited: shells and ports, and
// no command of dlwb's. None: they are no such.
func Visits(made cloud.Cluster, replicas []job.Replica) (nodes []*remote.Node) {
	for i, r := range replicas {
		v, can := r.(job.Visited)
		if !can || i >= len(made.Nodes) {
			return nil
		}
		why := &event.Fault{What: "run a command", Node: i, Why: "nothing can be run there"}
		if lack := job.LackOf(made.Lacks, job.Exec); lack != nil {
			why.Why, why.Next = lack.Why, lack.Next
		}
		nodes = append(nodes, remote.OpenVisit(made.Nodes[i].Name, remote.Visit{Dial: v.DialContext, Shell: v.Shell, Why: why, Note: v.Openly(), Close: v.Close}))
	}
	return nodes
}
