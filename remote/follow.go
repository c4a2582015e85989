package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// followCheck is how often the node is told what has been delivered, so that
// it can tell when the file has become shorter than that.
const followCheck = 2 * time.Second

// exitShrunk is the exit code for a file shorter than what was read of it:
// what a shell says of a command that SIGALRM ended.
const exitShrunk = 142

// exitDropped is the exit code for a log whose next bytes are not on the node
// any more.
const exitDropped = 79

// followScript runs tail in the background and ends it when stdin does: tail
// itself would stay on the node for ever when nothing more is written. Lines on
// stdin are the number of bytes delivered; SIGALRM tells of a shorter file, as
// find is the one POSIX tool that compares a size without reading the file. It
// is one line without quotes of its own, "!" and newlines, so that any login
// shell passes it on.
//
// Its arguments are the file, how much was delivered, and the length of its
// segments; 0 for a file that has none. Of a log the whole segments are copied
// and the newest one is followed. When a line on stdin says that all of it has
// arrived, SIGUSR1 turns to the next: nothing is lost with the tail that ends.
const followScript = `f=$1; n=$2; s=$3; LC_ALL=C; export LC_ALL; exec 3<&0; ` +
	`part() { g=$f; [ $1 -eq 0 ] || g=$f.$1; }; ` +
	`shrunk() { [ -n "$(find -L "$g" -size -"$1"c 2>/dev/null)" ]; }; ` +
	// The segment of the next byte is k, the newest is a.
	`k=0; [ $s -eq 0 ] || k=$((n / s)); a=$k; part $k; ` +
	`if [ $s -gt 0 ]; then l=; for x in "$f".[0-9]*; do y=${x##*.}; case $y in *[a-z]*|*.*|*[*]*) continue;; esac; ` +
	`[ $y -le $a ] || a=$y; if [ -z "$l" ] || [ $y -lt $l ]; then l=$y; fi; done; ` +
	`if [ -e "$g" ] || [ $a -eq $k ]; then :; else echo first $((l * s)) >&2; exit 79; fi; fi; ` +
	`give() { (o=$((n - k * s)); while [ $k -lt $a ]; do part $k; [ -e "$g" ] || exit 130; ` +
	`if [ $o -eq 0 ]; then dd if="$g" bs=65536 count=$((s / 65536)) 2>/dev/null; ` +
	`else tail -c +$((o + 1)) -- "$g" | head -c $((s - o)); fi; k=$((k + 1)); o=0; done; part $k; ` +
	`until [ -e "$g" ]; do sleep 0.1 2>/dev/null || sleep 1; done; if shrunk $o; then exit 142; fi; ` +
	`exec tail -c +$((o + 1)) -f -- "$g") 3<&- & t=$!; }; ` +
	// A signal that finds a fork of dash still as it was born is lost on it, so one is not enough. Only a shell
	// that has waited for something forgets a child that ended.
	`end() { while kill $t 2>/dev/null; do sleep 0.02 2>/dev/null || sleep 1; done; exit $1; }; ` +
	`trap "end 143" TERM HUP; trap "end 142" ALRM; turn=; trap turn=1 USR1; give; ` +
	`(e=TERM; while read -r n <&3; do if [ $s -gt 0 ] && [ $n -ge $(((a + 1) * s)) ]; then a=$((a + 1)); kill -USR1 $$; ` +
	`else part $a; m=$((n - a * s)); if [ $m -gt 0 ] && shrunk $m; then e=ALRM; break; fi; fi; done <&3; ` +
	`kill -$e $$) >/dev/null 2>&1 & ` +
	`while :; do wait $t; c=$?; [ -n "$turn" ] || exit $c; turn=; kill $t 2>/dev/null; wait $t 2>/dev/null; ` +
	`a=$((a + 1)); k=$a; n=$((a * s)); give; done`

// TruncatedError says that a followed file became shorter than what had been
// read of it: what was delivered is no longer what the file says.
type TruncatedError struct {
	Name, Path string
	// Offset is what had been delivered. The last of it may already be from
	// after the truncation: tail reads on before anybody can tell.
	Offset int64
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("follow %s on %s: the file was truncated or replaced: it is now shorter than the %d bytes already read. "+
		"Read it again from the start", e.Path, e.Name, e.Offset)
}

// Follow hands over the bytes of a file from an offset on, as they are
// appended, in order: none is lost and none comes twice, also when the
// connection is lost and comes back. A file that does not exist yet is waited
// for; a relative path begins in the user's home. Follow ends with ctx, with
// the first error of sink, or with an error that a new connection can't mend;
// nothing of it stays on the node. sink must not keep p.
func (n *Node) Follow(ctx context.Context, path string, from int64, sink func(off int64, p []byte) error) error {
	f := &follower{n: n, path: path, sink: sink}
	return f.follow(ctx, from)
}

