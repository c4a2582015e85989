package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshd delivers no signals to root's commands ("requires privilege
// separation") nor to forced ones. So each command says its process id first,
// and a second session can end it. That id leads a session and a process group
// of its own, which sshd makes for each command.

// leaderMark comes before the process id.
const leaderMark = "\x01dlwb "

// leaderMost is what is read at most in search of the mark: a login shell's
// startup files may print something before it.
const leaderMost = 64 << 10

// killLimit bounds the session that ends another session's command.
const killLimit = 2 * time.Second

// led makes a command line say its process id first. It also makes it a line
// of sh, whatever the user's login shell is.
func led(line string) string {
	return "exec sh -c " + Quote(`printf "\001dlwb %d\n" $$; `+line)
}

// leader takes a command's process id out of its output. What came before is
// not the command's, and is dropped.
type leader struct {
	to   io.Writer
	mu   sync.Mutex
	buf  []byte
	done bool
	pid  int // 0: not known
}

func (l *leader) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return l.to.Write(p)
	}
	l.buf = append(l.buf, p...)
	if l.to == nil { // a shell that waits
		l.buf = l.buf[max(0, len(l.buf)-leaderMost):]
		return len(p), nil
	}
	if rest, ok := l.findLocked(); ok {
		return len(p), l.passLocked(rest)
	}
	if len(l.buf) > leaderMost {
		return len(p), l.passLocked(l.buf)
	}
	return len(p), nil
}

// aim says where the output goes, before any of it is the command's.
func (l *leader) aim(to io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	if rest, ok := l.findLocked(); ok { // a node that lies
		_ = l.passLocked(rest)
	}
}

func (l *leader) findLocked() (rest []byte, ok bool) {
	_, after, ok := bytes.Cut(l.buf, []byte(leaderMark))
	if !ok {
		return nil, false
	}
	digits, rest, ok := bytes.Cut(after, []byte("\n"))
	if !ok {
		return nil, false
	}
	l.pid, _ = strconv.Atoi(string(digits))
	return rest, true
}

func (l *leader) passLocked(p []byte) error {
	l.done, l.buf = true, nil
	if len(p) == 0 {
		return nil
	}
	_, err := l.to.Write(p)
	return err
}

// flush passes on what came where no mark did.
func (l *leader) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		_ = l.passLocked(l.buf)
	}
}

// begun reports whether the command has said its process id, or something.
func (l *leader) begun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done || l.pid != 0
}

func (l *leader) process() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pid
}

// windDown ends a command that nobody waits for any more. Each step may block
// on a dead link, until the keepalive closes that.
func (n *Node) windDown(s *session, l *leader, ended <-chan struct{}) {
	for _, step := range []struct {
		signal ssh.Signal
		grace  time.Duration
	}{{ssh.SIGTERM, termGrace}, {ssh.SIGKILL, killGrace}} {
		s.Signal(step.signal)
		go n.kill(l.process(), step.signal)
		select {
		case <-ended:
			return
		case <-time.After(step.grace):
		}
	}
	s.free()
}

// kill sends a signal to a command's process group.
func (n *Node) kill(pid int, signal ssh.Signal) {
	if pid <= 1 {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, killLimit)
	defer cancel()
	s, err := n.session(ctx, false)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, s.free)()
	if s.Start(ctx, "exec sh -c "+Quote(fmt.Sprintf("kill -s %[1]s -- -%[2]d || kill -s %[1]s %[2]d", signal, pid))) == nil {
		_ = s.Wait(ctx)
	}
	s.free()
}
