// Package atnode is what a run is on a machine with dlwb's agent: a replica, the
// records that a part of a job leaves on a disk, and how the environment step runs
// its commands there.
package atnode

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
)

// Run is what a run has on one node, as a replica: what dlwb's agent there
// tells of it.
type Run struct {
	Node  *remote.Node
	ID    string
	Iface string // the network interface between the nodes; empty: not known
	Files int    // the number of the first replica that sees the same files of the code
}

var _ interface {
	job.Replica
	job.Execer
	job.Dialer
	job.FileReader
	job.Teller
} = Run{}

// FilesOf is that number.
func (r Run) FilesOf() int { return r.Files }

// FollowLog follows a log of the run by byte offsets.
func (r Run) FollowLog(ctx context.Context, log string, from job.Cursor, sink func(job.Chunk) error) error {
	offset, err := from.Bytes()
	if err != nil {
		return err
	}
	return r.Node.FollowLog(ctx, r.ID, log, offset, func(off int64, p []byte) error {
		return sink(job.Chunk{From: job.Offset(off), Next: job.Offset(off + int64(len(p))), Data: p})
	}, func(from, to int64) error {
		return sink(job.Chunk{From: job.Offset(from), Next: job.Offset(to), Missing: to - from})
	})
}

// WatchStatus reads the status file of the run.
func (r Run) WatchStatus(ctx context.Context, sink func(job.Status) error, looked func(job.State)) error {
	err := r.Node.WatchRunAndLook(ctx, r.ID, 0, func(_ int64, s remote.Status) error {
		return sink(jobStatus(s))
	}, func(s remote.RunState) { looked(jobState(s)) })
	var lost *remote.LostRunError
	if errors.As(err, &lost) {
		return &job.UnrecordedError{State: jobState(lost.State), Err: err}
	}
	return err
}

// jobState is what a look at a run on a node has shown.
func jobState(s remote.RunState) job.State {
	ranks := make(map[int]job.Exit, len(s.Ranks))
	for rank, e := range s.Ranks {
		ranks[rank] = job.Exit{Code: e.Code, Signal: e.Signal, End: e.End}
	}
	return job.State{Phase: job.Phase(s.State), Why: s.Why, Begun: len(s.Statuses) > 0, Ranks: ranks, Clock: s.Clock, Uptime: s.Uptime,
		Free: s.Free, Rebooted: s.Rebooted, Full: s.Full, FullAt: s.FullAt}
}

// State looks at the run once.
func (r Run) State(ctx context.Context) (job.State, error) {
	s, err := r.Node.RunState(ctx, r.ID)
	return jobState(s), err
}

// HasAll compares with what the logs measure on the node.
func (r Run) HasAll(ctx context.Context, logs map[string]job.Cursor) (bool, error) {
	state, err := r.Node.RunState(ctx, r.ID)
	if err != nil {
		return false, err
	}
	for name, cursor := range logs {
		if have, err := cursor.Bytes(); err != nil || have < state.LogSize(name) {
			return false, err
		}
	}
	return true, nil
}

// Stop stops the run on the node.
func (r Run) Stop(ctx context.Context, grace time.Duration, why string) (int, error) {
	return r.Node.StopRun(ctx, r.ID, grace, why)
}

// reachAgain is how often a node is looked for besides what its connection
// tells: that it can't be reached may have been told before anybody listened.
const reachAgain = 3 * time.Second

// Reach tells whether the node can be reached.
func (r Run) Reach(ctx context.Context, news func(connected bool, why string)) {
	defer r.Node.OnState(news)()
	for {
		err := r.Node.Connect(ctx)
		if ctx.Err() != nil {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		news(err == nil, why)
		select {
		case <-time.After(reachAgain):
		case <-ctx.Done():
			return
		}
	}
}

// Refused reports whether the node does not let us in: that nothing is heard of it says
// nothing of it then. Last is when it was so last.
func (r Run) Refused() (now bool, last time.Time) { return r.Node.Refused() }

// Output runs a line on the node.
func (r Run) Output(ctx context.Context, line string) ([]byte, error) {
	res, err := r.Node.Exec(ctx, remote.Cmd{Line: line})
	return res.Stdout, err
}

// DialContext reaches a port of the node.
func (r Run) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return r.Node.DialContext(ctx, network, addr)
}

// Telemetry reads the telemetry of the node.
func (r Run) Telemetry(ctx context.Context, pace *job.Pace, sink func(frame []byte)) error {
	return r.Node.Telemetry(ctx, r.Iface, pace, sink)
}

// MetricFiles reads the files of metrics that the run writes on the node.
func (r Run) MetricFiles(ctx context.Context, ask job.FilesQuery, take func(job.FilesNews) error) error {
	query := wire.FilesRequest{Dirs: ask.Dirs, Mark: ".dlwb/runs/" + r.ID + "/dir", Bases: ask.Bases, Once: ask.Once}
	for _, at := range ask.Known {
		query.Known = append(query.Known, wire.FileAt(at))
	}
	return r.Node.MetricFiles(ctx, query, func(m wire.FilesNews) error {
		news := job.FilesNews{Base: (*job.FileBase)(m.Base), Data: m.Data, Pass: m.Pass, Full: m.Full}
		if m.File != nil {
			news.File = &job.FilePiece{FileAt: job.FileAt(m.File.FileAt), Length: m.File.Length, Size: m.File.Size, Path: m.File.Path}
		}
		return take(news)
	})
}
