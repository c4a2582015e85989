package job

// Capability is something that some replicas can do and others can't.
type Capability string

// The capabilities.
const (
	Exec      Capability = "exec"      // run a command there: Execer
	Shell     Capability = "shell"     // open a shell there; where Exec is there, it is: Visited
	Dial      Capability = "dial"      // reach a port: Dialer
	Telemetry Capability = "telemetry" // what the machine does: Teller
	Files     Capability = "files"     // read and bring home what the run writes: FileReader
	Suspend   Capability = "suspend"   // stop the machine and keep its disk
)

// Lack is a capability that the replicas of a cluster do not have.
type Lack struct {
	Capability Capability `json:"capability"`
	Why        string     `json:"why"`
	Next       string     `json:"next,omitempty"` // how to get it, or what does instead
	// Shell says, where Exec is missing, that a shell is there all the same.
	Shell bool `json:"shell,omitempty"`
}

// String is the reason and the remedy in a line.
func (l Lack) String() string {
	if l.Next == "" {
		return l.Why
	}
	return l.Why + "; " + l.Next
}

// LackOf is what is said of a capability that is missing; nil: it is there.
func LackOf(lacks []Lack, c Capability) *Lack {
	for i := range lacks {
		if lacks[i].Capability == c || c == Shell && lacks[i].Capability == Exec && !lacks[i].Shell {
			return &lacks[i]
		}
	}
	return nil
}
