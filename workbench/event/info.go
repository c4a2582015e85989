package event

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// Bound is what ends machines by itself next.
type Bound struct {
	At   time.Time `json:"at"`
	Why  string    `json:"bound"` // "lifetime", "idle", …
	Node int       `json:"node"`  // the one it ends, where the others go on; -1 for all
}

// SizeText is how many files there are and how large they are together.
func SizeText(files int, bytes int64) string {
	return units.Count(files, "file") + ", " + units.Bytes(bytes)
}

// What is known of a node, see NodeChanged.
const (
	Unknown = cloud.Unknown
	Alive   = cloud.Alive
	Gone    = cloud.Gone
)

// LauncherLog is the number under which the log of the launcher itself (such
// as torchrun's agent) on a node is read; ranks have the numbers from 0. It is
// its own inverse.
func LauncherLog(node int) int { return -1 - node }

// Phase is where a cluster is in its life.
type Phase string

// The phases of a cluster.
const (
	PhaseStarting   Phase = "starting" // machines, environment or code under way
	PhaseReady      Phase = "ready"    // nodes are there, nothing runs
	PhaseRunning    Phase = "running"  // a run is going on
	PhaseStopping   Phase = "stopping" // teardown under way
	PhaseStopped    Phase = "stopped"  // the machines are off, their disks are kept
	PhaseEnded      Phase = "ended"    // every machine is proven gone, and it was not torn down
	PhaseUnresolved Phase = "unresolved"
	PhaseGone       Phase = "gone"
)

// ClusterInfo is a cluster as lists show it.
type ClusterInfo struct {
	Name         string        `json:"name"`
	Provider     string        `json:"provider"`
	Phase        Phase         `json:"phase"`
	Profile      string        `json:"profile"`
	ProfilePath  string        `json:"profile_path,omitempty"`
	Nodes        []cloud.Node  `json:"nodes"`
	States       []cloud.State `json:"states"` // as last seen, one per node
	Run          string        `json:"run,omitempty"`
	CreatedAt    time.Time     `json:"created_at"`
	PricePerHour float64       `json:"price_per_hour"`
	Spent        float64       `json:"spent"` // US dollars so far
	// Lived is for how long there have been machines, in seconds.
	Lived    float64      `json:"lived_s"`
	Region   string       `json:"region,omitempty"`
	Instance string       `json:"instance_type,omitempty"`
	Spot     bool         `json:"spot,omitempty"`
	Costs    []cloud.Cost `json:"costs,omitempty"`
	// Ends is when the machines end by themselves at the latest.
	Ends time.Time `json:"ends,omitzero"`
	// Next is what ends them first: the lifetime, or another bound of a lease.
	Next *Bound `json:"next_end,omitempty"`
	// Checkpoint is the newest whole one of the run that is home or kept by its
	// service; nil: none is.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Owner is the process that watches or changes the cluster now; 0 for none.
	Owner int `json:"owner_pid,omitempty"`
}

// Checkpoint is the newest whole checkpoint of a run that is safe from the end of its
// machines.
type Checkpoint struct {
	Run     string    `json:"run"`
	Name    string    `json:"name"`
	Node    int       `json:"node"`
	Written time.Time `json:"written"`
	Age     float64   `json:"age_s"` // when it was asked for
}

// At is a checkpoint with its age at a moment; nil where there is none of that run.
func (c Checkpoint) At(now time.Time, run string) *Checkpoint {
	if c.Name == "" || c.Run != run {
		return nil
	}
	c.Age = max(0, now.Sub(c.Written).Seconds())
	return &c
}

// Apply takes in what is told of checkpoints. A run begins with none.
func (c *Checkpoint) Apply(e Event) {
	b, is := e.Body.(CheckpointSaved)
	if !is {
		return
	}
	if b.Written.IsZero() { // told by an older dlwb
		b.Written = e.Time
	}
	if e.Run != c.Run || !b.Written.Before(c.Written) {
		*c = Checkpoint{Run: e.Run, Name: b.Name, Node: b.Node, Written: b.Written}
	}
}

