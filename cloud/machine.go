package cloud

import (
	"context"
	"time"

	"github.com/dlwb/dlwb/internal/job"
)

// Landing is a job provider whose jobs see the disk of a machine that the user
// can log in to: a login node. The environment is set up and the code brought
// there, as on a node; what the jobs write is read there.
type Landing interface {
	JobProvider
	// Land finds that machine for a life, and keeps what At needs.
	Land(ctx context.Context, life Life, spec Spec) (Machine, error)
	// At is the machine of a life that has landed.
	At(ctx context.Context, life Life) (Machine, error)
	Shaper
	// Enter is the command that runs one more line, as its last word, on the
	// machine of a replica of a job that runs; it is for the machine of At.
	Enter(ctx context.Context, life Life, ref string, replica int) ([]string, error)
}

// Shaper is a job provider that knows what a replica will get before there is one: so
// many ranks are laid out for it, as the plan has said.
type Shaper interface {
	// Shape is what one replica gets.
	Shape(spec Spec) Shape
}

// Shape is what a replica gets of its machine.
type Shape struct {
	GPUs, Cores int // 0 cores: not known
	// Modules are loaded before anything of the user's.
	Modules []string
}

// Machine is one that a job provider works through, with dlwb's agent on it. The
// workbench makes it of a Node.
type Machine interface {
	// Run runs a line of sh in the home directory. An exit code is no error.
	Run(ctx context.Context, line string, input []byte) (Said, error)
	// Agent is the path of a copy of dlwb's agent there, for machines with the
	// same disk; dir is where it is put, below the home.
	Agent(ctx context.Context, dir string) (string, error)
	// Hold prepares a part of a run on the disk; "agent part" begins it, on a
	// machine that has the same disk.
	Hold(ctx context.Context, p Part) error
	// Records are what a part leaves on the disk.
	Records(part string) Records
	// Reach tells whether the machine can be reached, until ctx ends.
	Reach(ctx context.Context, news func(connected bool, why string))
}

// Said is what a command said.
type Said struct {
	Code     int
	Out, Err []byte
}

// Part is what one replica does for a run.
type Part struct {
	ID   string // of the part; unique for all time
	Node string // what it calls its machine
	// Dir is the code's directory and Results a directory of the run's own, below
	// the home or absolute.
	Dir, Results string
	Procs        []JobProc
	Files        []JobFile
	Env          []string // as K=V; there may be secrets in it
	Grace        time.Duration
	LogMost      int64 // 0: as usual
	// Others are the parts of the other replicas, in their order: of the part that leads
	// them. Led is set for those, and Leads where they are ended once all has ended well
	// here. They tell each other on the disk that they share.
	Others     []string
	Led, Leads bool
	Restarts   bool // its launcher starts ranks again that have failed
}

// Records are the logs and the status of a part, as they lie on the disk. What
// they don't tell is whether anything of it is alive.
type Records interface {
	job.FileReader
	FollowLog(ctx context.Context, log string, from job.Cursor, sink func(job.Chunk) error) error
	HasAll(ctx context.Context, logs map[string]job.Cursor) (bool, error)
	// Told hands over the statuses that were written, from the first on, as they
	// come, until ctx ends.
	Told(ctx context.Context, sink func(job.Status) error) error
	// Look reads the records once.
	Look(ctx context.Context) (job.State, error)
}