// FollowLog is Follow for a log of a run, by its name in the run's directory.
// Offsets count all that was ever written to it. Where bytes were dropped on
// the node (see Launch.LogMost) before they were read, dropped is told which,
// and the next ones come from behind them.
func (n *Node) FollowLog(ctx context.Context, runID, name string, from int64,
	sink func(off int64, p []byte) error, dropped func(from, to int64) error) error {
	f := &follower{n: n, path: ".dlwb/runs/" + runID + "/" + name, sink: sink, dropped: dropped, segment: n.segment}
	return f.follow(ctx, from)
}

func (f *follower) follow(ctx context.Context, from int64) error {
	f.off.Store(from)
	for try := 0; ; try++ {
		before := f.off.Load()
		again, err := f.once(ctx)
		if !again {
			return err
		}
		if f.off.Load() > before {
			try = 0
			if err == nil {
				continue // bytes were dropped: no reason to wait
			}
		}
		if !f.n.rest(ctx, try) {
			return f.n.wrap("follow "+f.path, context.Cause(ctx))
		}
	}
}

type follower struct {
	n       *Node
	path    string
	sink    func(off int64, p []byte) error
	dropped func(from, to int64) error
	segment int64        // 0: the file is one
	off     atomic.Int64 // what sink has accepted
	turned  chan struct{}
}

func (f *follower) line() string {
	path := f.path
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "exec sh -c " + Quote(followScript, "sh", path, fmt.Sprint(f.off.Load()), fmt.Sprint(f.segment))
}

// once follows until something ends it, and reports whether to go on with a
// new session.
func (f *follower) once(ctx context.Context) (again bool, err error) {
	said := newRemarks()
	st, err := f.n.stream(ctx, f.line(), said)
	if err != nil {
		return isTransport(err), err
	}
	f.turned = make(chan struct{}, 1)
	go f.report(st, f.turned)
	over, err := st.each(ctx, said.truncated, f.take)
	switch {
	case over:
		return f.verdict(err, said.text())
	case ctx.Err() != nil:
		return false, f.n.wrap("follow "+f.path, context.Cause(ctx))
	case err == nil:
		return false, f.shrunk()
	}
	return false, err
}

// take hands over a piece. At the end of a segment the node waits for word that
// it has arrived.
func (f *follower) take(p []byte) error {
	before := f.off.Load()
	if err := f.sink(before, p); err != nil {
		return err
	}
	after := f.off.Add(int64(len(p)))
	if f.segment > 0 && before/f.segment != after/f.segment {
		select {
		case f.turned <- struct{}{}:
		default:
		}
	}
	return nil
}

// report tells the node what was delivered.
func (f *follower) report(st *stream, turned <-chan struct{}) {
	tick := time.NewTicker(followCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-turned:
		case <-st.quit:
			return
		case <-st.ended:
			return
		}
		if st.say(f.off.Load()) != nil {
			return
		}
	}
}

// verdict looks at how the remote side ended. Whatever was killed, or lost its
// connection, is started again.
func (f *follower) verdict(err error, said string) (again bool, _ error) {
	var exit *exitError
	if !errors.As(err, &exit) {
		return true, err
	}
	switch code := exit.code; {
	case code == exitShrunk:
		return false, f.shrunk()
	case code == exitDropped && f.dropped != nil:
		return f.skip(said)
	case code > 128:
		return true, err
	}
	return false, f.n.wrap("follow "+f.path, fmt.Errorf("tail ended with exit code %d: %s", exit.code, said))
}

// skip goes on behind bytes that are not on the node any more.
func (f *follower) skip(said string) (again bool, err error) {
	from, to := f.off.Load(), int64(0)
	if _, err := fmt.Sscanf(lastLine(said), "first %d", &to); err != nil || to <= from {
		return false, f.n.wrap("follow "+f.path, fmt.Errorf("bytes from %d on are not there any more, and the node does not say which are: %.200q", from, said))
	}
	if err := f.dropped(from, to); err != nil {
		return false, err
	}
	f.off.Store(to)
	return true, nil
}

func (f *follower) shrunk() error {
	return &TruncatedError{f.n.target.Name, f.path, f.off.Load()}
}

// isTransport reports whether a later connection may do better.
func isTransport(err error) bool {
	var unreachable *UnreachableError
	var lost *LostError
	return errors.As(err, &unreachable) || errors.As(err, &lost)
}

// remarks keeps the first of what a command says on stderr. GNU tail goes on
// after a truncation with the new bytes, but says so first.
type remarks struct {
	truncated chan struct{}
	mu        sync.Mutex
	buf       bytes.Buffer
	once      sync.Once
}

var _ io.Writer = (*remarks)(nil)

const remarksMost = 4 << 10

func newRemarks() *remarks { return &remarks{truncated: make(chan struct{})} }

func (r *remarks) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if keep := min(len(p), remarksMost-r.buf.Len()); keep > 0 {
		r.buf.Write(p[:keep])
	}
	if bytes.Contains(r.buf.Bytes(), []byte("file truncated")) {
		r.once.Do(func() { close(r.truncated) })
	}
	return len(p), nil
}

func (r *remarks) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSpace(r.buf.String())
}
