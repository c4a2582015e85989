package wire

// Exec runs a command. The request is an ExecRequest; the caller then sends
// ExecInput, the agent ExecOutput, of which the last has an Exit.
const Exec = "exec"

// ExecRequest is a command line of POSIX sh, in the user's home and with the
// environment of the user's login.
type ExecRequest struct {
	Line  string `cbor:"l"` // with a terminal empty: the login shell
	Pty   *Pty   `cbor:"p,omitempty"`
	Input bool   `cbor:"i,omitempty"` // there is input; else it is empty
}

// Pty is a terminal.
type Pty struct {
	Term          string `cbor:"t"`
	Width, Height int    // in cells
}

// ExecInput is what a command gets.
type ExecInput struct {
	Data   []byte `cbor:"d,omitempty"`
	End    bool   `cbor:"e,omitempty"` // of the input
	Signal int    `cbor:"s,omitempty"` // to the command and what it started
	Width  int    `cbor:"w,omitempty"`
	Height int    `cbor:"h,omitempty"`
}

// ExecOutput is what a command gives.
type ExecOutput struct {
	Out  []byte `cbor:"o,omitempty"`
	Err  []byte `cbor:"e,omitempty"`
	Exit *Exit  `cbor:"x,omitempty"`
}

// Exit is how a process ended.
type Exit struct {
	Code   int `cbor:"c"` // 128+n after signal n
	Signal int `cbor:"s,omitempty"`
}
