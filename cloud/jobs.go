package cloud

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/dlwb/dlwb/internal/job"
)

// JobProvider takes whole jobs instead of handing out machines with ssh. A
// cluster of it is a name under which jobs go on, one at a time; what there is to
// remove is what its jobs left. Every method may be called again after a crash
// at any point.
//
// What the services that are meant need of it: SageMaker's logs go on from a
// token of CloudWatch, a pod's from a moment and the number of lines of that
// moment that were read, Slurm's from a byte offset in a file that all nodes
// share; each is a job.Cursor. Time in a queue is a step of Await. A name that
// the service keeps unique (a training job's name, a label, a job's comment)
// holds the id of the run, so that Submit and Find know the job again.
type JobProvider interface {
	// Kind is its name in the table of cloud/providers.
	Kind() string
	// Check looks for what would make Submit fail and changes nothing.
	Check(ctx context.Context, spec Spec) Preflight
	// Steps are the names of what Submit and Await go through, in order:
	// "upload", "queue", "start". The screen shows them as they are.
	Steps() []string
	// Submit hands a job in and returns when the service has it. A second call
	// with the same run makes no second job: it gives the first. enter is called
	// where one of Steps begins. When ctx ends, what was handed in stays.
	Submit(ctx context.Context, life Life, j Job, enter func(step, text string), progress Progress) (Submitted, error)
	// Await returns when a job has begun, or is over; until then it tells where
	// it stands in the queue, and why it waits. One that ended by itself and has no
	// replica that could tell why gives a *NeverBegan. It may be called by a process
	// that did not submit the job. When ctx ends, the job stays.
	Await(ctx context.Context, life Life, ref string, enter func(step, text string), progress Progress) error
	// Find looks for the job of a run whose Submit nobody saw the end of; an
	// empty Ref says that there is none, and an error that it is not known. Where
	// what was asked for may still come, it waits for that and tells so.
	Find(ctx context.Context, life Life, run string, progress Progress) (Submitted, error)
	// Open gives the replicas of a job. It does no I/O.
	Open(life Life, ref string) []job.Replica
	// Down ends all jobs of a life, removes what they left and looks again. The
	// receipt is valid also when err is not nil.
	Down(ctx context.Context, life Life, progress Progress) (Receipt, error)
}

// StepBuild is the step of Submit in which the image of a profile's Dockerfile is made.
// It is passed through with such a profile alone.
const StepBuild = "build"

// NeverBegan is the error of Await for a job that is over and has begun nowhere: the
// run ends with it.
type NeverBegan struct{ Err error }

func (e *NeverBegan) Error() string { return e.Err.Error() }

// Unwrap gives why.
func (e *NeverBegan) Unwrap() error { return e.Err }

// NoRoom is the error of Submit for a job that its service takes later, as where a quota
// is reached: when others have ended. It was not made.
type NoRoom struct{ Err error }

func (e *NoRoom) Error() string { return e.Err.Error() }

// Unwrap gives why.
func (e *NoRoom) Unwrap() error { return e.Err }

// Unpaid is the error of Submit for a job for which limits.budget or limits.lifetime
// leave nothing, or too little. It was not made.
type Unpaid struct{ Err error }

func (e *Unpaid) Error() string { return e.Err.Error() }

// Unwrap gives why.
func (e *Unpaid) Unwrap() error { return e.Err }

// AsRefused is err, as a *NoRoom or an *Unpaid where cause is one.
func AsRefused(cause, err error) error {
	if full := new(NoRoom); errors.As(cause, &full) {
		return &NoRoom{err}
	}
	if unpaid := new(Unpaid); errors.As(cause, &unpaid) {
		return &Unpaid{err}
	}
	return err
}

// Biller is a job provider whose jobs are paid for one by one.
type Biller interface {
	JobProvider
	// Billed is what the job of a run has cost, in US dollars; where none was made,
	// nothing. Unless it is final, the job or what is kept of its machines may cost more.
	Billed(ctx context.Context, life Life, run string) (usd float64, final bool, err error)
}

