// Package agentbin holds the agents that are part of dlwb, and the few lines of
// sh that find one on a machine or put it there. It is for whoever can have a
// command run there and can feed it bytes.
package agentbin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
)

// dist is filled by make agent.
//
//go:embed dist
var dist embed.FS

// Agent is the program for one system and processor.
type Agent struct {
	// Name is that of its file: "agent-" and the beginning of the SHA-256 of
	// its bytes.
	Name string
	Hash string // that beginning
	Gzip []byte // the program, compressed
	Size int64  // of the program
}

// Plain unpacks the program.
func (a *Agent) Plain() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(a.Gzip))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// hashShown is how many characters of the hash are in a name.
const hashShown = 24

// MissingError says that this dlwb has no agent for a machine.
type MissingError struct{ OS, Arch string }

// Supported reports whether there can be an agent for such a machine.
func (e *MissingError) Supported() bool {
	return e.OS == "linux" && (e.Arch == "amd64" || e.Arch == "arm64")
}

// Error says what to do.
func (e *MissingError) Error() string {
	if !e.Supported() {
		return fmt.Sprintf("it is a machine of %s on %s: dlwb works on machines of Linux on x86-64 and arm64", e.OS, e.Arch)
	}
	return fmt.Sprintf("this dlwb was built without its agent for %s on %s: build it with make build", e.OS, e.Arch)
}

// self is the path of a program that is an agent when its file is named so: for
// a dlwb that was built by go build alone.
var self struct {
	sync.Mutex
	path  string
	agent *Agent
}

// BringSelf says that this program is an agent, too, when it is started by the
// name of one.
func BringSelf() {
	if path, err := os.Executable(); err == nil {
		Bring(path)
	}
}

// Bring names a program of this system and processor to be used where no agent
// is part of dlwb.
func Bring(path string) {
	self.Lock()
	defer self.Unlock()
	self.path, self.agent = path, nil
}

// agents are those that were asked for, by system and processor. It is locked
// while one is read: many machines ask at the same moment.
var agents struct {
	sync.Mutex
	by map[string]*Agent
}

// For gives the agent for a machine, by the names that Go has for its system
// and processor. The error is a *MissingError.
func For(system, arch string) (*Agent, error) {
	key := system + "-" + arch
	agents.Lock()
	defer agents.Unlock()
	if a := agents.by[key]; a != nil {
		return a, nil
	}
	packed, err := dist.ReadFile("dist/agent-" + key + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return own(system, arch)
	}
	if err != nil {
		return nil, err
	}
	a, ok := summed(key)
	if a.Gzip = packed; !ok {
		if a, err = agentOf(packed); err != nil {
			return nil, err
		}
	}
	if agents.by == nil {
		agents.by = map[string]*Agent{}
	}
	agents.by[key] = a
	return a, nil
}

// summed is an agent, without its bytes, by the SHA-256 and the size that make
// agent wrote beside it: to read, unpack and hash both agents takes longer than
// most commands.
func summed(key string) (*Agent, bool) {
	text, err := dist.ReadFile("dist/agent-" + key + ".sum")
	if err != nil {
		return &Agent{}, false
	}
	var sum string
	var size int64
	if n, err := fmt.Sscan(string(text), &sum, &size); n != 2 || err != nil || len(sum) != hex.EncodedLen(sha256.Size) {
		return &Agent{}, false
	}
	_, err = fs.Stat(dist, "dist/agent-"+key+".gz")
	return named(sum, nil, size), err == nil
}

func named(sum string, packed []byte, size int64) *Agent {
	return &Agent{Name: "agent-" + sum[:hashShown], Hash: sum[:hashShown], Gzip: packed, Size: size}
}

// own is this program as an agent.
func own(system, arch string) (*Agent, error) {
	self.Lock()
	defer self.Unlock()
	if self.path == "" || system != runtime.GOOS || arch != runtime.GOARCH || runtime.GOOS != "linux" {
		return nil, &MissingError{system, arch}
	}
	if self.agent != nil {
		return self.agent, nil
	}
	plain, err := os.ReadFile(self.path)
	if err != nil {
		return nil, fmt.Errorf("read this program, to bring it to a machine: %w", err)
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := zip.Write(plain); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	self.agent, err = agentOf(packed.Bytes())
	return self.agent, err
}

// agentOf names the program by its bytes, which are what is checked where it runs.
func agentOf(packed []byte) (*Agent, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the agent: %w", err)
	}
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	if err != nil {
		return nil, fmt.Errorf("unpack the agent: %w", err)
	}
	return named(hex.EncodeToString(sum.Sum(nil)), packed, size), nil
}
