//go:build unix

package wedge

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hello is how the first line of dlwb's agent begins, after a newline.
const hello = "\x01dlwb "

// agentOut passes on what a command says. Of an agent it knows the hello, and
// hangs in it or after it.
type agentOut struct {
	s     *Server
	c     *conn
	to    io.Writer
	said  []byte        // until the hello
	began chan struct{} // closed when the hello is passed on
	// struck is closed when the agent has met what the stage has for it: one that
	// is stopped after its hello must not answer whoever has heard that.
	struck chan struct{}
}

func (o *agentOut) isAgent() bool {
	select {
	case <-o.began:
		return true
	default:
		return false
	}
}

// helloMost is how much of what a command says is searched for a hello.
const helloMost = 64 << 10

func (o *agentOut) Write(p []byte) (int, error) {
	if o.isAgent() {
		o.s.hang(Unanswered, o.c.over)
		return o.to.Write(p)
	}
	before := len(o.said)
	if before < helloMost {
		o.said = append(o.said, p...)
	}
	at := bytes.Index(o.said, []byte(hello))
	if at < 0 || bytes.IndexByte(o.said[at:], '\n') < 0 && !o.s.at(HalfHello) {
		return o.to.Write(p)
	}
	cut := max(0, at+len(hello)-before)
	if o.s.at(HalfHello) && cut <= len(p) {
		if _, err := o.to.Write(p[:cut]); err != nil {
			return 0, err
		}
		o.s.hang(HalfHello, o.c.over)
		_, err := o.to.Write(p[cut:])
		close(o.began)
		return len(p), err
	}
	close(o.began) // first: whoever hears it may answer before Write returns
	select {
	case <-o.struck:
	case <-o.s.ended:
	}
	return o.to.Write(p)
}

// agentIn is what an agent is told.
type agentIn struct {
	out  *agentOut
	from io.Reader
}

func (i *agentIn) Read(p []byte) (int, error) {
	n, err := i.from.Read(p)
	if i.out.isAgent() {
		i.out.s.hang(Untaken, i.out.c.over)
	}
	return n, err
}

// torment stops or kills an agent that has begun.
func (s *Server) torment(group int, out *agentOut, over <-chan struct{}) {
	select {
	case <-out.began:
	case <-over:
		return
	case <-s.ended:
		return
	}
	for first := true; ; first = false {
		s.mu.Lock()
		stage, changed := s.stage, s.changed
		s.mu.Unlock()
		_ = syscall.Kill(-group, map[Stage]syscall.Signal{None: syscall.SIGCONT, Stopped: syscall.SIGSTOP, Killed: syscall.SIGKILL}[stage])
		if stage == Stopped || stage == Killed {
			untilStill(group)
		}
		if first {
			close(out.struck)
		}
		select {
		case <-changed:
		case <-over:
			return
		case <-s.ended:
			return
		}
	}
}

// stillLimit bounds how long untilStill waits: a process in the kernel's hands may
// take its signal late, and no test should hang on that.
const stillLimit = 10 * time.Second

// untilStill waits until no thread of a process group can run. Kill returns when
// the signal is queued: one thread takes it, and until that thread is scheduled the
// others go on, and may answer.
func untilStill(group int) {
	for end := time.Now().Add(stillLimit); time.Now().Before(end) && canRun(group); {
		time.Sleep(time.Millisecond)
	}
}

// canRun reports whether a thread of a process group is neither stopped nor dead.
func canRun(group int) bool {
	threads, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/stat")
	return slices.ContainsFunc(threads, func(file string) bool {
		stat, err := os.ReadFile(file)
		if err != nil {
			return false // it ended meanwhile
		}
		// The fields behind the name, which is in brackets and may hold any byte,
		// are the state, the parent and the group: proc_pid_stat(5).
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		return len(fields) > 2 && fields[2] == strconv.Itoa(group) && !strings.Contains("TtZX", fields[0])
	})
}
