package remote

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

const (
	// relayFrom is from how many bytes on, over all nodes but the first, the
	// detour over one of them is worth the connections from there: less is sent
	// before these are made.
	relayFrom = 4 << 20
	// relayGrace is how long nodes have at least to finish after the one that
	// passes the files on is through. Then they hang, and are served directly.
	relayGrace = 20 * time.Second
)

// errNotSent: a stream was given up on this side.
var errNotSent = errors.New("the files were not sent")

// relay serves several nodes by one stream: it goes to the first one, which
// passes it on to the others. These use it only when it has the checksum that
// they are told directly, over their own connections. A stream holds whatever
// any of the nodes needs; the instructions in it are the first one's, and a
// node with other needs is told directly what to do.
type relay struct {
	tree    *Tree
	members []*member // the first one passes the stream on
	batches []*batch
}

// member is a node of a relay.
type member struct {
	*nodeSync
	mu     sync.Mutex
	failed error // why it takes no further part
}

// lost is why a node takes no further part; nil: it does.
func (m *member) lost() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

func (m *member) lose(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed == nil {
		m.failed = why
	}
}

// newRelay plans how to serve nodes together. The first one is one of those
// that most others are like.
func newRelay(t *Tree, group []*nodeSync) *relay {
	like := map[string]int{}
	for _, s := range group {
		like[s.needs()]++
	}
	slices.SortStableFunc(group, func(a, b *nodeSync) int {
		if a, b := a.view.has("ssh"), b.view.has("ssh"); a != b {
			return cmpBool(b, a)
		}
		return like[b.needs()] - like[a.needs()]
	})
	g := &relay{tree: t}
	needed, streamed := map[*treeEntry]bool{}, map[*treeEntry]bool{}
	for _, s := range group {
		g.members = append(g.members, &member{nodeSync: s})
		for _, e := range s.plan.send {
			needed[e] = true
			streamed[e] = streamed[e] || s.placed[e.path] == nil
		}
	}
	all := &syncPlan{alone: map[*treeEntry]bool{}}
	for _, e := range t.entries {
		if needed[e] {
			all.send = append(all.send, e)
			all.alone[e] = !streamed[e]
		}
	}
	g.batches = all.batches(t.part)
	return g
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// needs names what is to happen on a node: nodes of the same are told the same.
func (s *nodeSync) needs() string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s %v %v\n%q\n", s.view.have.digest(), s.view.clean, s.view.tools, s.plan.forgets)
	_, _ = io.WriteString(sum, (&batch{plan: s.plan, first: true, send: s.plan.send}).script())
	return hex.EncodeToString(sum.Sum(nil))
}

// relayPays reports whether serving nodes together is worth the detour.
func relayPays(group []*nodeSync) bool {
	var most, all int64
	ssh := false
	for _, s := range group {
		var bytes int64
		for _, e := range s.plan.send {
			if bytes += 200; !s.plan.alone[e] {
				bytes += e.size
			}
		}
		most, all = max(most, bytes), all+bytes
		ssh = ssh || s.view.has("ssh")
	}
	return ssh && len(group) > 1 && all-most >= group[0].tree.relay
}

func (g *relay) head() *nodeSync  { return g.members[0].nodeSync }
func (g *relay) headFailed() bool { return g.members[0].lost() != nil }

