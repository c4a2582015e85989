package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A command over an open connection costs two round trips, one for the session
// and one for the command, and on the node a process of sshd, the user's shell
// with its startup files, and sh. So a node that was just used keeps one sh
// started that waits for a line: the next command is one round trip and no new
// process. A node that got a single command keeps none: that was all. Where
// there is none, or it is not sure to be alive, all goes as ever.

const (
	// waitingAfter is how long a node rests before a shell is started: what
	// follows at once is not held up by it.
	waitingAfter = 200 * time.Millisecond
	// waitingFor is how long a shell that nobody needed stays.
	waitingFor = 5 * time.Minute
	// waitingMost bounds a line: sh reads it byte by byte.
	waitingMost = 8 << 10
	// waitingSlots stay free besides, for what must not wait.
	waitingSlots = 4
	// freshFor is how long after its last byte a connection is held to be
	// alive, beyond the time between two keepalives.
	freshFor = time.Second
)

// waitingScript reads the number of lines of a command and then these, tells
// its process id as every command does, and becomes the command. Without all
// of the lines nothing runs.
const waitingScript = `IFS= read -r dlwb_n || exit 0; dlwb_c=
while [ "$dlwb_n" -gt 0 ]; do IFS= read -r dlwb_l || exit 0; dlwb_c="$dlwb_c$dlwb_l
"; dlwb_n=$((dlwb_n-1)); done
printf "\001dlwb %d\n" $$
eval "unset dlwb_n dlwb_l dlwb_c
$dlwb_c"`

// waiting is a session on which sh waits for a command.
type waiting struct {
	s     *session
	stdin io.WriteCloser
	lead  *leader
	errs  *later
	ended chan struct{}
	err   error // how the session ended; valid after ended
	taken bool  // guarded by Node.mu
}

// later keeps the little that is written before anybody wants it.
type later struct {
	mu  sync.Mutex
	to  io.Writer
	buf bytes.Buffer
}

func (l *later) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		return l.to.Write(p)
	}
	if keep := min(len(p), remarksMost-l.buf.Len()); keep > 0 {
		l.buf.Write(p[:keep])
	}
	return len(p), nil
}

func (l *later) aim(to io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	_, _ = to.Write(l.buf.Bytes())
}

// fresh reports whether a link was heard so lately that it can be trusted with
// a command whose loss could not be told from its success.
func (l *link) fresh(t timing) bool {
	h, ok := l.conn.(*heard)
	return ok && time.Duration(time.Now().UnixNano()-h.at.Load()).Abs() < t.keepaliveEvery+freshFor
}

// waitAgain has a shell started when the node has rested for a while.
func (n *Node) waitAgain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used = time.Now()
	n.commands++
	if n.closed || n.commands < 2 || n.waitingTask || n.waiting != nil {
		return
	}
	n.waitingTask = true
	n.tasks.Go(func() {
		defer func() {
			n.mu.Lock()
			n.waitingTask = false
			n.mu.Unlock()
		}()
		if n.rested() {
			n.startWaiting()
		}
	})
}

// rested waits until nothing was run for waitingAfter; false: the node is closed.
func (n *Node) rested() bool {
	for {
		n.mu.Lock()
		left := waitingAfter - time.Since(n.used)
		n.mu.Unlock()
		if left <= 0 {
			return n.ctx.Err() == nil
		}
		select {
		case <-time.After(left):
		case <-n.ctx.Done():
			return false
		}
	}
}

// startWaiting starts a shell on a link with slots to spare. A server that
// allows few sessions gets none.
func (n *Node) startWaiting() {
	n.mu.Lock()
	var l *link
	for _, have := range n.links {
		if have.limit == sessionsPerLink && have.sessions+waitingSlots < have.limit {
			l = have
			l.sessions++
			break
		}
	}
	n.mu.Unlock()
	if l == nil {
		return
	}
	s, err := n.openSession(n.ctx, l, false)
	if err != nil {
		n.withoutWaiting(l)
		return
	}
	w := &waiting{s: s, lead: &leader{}, errs: &later{}, ended: make(chan struct{})}
	s.Streams(nil, w.lead, w.errs)
	if w.stdin, err = s.StdinPipe(); err == nil {
		err = s.Start(n.ctx, "exec sh -c "+Quote(waitingScript))
	}
	if err != nil {
		s.free()
		return
	}
	n.mu.Lock()
	n.waiting = w
	needed := n.queue > 0
	n.mu.Unlock()
	n.tasks.Go(func() { n.mind(w) })
	if needed { // somebody has been waiting for the slot meanwhile
		n.dismiss(w)
	}
}

// withoutWaiting leaves a link alone whose server allows few sessions.
func (n *Node) withoutWaiting(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.limit = min(l.limit, sessionsPerLink-1)
}

// mind waits for the end of a shell, and ends one that nobody needed.
func (n *Node) mind(w *waiting) {
	unused := time.AfterFunc(waitingFor, func() { n.dismiss(w) })
	w.err = w.s.Wait(context.Background())
	unused.Stop()
	n.mu.Lock()
	if n.waiting == w {
		n.waiting = nil
	}
	n.mu.Unlock()
	w.s.free()
	close(w.ended)
}

// dismiss ends a shell that waits, unless it has got its command; nil is none.
func (n *Node) dismiss(w *waiting) {
	n.mu.Lock()
	mine := w != nil && n.waiting == w && !w.taken
	if mine {
		n.waiting = nil
	}
	n.mu.Unlock()
	if mine {
		w.s.free()
	}
}

// makeRoom ends a shell that waits on a link; false: there is none.
func (n *Node) makeRoom(l *link) bool {
	n.mu.Lock()
	w := n.waiting
	n.mu.Unlock()
	if w == nil || w.s.link != l {
		return false
	}
	n.dismiss(w)
	<-w.ended
	n.withoutWaiting(l)
	return true
}

// takeWaiting gives the shell that waits to a command, if it is fit for it.
func (n *Node) takeWaiting(c Cmd) *waiting {
	if _, plain := c.Stdin.(*strings.Reader); c.Stdin != nil && !plain || len(c.Line) > waitingMost {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.waiting
	if w == nil || n.closed || !w.s.link.fresh(n.timing) {
		return nil
	}
	n.waiting, w.taken = nil, true
	return w
}

// give hands the command over. An error is the connection's, which Wait tells
// better; or the command did not want all of its input.
func (w *waiting) give(c Cmd) {
	_, err := fmt.Fprintf(w.stdin, "%d\n%s\n", 1+strings.Count(c.Line, "\n"), c.Line)
	if err == nil && c.Stdin != nil {
		_, _ = io.Copy(w.stdin, c.Stdin)
	}
	_ = w.stdin.Close()
}

// execWaiting runs a command by a shell that waits. ran is false when the shell
// ended before it had the whole command.
func (n *Node) execWaiting(ctx context.Context, w *waiting, c Cmd) (res Result, ran bool, err error) {
	what := fmt.Sprintf("run %q", brief(c.Line))
	outs := outputsOf(c)
	w.lead.aim(outs.stdout)
	w.errs.aim(outs.stderr)
	given := make(chan struct{})
	go func() {
		defer close(given)
		w.give(c)
	}()
	if why := n.await(ctx, c, w.s, w.lead, outs, w.ended); why != nil {
		outs.shut()
		return Result{ExitCode: -1}, true, n.wrap(what, why)
	}
	if w.lead.process() == 0 && !isLost(w.err) {
		<-given // the session is closed: nothing blocks
		return Result{}, false, nil
	}
	res, err = n.outcome(what, w.s.link, outs, true, w.err)
	return res, true, err
}
