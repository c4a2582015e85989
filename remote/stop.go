package remote

import (
	"context"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// StopRun ends every process of a run on the node: TERM, the grace, then KILL
// until nothing is left. why becomes part of the run's status. It returns how
// many processes are still there: 0 is proof that none is. It may be called at
// any time and again, and goes on there when the connection is lost meanwhile.
func (n *Node) StopRun(ctx context.Context, runID string, grace time.Duration, why string) (left int, err error) {
	if err := checkRunID(runID); err != nil {
		return 0, n.wrap("stop run "+runID, err)
	}
	grace = max(grace, 0)
	// The reason goes into a file of lines.
	request := wire.StopRequest{RunID: runID, Grace: grace.Milliseconds(), Why: strings.ToValidUTF8(why, "?")}
	var answer wire.StopAnswer
	err = n.askFor(ctx, grace, wire.Stop, request, &answer)
	return answer.Left, err
}
