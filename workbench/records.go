package workbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/namejson"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/sweep"
	"github.com/dlwb/dlwb/workbench/told"
)

// clusterData is what the store keeps of a cluster beyond its columns.
type clusterData struct {
	// Life is the id under which the provider knows this life's resources.
	Life    string               `json:"life"`
	Cluster cloud.Cluster        `json:"cluster"`
	Envs    []environment.Result `json:"environments,omitempty"` // one per node
	GPUs    []int                `json:"gpus,omitempty"`         // one per node
	// Mended is the fault of PyTorch that was told of.
	Mended string `json:"mended,omitempty"`
}

// runData is what the store keeps of a run beyond its columns.
type runData struct {
	Ranks   []event.RankInfo `json:"ranks"`
	Nodes   int              `json:"nodes"`
	Python  string           `json:"python"`
	Stall   float64          `json:"stall_s"`
	Lost    float64          `json:"lost_s,omitempty"`
	Grace   float64          `json:"grace_s,omitempty"` // 0: follow.StopGrace
	Results []string         `json:"results"`           // below the code directory of node 0
	// OwnDir is the run's directory on each node that its ranks find in
	// DLWB_RESULTS, below the home; empty for runs of an older dlwb.
	OwnDir string `json:"own_dir,omitempty"`
	// Checkpoints is the directory of its checkpoints, below the code
	// directory; empty: not known.
	Checkpoints string `json:"checkpoints,omitempty"`
	// Again: it is started again when it fails.
	Again bool `json:"again,omitempty"`
	// S3 is where its results are kept besides, "s3://bucket/prefix"; empty: nowhere.
	S3 string `json:"s3,omitempty"`
	// Ref is where its provider has it as a job; empty: it is none, or that is not
	// known yet.
	Ref string `json:"job,omitempty"`
	// State is the directory here that keeps what survives it; empty: nothing does.
	State string `json:"state,omitempty"`
	// Key is Goal.Key.
	Key string `json:"key,omitempty"`
	// Trial is set for a trial of a sweep: it has a part of the nodes.
	Trial *sweep.Label `json:"trial,omitempty"`
	// To is where its results go here; empty: into the run's record.
	To       string                `json:"to,omitempty"`
	Forward  []string              `json:"forward,omitempty"` // opened while the run is watched
	Metrics  [][2]string           `json:"metrics,omitempty"`
	Progress event.ProgressChanged `json:"progress"`
	Pace     follow.Pace           `json:"pace,omitzero"`
	// PricePerHour is what the machines cost when it was launched.
	PricePerHour float64 `json:"price_per_hour,omitempty"`
	// RankAtFault and NodeAtFault are set when the run has ended badly.
	RankAtFault int `json:"rank"`
	NodeAtFault int `json:"node"`
	// Leads: node 0 ends the run on the others.
	Leads bool `json:"leads,omitempty"`
	// Duration is how long it took, as its end told; 0: see Took.
	Duration float64 `json:"duration_s,omitempty"`
}

// logName is the file name of a log here. On its node a launcher's log is
// called agent.log; here those of all nodes lie side by side.
func logName(rank int) string {
	if rank < 0 {
		return fmt.Sprintf("launcher-%d.log", event.LauncherLog(rank))
	}
	return fmt.Sprintf("rank-%d.log", rank)
}

func (w *Workbench) runDir(run string) string { return filepath.Join(w.dir, "runs", run) }

func (w *Workbench) logPath(run string, rank int) string {
	return filepath.Join(w.runDir(run), logName(rank))
}

// ReadLog reads what is stored of the log of a rank from a byte offset. It
// returns io.EOF at the present end, also of a log that has not begun. Ranks
// below 0 are launcher logs, see LauncherLog.
func (w *Workbench) ReadLog(run string, rank int, off int64, p []byte) (int, error) {
	f, err := os.Open(w.logPath(run, rank))
	if errors.Is(err, os.ErrNotExist) {
		return 0, io.EOF
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, off)
}

func (w *Workbench) clusterData(c store.Cluster) (clusterData, error) {
	var d clusterData
	if len(c.Data) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(c.Data, &d); err != nil {
		return d, fmt.Errorf("read the record of cluster %s: %w", c.Name, err)
	}
	return d, nil
}

