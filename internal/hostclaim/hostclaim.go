// Package hostclaim is what dlwb asks of a machine that one already has, before
// it becomes a node and when it is given back, and what the agent there answers:
// what the machine is and has, who has taken it, taking it, giving it back. It
// also knows the file that says who has a host.
package hostclaim

// Request is one question to the agent.
type Request struct {
	Do Act `cbor:"do"`
	// Cluster, Life, Owner and Since are the claim's.
	Cluster string `cbor:"cluster,omitempty"`
	Life    string `cbor:"life,omitempty"`
	Owner   string `cbor:"owner,omitempty"`
	Since   int64  `cbor:"since,omitempty"`
	// Dir is where the code is to lie; empty: in the home directory.
	Dir string `cbor:"dir,omitempty"`
	// Python is the interpreter that the profile gives; empty: none.
	Python string `cbor:"python,omitempty"`
	// Line is a line of sh that a look runs, and tells what it printed; empty: none.
	// It takes the place of a search for Python.
	Line string `cbor:"line,omitempty"`
	// Agent is the name of the agent that is asked. One that takes a host stays
	// there under it, so that it need not be brought again; empty: it does not.
	Agent string `cbor:"agent,omitempty"`
	// Meeting is a word under which the hosts of a cluster find out which of them
	// share a directory: one that takes a host leaves its Number of Among there, from
	// 0; empty: there is only one host.
	Meeting string `cbor:"meeting,omitempty"`
	Number  int    `cbor:"number,omitempty"`
	Among   int    `cbor:"among,omitempty"`
	// Keep leaves the home directory as it is when a host is given back: another host
	// has the same one, and is still to be looked at. KeepCode leaves the place of
	// the code.
	Keep     bool `cbor:"keep,omitempty"`
	KeepCode bool `cbor:"keep_code,omitempty"`
}

// Act is what is asked for.
type Act string

// The acts. Looking changes nothing.
const (
	Look   Act = "look"
	Take   Act = "claim"
	Seek   Act = "seek" // whose marks of a meeting are here
	Remove Act = "remove"
)

// Answer is what the agent answers.
type Answer struct {
	// Failed says why nothing more can be told; empty: all went well.
	Failed string `cbor:"failed,omitempty"`
	// Claim says who has the host now; of a removal, who had it.
	Claim Claim `cbor:"claim"`
	// New: this request took the host.
	New bool `cbor:"new,omitempty"`
	// Namesake: Claim is of a cluster of the same name, which has another host with this
	// home directory.
	Namesake bool `cbor:"namesake,omitempty"`
	// Files are what says so, below the home directory: without them nobody would have it.
	Files []string `cbor:"files,omitempty"`
	// Beside: another cluster came first to this home directory. The key by which this
	// one's nodes reach each other has another name then.
	Beside bool `cbor:"beside,omitempty"`
	// Homes and Codes are the numbers of the hosts of a meeting that have the same
	// home directory and the same place for the code, this one among them.
	Homes []int   `cbor:"homes,omitempty"`
	Codes []int   `cbor:"codes,omitempty"`
	Facts Facts   `cbor:"facts"`
	Left  Remains `cbor:"left"`
}

// Facts are what a host is and has.
type Facts struct {
	Now  int64  `cbor:"now"` // its clock, in seconds since 1970
	OS   string `cbor:"os"`  // with the processor: "linux/amd64"
	User string `cbor:"user"`
	Home string `cbor:"home"`
	// Machine tells a machine from its copies, and from another with the same
	// home directory on the network; Name is what it calls itself.
	Machine string `cbor:"machine"`
	Name    string `cbor:"name"`
	// Disk and Inode are the home directory's.
	Disk  string `cbor:"disk"`
	Inode uint64 `cbor:"inode"`
	// HomeRoom and DirRoom are what fits in the home directory and where the
	// profile wants its code.
	HomeRoom Room `cbor:"home_room"`
	DirRoom  Room `cbor:"dir_room"`
	// Python is the version of the first interpreter found; empty: none.
	Python string `cbor:"python"`
	// NoPython: the interpreter that the profile gives does not run.
	NoPython bool `cbor:"no_python"`
	// Said is what the line of the request printed, as much as SaidMost.
	Said []byte `cbor:"said,omitempty"`
	// Silent: nvidia-smi is there and does not answer.
	Silent bool      `cbor:"silent"`
	GPUs   []GPU     `cbor:"gpus"`
	Users  []GPUUser `cbor:"users"`
}

// SaidMost bounds Facts.Said.
const SaidMost = 64 << 10

// Room is what fits in a directory.
type Room struct {
	// Problem says why nothing can be written there, such as ReadOnly; empty:
	// something can.
	Problem string `cbor:"problem"`
	// Known: the system told the two numbers. No number of files is told by a
	// file system that has no limit: then Files is -1.
	Known bool  `cbor:"known"`
	Bytes int64 `cbor:"bytes"`
	Files int64 `cbor:"files"`
}

// GPU is one GPU of a host.
type GPU struct {
	Number int    `cbor:"number"`
	Name   string `cbor:"name"`
	UUID   string `cbor:"uuid"`
}

// GPUUser is a process on a GPU. Number is -1 when it is not known which.
type GPUUser struct {
	PID    int    `cbor:"pid"`
	User   string `cbor:"user"`
	MiB    int64  `cbor:"mib"`
	Number int    `cbor:"number"`
}

// Remains are what is still there of a life after its removal.
type Remains struct {
	// Processes is how many processes of runs still live.
	Processes int `cbor:"processes"`
	// Containers says which stay, or with Unsure why that is not known; empty: none do.
	Containers string `cbor:"containers,omitempty"`
	Unsure     bool   `cbor:"unsure,omitempty"`
	// Contained is set where it had an image, whose containers were looked for.
	Contained bool `cbor:"contained,omitempty"`
	// Places are where files are left.
	Places []Place `cbor:"places"`
	// Others are some of what is in ~/.dlwb that was there before, or is another
	// cluster's.
	Others []string `cbor:"others"`
}

// None reports whether nothing is left.
func (r Remains) None() bool {
	return r.Processes == 0 && r.Containers == "" && len(r.Places) == 0
}

// Place is a file or directory that is still there, and how many files it
// holds. Its path begins at the home directory or at the root.
type Place struct {
	Path  string `cbor:"path"`
	Files int    `cbor:"files"`
}

// The problems of a directory.
const (
	NoDirectory = "is no directory there"
	ReadOnly    = "can't be written there"
	Hangs       = "does not answer: its file system hangs"
)
