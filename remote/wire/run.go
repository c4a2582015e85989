package wire

// The services of a run: each is one request and one answer.
const (
	Launch = "launch" // LaunchRequest, LaunchAnswer
	Stop   = "stop"   // StopRequest, StopAnswer
	State  = "state"  // StateRequest, StateAnswer
)

// LaunchRequest is what one node does for a run. Words and values of variables
// are bytes: they need not be text.
type LaunchRequest struct {
	RunID string `cbor:"id"`
	Node  string `cbor:"node"`
	// Dir is the code's directory, absolute or relative to the home.
	Dir string `cbor:"dir"`
	// Results is made before the start; empty: none.
	Results  string       `cbor:"results,omitempty"`
	Procs    []LaunchProc `cbor:"procs"`
	Env      [][]byte     `cbor:"env,omitempty"`
	OnNotice [][]byte     `cbor:"notice,omitempty"`
	Peers    []LaunchPeer `cbor:"peers,omitempty"`
	// Grace and Patience are in milliseconds.
	Grace    int64 `cbor:"grace"`
	Patience int64 `cbor:"patience"`
	Segment  int64 `cbor:"segment"`
	Keep     int64 `cbor:"keep"`
	// Hold: the run is only prepared; "agent part" begins it, on a machine that
	// has the same disk.
	Hold bool `cbor:"hold,omitempty"`
	// Files are written into the run's directory before the start.
	Files []LaunchFile `cbor:"files,omitempty"`
	// Restarts: a launcher starts ranks again that have failed, and only its own
	// end is one of the run.
	Restarts bool `cbor:"restarts,omitempty"`
	// Leads: when all has ended well here, the peers are told to end what they
	// still have.
	Leads bool `cbor:"leads,omitempty"`
	// Beside are the ids of the other parts of a run that is Held, on the same disk, in
	// the order of their nodes: of the part that leads them. Led is set for those.
	Beside []string `cbor:"beside,omitempty"`
	Led    bool     `cbor:"led,omitempty"`
	// Called is the name of the run for its processes, where nodes with one home
	// directory each have it under a name of their own; empty: RunID.
	Called string `cbor:"called,omitempty"`
}

// LaunchFile is a file that a run needs.
type LaunchFile struct {
	Name string `cbor:"name"`
	Text []byte `cbor:"text"`
}

// LaunchProc is a process of a launch.
type LaunchProc struct {
	Name string   `cbor:"name"`
	Log  string   `cbor:"log"`
	Env  [][]byte `cbor:"env,omitempty"`
	// A word that begins with ~/.dlwb/ means that place in the node's home.
	Argv [][]byte `cbor:"argv"`
	// Again is in its place when a scheduler starts the job once more.
	Again [][]byte `cbor:"again,omitempty"`
	// Helper: it serves the others, and is ended when all of those have ended.
	Helper bool `cbor:"helper,omitempty"`
	// After is what must hold before it is started.
	After *LaunchReady `cbor:"after,omitempty"`
}

// LaunchReady is a program that is run until it exits with 0, for Limit seconds
// at most or until it exits with 3; then what it said last is what is missing.
type LaunchReady struct {
	What  string   `cbor:"what"`
	Argv  [][]byte `cbor:"argv"`
	Limit int64    `cbor:"limit"`
}

// LaunchPeer is a node that is told when a process fails.
type LaunchPeer struct {
	Name string `cbor:"name"`
	Host string `cbor:"host"`
	Port int    `cbor:"port"`
	User string `cbor:"user"`
	// Run is the id of the run there; empty: the same as here.
	Run string `cbor:"run,omitempty"`
}

// LaunchAnswer says that the run is supervised.
type LaunchAnswer struct{}

// StopRequest asks for the end of every process of a run. Grace is in
// milliseconds; below 0: the run's own.
type StopRequest struct {
	RunID string `cbor:"id"`
	Grace int64  `cbor:"grace"`
	Why   string `cbor:"why"`
}

// StopAnswer tells how many processes are still there.
type StopAnswer struct {
	Left int `cbor:"left"`
}

// StateRequest asks for one look at a run.
type StateRequest struct {
	RunID string `cbor:"id"`
}

// StateAnswer is what it shows. Records and the status are as they lie on the
// disk.
type StateAnswer struct {
	State    string            `cbor:"state"` // running, ended, unknown, absent
	Why      string            `cbor:"why,omitempty"`
	Now      string            `cbor:"now"` // UNIX_SECONDS[+UPTIME in hundredths]
	Rebooted bool              `cbor:"rebooted,omitempty"`
	Free     int64             `cbor:"free"`           // bytes of the disk
	Full     string            `cbor:"full,omitempty"` // UNIX UPTIME LOG WHY
	Exits    map[string]string `cbor:"exits"`          // exit and rank-N.exit
	Logs     []StateLog        `cbor:"logs"`
	// Status is the file's end, StatusSize how long the file is.
	Status     []byte `cbor:"status"`
	StatusSize int64  `cbor:"size"`
	// Members are the run's live processes; they are counted where it has no
	// supervisor.
	Members int `cbor:"members"`
}

// StateLog is a log: all that was ever written to it, and the first byte that is
// still there.
type StateLog struct {
	Name  string `cbor:"name"`
	Size  int64  `cbor:"size"`
	First int64  `cbor:"first"`
}

// StatusMost bounds how much of a status file travels.
const StatusMost = 512 << 10