// RunInfo is a run as lists show it.
type RunInfo struct {
	ID        string     `json:"id"`
	Cluster   string     `json:"cluster"`
	Profile   string     `json:"profile"`
	Engine    string     `json:"engine"`
	Command   string     `json:"command"`
	WorldSize int        `json:"world_size"`
	Ranks     []RankInfo `json:"ranks,omitempty"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"` // nil while it runs
	// Duration is how long it took in seconds, until now while it runs.
	Duration float64 `json:"duration_s"`
	ExitCode *int    `json:"exit_code"`
	Verdict  Verdict `json:"verdict,omitempty"`
	Cause    string  `json:"cause,omitempty"`
	Dir      string  `json:"dir"` // where its record is kept: logs, results
	// LastLoss is the newest value of the run's first loss series; nil when
	// there is none.
	LastLoss *float64 `json:"last_loss"`
	// Cost is what its machines cost while it ran, in US dollars.
	Cost float64 `json:"cost"`
	// Note and Starred are the user's.
	Note    string `json:"note,omitempty"`
	Starred bool   `json:"starred,omitempty"`
}

// MarshalJSON writes a loss that JSON has no number for as metrics.Point does:
// as "nan", "inf" or "-inf". A run that diverged must not break the list.
func (r RunInfo) MarshalJSON() ([]byte, error) {
	type plain RunInfo
	if r.LastLoss == nil || !math.IsNaN(*r.LastLoss) && !math.IsInf(*r.LastLoss, 0) {
		return json.Marshal(plain(r))
	}
	text := strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(*r.LastLoss, 'g', -1, 64), "+"))
	return json.Marshal(struct {
		plain
		LastLoss string `json:"last_loss"`
	}{plain(r), text})
}

// ProfileInfo is a profile as the home screen shows it.
type ProfileInfo struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"`
	Provider string    `json:"provider"`
	UsedAt   time.Time `json:"used_at"`
	// Fault is set when the file can't be read or has errors.
	Fault string `json:"fault,omitempty"`
}

// Home is everything that exists: what the first screen and `dlwb ls` show.
type Home struct {
	Profiles []ProfileInfo `json:"profiles"`
	Clusters []ClusterInfo `json:"clusters"` // not yet gone, running first
	Runs     []RunInfo     `json:"runs"`     // newest first
}

// Took is how long a run took, or has taken by a moment.
func (r RunInfo) Took(now time.Time) time.Duration {
	return Took(r.StartedAt, r.EndedAt, r.Duration, now)
}

// Took is the one rule for how long a run took. What its end told holds, in
// seconds: nodes measure it by their uptime, without the time that the launch
// took and that nobody looked. Only where the end told none, the clock of this
// machine says it; of a run that goes on (ended is nil) always.
func Took(began time.Time, ended *time.Time, told float64, now time.Time) time.Duration {
	switch {
	case ended == nil:
		return max(now.Sub(began), 0)
	case told > 0:
		return time.Duration(told * float64(time.Second))
	}
	return max(ended.Sub(began), 0)
}

// RunResults says where the results of a run are, and what would go with its
// machines. It is read from the record and asks no node.
type RunResults struct {
	Run   string `json:"run"`
	Dir   string `json:"dir"`   // where they are here
	Files int    `json:"files"` // that are home
	Bytes int64  `json:"bytes"`
	// Home is set when all that the run wrote came home after its end.
	Home bool `json:"home"`
	// Lost says what is gone for ever; empty: nothing that is known of.
	Lost string `json:"lost,omitempty"`
	// AtStake is what would be lost with the machines, as a sentence; empty:
	// nothing.
	AtStake string `json:"at_stake,omitempty"`
}

// Closed is the news that a tunnel is closed.
func (f ForwardOpened) Closed(why string) ForwardClosed {
	return ForwardClosed{Kind: f.Kind, Name: f.Name, LocalPort: f.LocalPort, RemotePort: f.RemotePort, Why: why}
}
