// Package keeper holds the connections to nodes in one background process for each
// state directory, so that a second command need not connect anew. The first command
// that dials a node starts it; it ends by itself when nothing was asked of it for a
// while. Commands and keeper speak over a socket that only the same user reaches, and
// only a keeper of the same build is spoken to. It lends sessions with nodes' agents
// (remote.Lent) and knows nothing else: no record, no profile, no lock is in it, and
// when it is killed the next command connects as it would without.
package keeper

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// Command is the name under which a program starts itself as the keeper.
const Command = "__keeper"

// Variable turns the keeper off, or says how long a connection is kept that nobody
// uses.
const Variable = "DLWB_KEEPER"

const (
	// keepFor is how long a connection is kept that nobody uses.
	keepFor = 5 * time.Minute
	// emptyFor is how long a keeper without connections stays.
	emptyFor = 3 * time.Second
	// messageMost bounds a question and an answer.
	messageMost = 1 << 20
)

// Setting is what the environment says: whether there is to be a keeper, and how long
// it keeps what nobody uses.
func Setting() (on bool, keep time.Duration, err error) {
	switch text := os.Getenv(Variable); text {
	case "", "on":
		return true, keepFor, nil
	case "off", "0", "no", "false":
		return false, 0, nil
	default:
		keep, err := time.ParseDuration(text)
		if err != nil || keep <= 0 {
			return false, 0, fmt.Errorf("%s=%q: it is off, on, or how long a connection is kept, such as 10m", Variable, text)
		}
		return true, keep, nil
	}
}

// The questions.
const (
	opLend   = "lend"
	opDrop   = "drop"
	opStatus = "status"
	opStop   = "stop"
	opHold   = "hold"
	opTicket = "ticket"
	opEnd    = "end"
)

// question is what a command asks: one on each connection, as a line of JSON.
type question struct {
	Build   string          `json:"build"` // who asks; empty for status and stop, which any may ask
	Op      string          `json:"op"`
	Targets []remote.Target `json:"targets,omitempty"`
	// Tunnel is what opHold asks for, and Like are the tunnels that opTicket and
	// opEnd mean.
	Tunnel *remote.TunnelWish `json:"tunnel,omitempty"`
	Like   *remote.TunnelHeld `json:"like,omitempty"`
}

// greeting is the answer that comes at once.
type greeting struct {
	Build string `json:"build"`
	PID   int    `json:"pid"`
}

// answer is the answer to the question. What follows a loan are the calls.
type answer struct {
	HostKey string   `json:"host_key,omitempty"`
	Failure *failure `json:"failure,omitempty"`
	Status  *Status  `json:"status,omitempty"`

	Tunnel *remote.TunnelHeld `json:"tunnel,omitempty"`
	Ticket string             `json:"ticket,omitempty"`
}

// tunnelNews is what follows the answer to opHold, for as long as it is listened to.
type tunnelNews struct {
	Stands remote.TunnelState `json:"stands"`
	Ended  string             `json:"ended,omitempty"`
}

// Status is what a keeper holds.
type Status struct {
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Current bool      `json:"current"` // it is of this build
	Keep    string    `json:"keep"`    // how long what nobody uses is kept
	Nodes   []Kept    `json:"nodes"`
	// Tunnels stay until they are closed, or until their cluster goes.
	Tunnels []remote.TunnelHeld `json:"tunnels"`
}

// Kept is a connection.
type Kept struct {
	Name      string    `json:"name"`
	Addr      string    `json:"addr"`
	User      string    `json:"user"`
	Since     time.Time `json:"since"`
	Users     int       `json:"users"`      // commands that use it now
	IdleSince time.Time `json:"idle_since"` // when the last one went
}

// failure is an error that goes over the socket with its type.
type failure struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Addr string `json:"addr,omitempty"`
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
	Why  string `json:"why,omitempty"`
	Next string `json:"next,omitempty"`
	Port int    `json:"port,omitempty"`
	Free int    `json:"free,omitempty"`
}

// The kinds of failures. One of another kind is found again by the command itself,
// which can ask a person.
const (
	kindHostKey     = "host key"
	kindUnreachable = "unreachable"
	kindNoAgent     = "no agent"
	kindPortTaken   = "port taken"
	kindOther       = "other"
)

// failureOf takes an error apart.
func failureOf(err error) *failure {
	var key *remote.HostKeyError
	var out *remote.UnreachableError
	var none *remote.NoAgentError
	var taken *remote.PortTakenError
	switch {
	case errors.As(err, &taken):
		return &failure{Kind: kindPortTaken, Port: taken.Port, Free: taken.Next}
	case errors.As(err, &key):
		return &failure{Kind: kindHostKey, Name: key.Name, Addr: key.Addr, Want: key.Want, Got: key.Got}
	case errors.As(err, &none):
		return &failure{Kind: kindNoAgent, Name: none.Name, Why: none.Why, Next: none.Next}
	case errors.As(err, &out):
		return &failure{Kind: kindUnreachable, Name: out.Name, Addr: out.Addr, Why: out.Err.Error()}
	}
	return &failure{Kind: kindOther, Why: err.Error()}
}

// error puts it together again; nil: the command is to see for itself.
func (f *failure) error() error {
	switch f.Kind {
	case kindHostKey:
		return &remote.HostKeyError{Name: f.Name, Addr: f.Addr, Want: f.Want, Got: f.Got}
	case kindPortTaken:
		return &remote.PortTakenError{Port: f.Port, Next: f.Free}
	case kindNoAgent:
		return &remote.NoAgentError{Name: f.Name, Why: f.Why, Next: f.Next}
	}
	return nil // by another network or proxy than the keeper's the command may get through
}

// build names the build of a program file. A file that was replaced is another one.
func build(exe string) (string, error) {
	info, err := os.Stat(exe)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", exe, info.Size(), info.ModTime().UnixNano()))
	return hex.EncodeToString(sum[:6]), nil
}

// pathMost is the longest path of a socket: sun_path has 104 bytes on macOS.
const pathMost = 100

// place is the directory of the sockets of a state directory, and what their names
// begin with. Where that is too long, they are in a directory of the user's own for
// what lasts as long as a login.
func place(state string) (dir, prefix string) {
	dir = filepath.Join(state, "keeper")
	if len(dir)+1+len("000000000000.sock") <= pathMost {
		return dir, ""
	}
	sum := sha256.Sum256([]byte(state))
	root := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(root) || len(root) > pathMost/2 {
		root = "/tmp"
	}
	return filepath.Join(root, fmt.Sprintf("dlwb-keeper-%d", os.Getuid())), hex.EncodeToString(sum[:6]) + "-"
}

// socketPath is the socket of a build.
func socketPath(state, build string) string {
	dir, prefix := place(state)
	return filepath.Join(dir, prefix+build+".sock")
}