// run sends all batches. The next one's files are under way while the one
// before is being put in place. Those that are left are not done; an error is
// one of this side, and concerns them all.
func (g *relay) run(ctx context.Context) (left []*nodeSync, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	last := closedChannel()
	for i, b := range g.batches {
		r := &relayStream{relay: g, batch: b, before: last, fed: make(chan struct{}), done: make(chan struct{})}
		g.tell(i)
		go func() {
			defer close(r.done)
			if err := r.run(ctx); err != nil {
				cancel(err)
			}
		}()
		select {
		case <-r.fed:
		case <-r.done:
		}
		last = r.done
	}
	<-last
	for _, m := range g.members {
		if m.lost() != nil {
			left = append(left, m.nodeSync)
			m.broken = true
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return left, cause
	}
	return left, nil
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (g *relay) tell(i int) {
	b := g.batches[i]
	what := fmt.Sprintf("%s, %s", count(len(b.send), "file"), units.Bytes(b.bytes))
	for k, m := range g.members {
		if k == 0 {
			m.report(fmt.Sprintf("sending %s, which go on to %s from there%s", what, count(len(g.members)-1, "node"), partText(i, len(g.batches))))
		} else if m.lost() == nil {
			m.report(fmt.Sprintf("getting %s from %s%s", what, g.head().node.Name(), partText(i, len(g.batches))))
		}
	}
}

// relayStream is one batch on its way to all members.
type relayStream struct {
	*relay
	batch  *batch
	before <-chan struct{} // closed when the batch before this one is in place
	fed    chan struct{}   // closed when all of the files are sent
	done   chan struct{}   // closed when all is over
	began  time.Time
}

// part is what a member does for a batch.
type part struct {
	*member
	batch   *batch
	have    manifest
	records []record
	own     bool           // its instructions are not those in the stream
	control *io.PipeWriter // what a member hears that gets the stream from another
	cancel  context.CancelFunc
	through chan struct{} // closed when the first member is through
	ended   chan struct{} // closed when its command has ended
	text    string
	err     error
}

func (r *relayStream) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.began = time.Now()
	nonce := r.head().stamp + "-" + randomWord()
	var parts []*part
	var names []string
	for i, m := range r.members {
		if m.lost() != nil {
			continue
		}
		if i > 0 {
			names = append(names, m.node.Name())
		}
		parts = append(parts, &part{member: m, cancel: func() {}, through: make(chan struct{}), ended: make(chan struct{})})
	}
	if r.headFailed() {
		return nil // the others have failed with it
	}
	for _, p := range parts[1:] {
		p.listen(ctx, nonce, r.most())
	}
	if err := r.lead(ctx, stop, parts, nonce, names); err != nil {
		stop(err)
		r.release(parts)
		return err
	}
	r.conclude(ctx, stop, parts)
	return nil
}

// most bounds what the stream may be when it is unpacked.
func (r *relayStream) most() int64 {
	return 64<<20 + 2*r.batch.bytes + int64(len(r.batch.send)+len(r.tree.entries))*4096
}

// listen starts the command that takes the stream from another node.
func (p *part) listen(ctx context.Context, nonce string, most int64) {
	r, w := io.Pipe()
	p.control = w
	ctx, p.cancel = context.WithCancel(ctx)
	line := p.receive(nonce, "gzip", "from", strconv.FormatInt(most, 10))
	go func() {
		defer close(p.ended)
		p.run(ctx, Cmd{Line: line, Stdin: r, Quiet: transferLimit})
		_ = r.CloseWithError(io.ErrClosedPipe)
	}()
}

func (p *part) run(ctx context.Context, c Cmd) {
	var res Result
	if p.text, res, p.err = execText(ctx, p.node, c, viewMost); p.err == nil && res.ExitCode != 0 {
		p.err = p.failure(res)
	}
}

// receive is the command line that takes a stream.
func (s *nodeSync) receive(nonce, how string, way ...string) string {
	args := []string{"sh", "-c", digestScript + receiveScript, "dlwb", s.dir, s.id, nonce, how, s.stamp}
	return Quote(append(args, way...)...)
}

// lead sends the stream to the first member and waits until that has passed it
// on and put it in place itself. The error is one of this side.
func (r *relayStream) lead(ctx context.Context, stop context.CancelCauseFunc, parts []*part, nonce string, names []string) error {
	head := parts[0]
	in, out := io.Pipe()
	go func() {
		defer close(head.ended)
		head.run(ctx, Cmd{Line: head.receive(nonce, "gzip", append([]string{"to"}, names...)...), Stdin: in, Quiet: transferLimit})
		_ = in.CloseWithError(io.ErrClosedPipe)
	}()
	digest := sha256.New()
	err := r.feed(ctx, head.counted(io.MultiWriter(out, digest)), parts)
	switch {
	case errors.Is(err, io.ErrClosedPipe):
		err = nil // the node says why
	case err != nil:
		stop(err) // the node must not take half a stream for a whole one
	default:
		sum := hex.EncodeToString(digest.Sum(nil))
		for _, p := range parts[1:] {
			go p.instruct(sum)
		}
	}
	_ = out.CloseWithError(err)
	<-head.ended
	return err
}

// feed writes the stream: first the files, and when the batch before is in
// place the first member's instructions.
func (r *relayStream) feed(ctx context.Context, w io.Writer, parts []*part) error {
	zip := newPackWriter(w)
	to := &tarSink{w: tar.NewWriter(zip), made: map[string]bool{}}
	head := parts[0]
	coming := slices.DeleteFunc(slices.Clone(r.batch.send), func(e *treeEntry) bool { return r.batch.plan.alone[e] })
	err := head.writeEntries(to, coming)
	close(r.fed)
	if err == nil {
		if err = to.w.Flush(); err == nil {
			zip.Flush()
			<-r.before
			err = r.settleShares(parts)
		}
	}
	if err == nil {
		err = writeRecords(to, head.records)
	}
	if err == nil {
		err = to.w.Close()
	}
	return errors.Join(err, zip.Close(), ctx.Err())
}

// settleShares works out what each member is to do with the batch.
func (r *relayStream) settleShares(parts []*part) error {
	if parts[0].lost() != nil {
		return io.ErrClosedPipe
	}
	for _, p := range parts {
		if p.lost() != nil {
			continue // it failed with the batch before
		}
		p.batch = p.share(r.batch)
		p.have = p.batch.after(p.view.have, p.want.manifest)
		p.records = p.nodeSync.records(p.batch, p.have, "")
		p.own = !slices.Equal(p.records, parts[0].records)
	}
	return nil
}

// share is what of a common batch one node needs.
func (s *nodeSync) share(of *batch) *batch {
	mine := map[*treeEntry]bool{}
	for _, e := range s.plan.send {
		mine[e] = true
	}
	b := &batch{plan: s.plan, first: of.first}
	for _, e := range of.send {
		if mine[e] {
			b.send = append(b.send, e)
			if !s.plan.alone[e] {
				b.bytes += e.size
			}
		}
	}
	return b
}

// instruct tells a member what it must have got, and later that nothing more
// comes from the first one, and its own instructions where it needs others.
func (p *part) instruct(sum string) {
	defer func() { _ = p.control.Close() }()
	if p.lost() != nil {
		return
	}
	word := "same"
	if p.own {
		word = "own"
	}
	w := p.counted(p.control)
	_, err := io.WriteString(w, sum+" "+word+"\n")
	<-p.through
	if err == nil {
		_, err = io.WriteString(w, "end\n")
	}
	if err != nil || !p.own {
		return // the node says why
	}
	to := &tarSink{w: tar.NewWriter(w), made: map[string]bool{}}
	if err = writeRecords(to, p.records); err == nil {
		_ = to.w.Close()
	}
}

// conclude takes over what the members say.
func (r *relayStream) conclude(ctx context.Context, stop context.CancelCauseFunc, parts []*part) {
	head, name := parts[0], r.head().node.Name()
	head.settle()
	if why := head.lost(); why != nil {
		stop(fmt.Errorf("%s, from which the files were to come, failed: %w", name, why))
	}
	grace := time.AfterFunc(max(relayGrace, 4*time.Since(r.began)), func() {
		stop(fmt.Errorf("the files from %s have not come in time", name))
	})
	defer grace.Stop()
	for _, p := range parts[1:] {
		close(p.through)
	}
	for _, p := range parts[1:] {
		<-p.ended
		was := p.lost()
		p.settle()
		if why := p.lost(); was == nil && why != nil && head.lost() == nil {
			p.report(fmt.Sprintf("not reached from %s (%s): sending from here", name, lastWords([]byte(why.Error()))))
		}
		p.cancel()
		_ = p.control.Close()
	}
}

// settle takes over how a member ended.
func (p *part) settle() {
	if p.lost() != nil {
		return
	}
	if p.err == nil && p.batch == nil {
		p.err = errors.New("the node was through before it had been told what to do")
	}
	if p.err == nil {
		p.err = p.done(p.batch, p.have, p.text)
	}
	if p.err != nil {
		p.lose(p.err)
	}
}

// release lets all members go, after this side failed.
func (r *relayStream) release(parts []*part) {
	for _, p := range parts {
		p.cancel()
		if p.control != nil {
			_ = p.control.Close()
		}
		<-p.ended
		p.lose(errNotSent)
	}
}