// Keeper is a job provider whose service keeps what a run writes when its machines are
// gone: it comes home from there, also when the cluster is no more.
type Keeper interface {
	JobProvider
	// Bring writes what the service keeps of a job into a directory, once the job has
	// ended: what lay below Job.Keep under its own names, and what replica N had in
	// DLWB_RESULTS below "nodeN". left is what did not come, each with the reason.
	Bring(ctx context.Context, life Life, ref string, into *os.Root) (left []string, err error)
}

// CheckpointStore is a job provider whose service keeps the checkpoints of a job apart
// from its machines, while it runs.
type CheckpointStore interface {
	JobProvider
	// Checkpoints lists what is kept of those that a job has written, in no order. There
	// are none where the job was given no place for them.
	Checkpoints(ctx context.Context, life Life, ref string) ([]Checkpoint, error)
}

// Checkpoint is one that a service keeps: an object, or all below one directory.
type Checkpoint struct {
	Name    string
	Place   string // its address, such as s3://bucket/prefix/name
	Files   int
	Bytes   int64
	Written time.Time // when the service had the newest part of it
}

// Job is what a JobProvider is given to do.
type Job struct {
	Run      string // its id, unique for all time
	Trial    bool   // of a sweep: others of the same profile go on beside it
	Replicas int
	Command  []string // what every rank executes
	// Env is for every rank, as K=V. There may be secrets in it.
	Env   []string
	Ranks []JobRank
	Code  Code
	// Spec is what the profile asks of the provider.
	Spec Spec
	// Engine is what starts the ranks, and Procs are the processes that it has
	// started on each replica: a provider that starts processes of its own goes
	// by these, one whose service starts each rank by Command and Ranks. Where a
	// replica will be is known at its start alone: until then job.HostOf stands
	// for its name in Env and Argv, and job.Port for a port of replica 0 that is
	// free then.
	Engine string
	Procs  []JobProc
	// Files are those that the processes need, Ports how many ports they use from
	// job.Port on, and Leads says that replica 0 ends the others once all has ended
	// well there: where the provider has what is beside ranks (about.Traits.Serves).
	Files []JobFile
	Ports int
	Leads bool
	// Restarts says that a launcher starts ranks again that have failed: its own end
	// counts.
	Restarts bool
	// Keep are the paths below the code's directory of replica 0 that hold results.
	Keep []string
	// Dir, Results, Grace and LogMost are those of its parts; of providers that
	// are a Landing.
	Dir, Results string
	Grace        time.Duration
	LogMost      int64
}

// JobProc is a process that is started on a replica: a rank, a launcher that
// starts ranks, or a helper.
type JobProc struct {
	Replica int
	Name    string // "rank-0", or "agent" of a launcher
	Ranks   []int
	Env     []string // as K=V, before Job.Env
	Argv    []string
	Again   []string // in place of Argv where a queue starts the job once more; empty: Argv
	Log     string   // its own log
	// Helper: it serves the others and has no end of its own. It is ended when all of
	// those have ended.
	Helper bool
	// After is what must hold before it is started; nil: nothing.
	After *JobReady
}

// JobReady is a program that is run until it exits with 0, for Limit seconds at most
// or until it exits with 3; then what it said last is what is missing.
type JobReady struct {
	What  string // in words
	Argv  []string
	Limit int
}

// JobFile is a file that a replica needs beside the code, in the run's directory there.
type JobFile struct {
	Replica    int
	Name, Text string
}

// JobRank is one rank of a job. Its log is called rank-N.log.
type JobRank struct {
	Rank, Replica int
	Env           []string // as K=V, before Job.Env
}

// Code is what of a directory goes with a job. Nothing else of it may.
type Code struct {
	Dir   string
	Paths []string // of files below Dir, with slashes
	// Links are symbolic links there, with where they lead: a relative path, inside
	// Dir.
	Links map[string]string
	// Empty are the directories there in which nothing goes with the job.
	Empty []string
}

// Submitted is a job that was handed in.
type Submitted struct {
	// Ref is what Open finds it by.
	Ref string
	// Lacks are the capabilities that its replicas don't have, as this job's own
	// settings and the caller's rights have it.
	Lacks []job.Lack
	// PricePerHour is what it costs, in US dollars; Costs are the parts.
	PricePerHour float64
	Costs        []Cost
	// Stay is for how long its machines wait for another job when it has ended well, and
	// cost.
	Stay time.Duration
}
