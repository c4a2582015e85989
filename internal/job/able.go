package job

import (
	"context"
	"io"
	"net"
	"os/exec"
	"time"
)

// Execer is a replica in which commands can be run.
type Execer interface {
	// Output runs a line of sh and gives what it prints on stdout, whatever it
	// exits with.
	Output(ctx context.Context, line string) ([]byte, error)
}

// Entrance is a replica in which commands can be started that are fed and read
// while they run. With one the agent gets there, and with the agent all that a
// node has: a shell, ports, telemetry. Whoever is an Entrance need be none of
// Execer, Dialer and Teller.
type Entrance interface {
	// Start starts a line of sh. Its output is read, its input written; ctx is for
	// the start alone.
	Start(ctx context.Context, line string) (Command, error)
	// Dir is the directory in which the ranks work.
	Dir() string
}

// Command is a command that runs in a replica. Close ends it here at once,
// whatever becomes of it there.
type Command interface {
	io.ReadWriteCloser
	// Said is the end of what it wrote to its error output.
	Said() string
}

// Dialer is a replica whose ports can be reached: the one thing that forwards,
// Jupyter and TensorBoard need.
type Dialer interface {
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// Visited is a replica in which nothing of dlwb's can be run, and that is let into all
// the same: by a shell on the user's terminal, and to its ports. Close ends what leads
// there.
type Visited interface {
	Dialer
	io.Closer
	// Shell begins a session and gives the program of this machine that carries it. The
	// program is not started yet, wants the terminal, and ends with ctx. end ends the
	// session, once the program has ended or could not be started.
	Shell(ctx context.Context) (program *exec.Cmd, end func(), err error)
	// Openly says who else on this machine reaches a port while it is dialed; empty:
	// nobody.
	Openly() string
}

// Refuser is a replica whose machine is reached by a login, which may be refused.
type Refuser interface {
	// Refused reports whether that is why it can't be reached now, and when it was
	// refused last; zero: never. It asks nobody.
	Refused() (now bool, last time.Time)
}

// Teller is a replica that tells of its machine: processors, memory, GPUs.
type Teller interface {
	// Telemetry hands over frames in the form that vitals.Reader reads, at the
	// pace that is asked for, until ctx ends. sink must not keep its argument.
	Telemetry(ctx context.Context, pace *Pace, sink func(frame []byte)) error
}

// FileReader is a replica whose files of metrics can be read while it runs.
type FileReader interface {
	MetricFiles(ctx context.Context, ask FilesQuery, take func(FilesNews) error) error
}

// FileTwin is a replica that may see the same files as an earlier one.
type FileTwin interface {
	// FilesOf is the number of the first replica that sees the files of this one: its
	// own where no earlier one does.
	FilesOf() int
}

// FilesQuery says which files of metrics are wanted.
type FilesQuery struct {
	Dirs  []string // below the home directory; a link to one is followed where a slash is behind it
	Known []FileAt // what was read already
	Bases bool     // tell what files held before the run
	Once  bool     // end when all that is there was told
}

// FileAt is how far a file was read. A file is known by its inode, so one that
// was renamed into place is another.
type FileAt struct {
	Inode uint64
	Next  int64  // the offset that comes next
	Sum   uint32 // of a table's header: with another one it is another table
}

// FilesNews is one of these.
type FilesNews struct {
	Base *FileBase
	File *FilePiece // its bytes follow
	Data []byte
	Pass bool // all files were looked at once
	Full bool // as much was read as is allowed
}

// FileBase is what a file held before the run.
type FileBase struct {
	Inode uint64
	Size  int64
	End   []byte // its last bytes, at most 64
}

// FilePiece is the next piece of a file: Length bytes from Next on, or fewer
// where the file became shorter meanwhile.
type FilePiece struct {
	FileAt
	Length int64
	Size   int64  // of all of the file
	Path   string // as Dirs begin it
}
