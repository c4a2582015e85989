package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// StopRun ends every process of a run on the node: TERM, the grace, then KILL
// until nothing is left. why becomes part of the run's status. It returns how
// many processes are still there: 0 is proof that none is. It may be called at
// any time and again, and goes on there when the connection is lost meanwhile.
func (n *Node) StopRun(ctx context.Context, runID string, grace time.Duration, why string) (left int, err error) {
	what := "stop run " + runID
	if err := checkRunID(runID); err != nil {
		return 0, n.wrap(what, err)
	}
	// The reason goes into a file of lines.
	words := Quote(strings.Fields(strings.ToValidUTF8(why, "?"))...)
	text := programOf(`stop=$HOME/.dlwb/bin/stop
[ -f "$stop" ] || { echo "left 0"; exit 0; }`,
		fmt.Sprintf(`exec sh "$stop" %s %d %s`, runID, max(grace, 0).Milliseconds(), words))
	res, err := n.must(ctx, what, "sh", text, max(grace, 0)+n.timing.bounds.Quiet)
	if _, scanErr := fmt.Sscanf(lastLine(string(res.Stdout)), "left %d", &left); scanErr == nil {
		return left, nil
	}
	if err == nil {
		err = n.wrap(what, errors.New("the node does not say what is left of it"))
	}
	return 0, err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