func (w *Workbench) runRecord(id string) (store.Run, runData, error) {
	var d runData
	r, err := w.db.Run(id)
	if err != nil {
		return r, d, w.names().UnknownRun(id, err)
	}
	if err := json.Unmarshal(r.Data, &d); err != nil {
		return r, d, fmt.Errorf("read the record of run %s: %w", id, err)
	}
	d.State, d.To = namejson.Decode(d.State), namejson.Decode(d.To)
	return r, d, nil
}

// pastRun is a run as questions about the past need it.
func (w *Workbench) pastRun(id string) (history.Run, error) {
	r, d, err := w.runRecord(id)
	if err != nil {
		return history.Run{}, err
	}
	return history.Run{RunInfo: w.runInfo(r), Life: r.Life, Nodes: d.Nodes, Python: d.Python, PricePerHour: d.PricePerHour,
		Metrics: userMetrics(d.Metrics), Progress: d.Progress.Progress}, nil
}

// graceOf is what the ranks of a run get between TERM and KILL, as they were
// launched; 0: that is not known.
func (w *Workbench) graceOf(run string) time.Duration {
	_, d, _ := w.runRecord(run)
	return seconds(d.Grace)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (w *Workbench) runProgress(id string) event.ProgressChanged {
	_, d, _ := w.runRecord(id)
	return d.Progress
}

func (w *Workbench) putRun(r store.Run, d runData) error {
	d.State, d.To = namejson.Encode(d.State), namejson.Encode(d.To)
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	r.Data = b
	return w.db.PutRun(r)
}

// runs lists the runs of a cluster's newest life, of all clusters for an empty
// name, newest first. A run whose end was told, and that dlwb was killed before
// it could be put on record, is put on record now.
func (w *Workbench) runs(cluster string) ([]store.Run, error) {
	rows, err := w.db.Runs(cluster)
	if err != nil {
		return nil, err
	}
	for i, r := range rows {
		if r.EndedAt != nil {
			continue
		}
		if rows[i], err = w.complete(r); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// complete puts the end of a run on record if it was told.
func (w *Workbench) complete(r store.Run) (store.Run, error) {
	st, err := w.storyOf(r.ID)
	if err != nil || st.Ended == nil {
		return r, err
	}
	// Read again: what was written before the end was told is there now.
	r, data, err := w.runRecord(r.ID)
	if err != nil || r.EndedAt != nil {
		return r, err
	}
	return w.putEnd(r, data, *st.Ended, st.EndedAt)
}

// liveRun is the run of a cluster that has not ended; false when there is none.
func (w *Workbench) liveRun(cluster string) (store.Run, bool, error) {
	runs, err := w.runs(cluster)
	for _, r := range runs {
		if r.EndedAt == nil {
			return r, true, nil
		}
	}
	return store.Run{}, false, err
}

// storyOf is what was told of a run so far.
func (w *Workbench) storyOf(run string) (history.Story, error) {
	rows, err := w.db.RunEvents(run, 0, 0)
	return history.StoryOf(told.All(rows)), err
}

// runsOf are all runs of a life of a cluster.
func (w *Workbench) runsOf(c store.Cluster) ([]store.Run, error) {
	runs, err := w.runs(c.Name)
	return slices.DeleteFunc(runs, func(r store.Run) bool { return r.Life != c.ID }), err
}

// unfinishedRuns are those of which something is left to do.
func (w *Workbench) unfinishedRuns(c store.Cluster) ([]store.Run, error) {
	runs, err := w.runsOf(c)
	return slices.DeleteFunc(runs, func(r store.Run) bool {
		st, err := w.storyOf(r.ID)
		return err == nil && r.EndedAt != nil && st.Over()
	}), err
}

// unfinishedRun is the newest run of a cluster, while something of it is left
// to do: to watch it, to say how it ended, or to bring its results home.
func (w *Workbench) unfinishedRun(cluster string) (store.Run, bool, error) {
	runs, err := w.runs(cluster)
	if err != nil || len(runs) == 0 {
		return store.Run{}, false, err
	}
	if runs[0].EndedAt != nil { // an older trial of a sweep may go on
		for _, r := range runs[1:] {
			if r.EndedAt == nil && r.Life == runs[0].Life {
				return r, true, nil
			}
		}
	}
	st, err := w.storyOf(runs[0].ID)
	return runs[0], err == nil && !st.Over(), err
}
