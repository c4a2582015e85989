package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// transferLimit is for files on their way: some of them always come.
	transferLimit = 10 * time.Minute
	// hashLimit is for what reads files there and tells of them afterwards: one
	// of a terabyte takes long.
	hashLimit = 60 * time.Minute
)

// syncPeer is what a Sync and a Share need of a node; tests have others.
type syncPeer interface {
	Name() string
	// talk calls a service. wrap makes an error of the call one that says whose it was.
	talk(ctx context.Context, service string, request any) (st talking, wrap func(error) error, err error)
}

// talking is a call: a *wire.Stream.
type talking interface {
	Send(v any) error
	SendEncoded(message []byte) error
	Recv(v any) error
	End(err error) error
	Reset()
	Close()
}

// peer is a real node.
type peer struct{ *remote.Node }

// idOf is under what name a node keeps what it knows of a code directory.
func idOf(n syncPeer, dir string) string {
	if with, is := n.(interface{ Shelf() string }); is && with.Shelf() != "" {
		return shortHash(dir + "\x00" + with.Shelf())
	}
	return shortHash(dir)
}

func (p peer) talk(ctx context.Context, service string, request any) (talking, func(error) error, error) {
	return p.Call(ctx, service, request)
}

// nodeSync is the sync of one node.
type nodeSync struct {
	node    syncPeer
	tree    *Tree
	root    *os.Root
	want    titled
	byHeart titled // what the node may have without telling it
	dir     string
	id      string // the name of the state
	stamp   string // names what this sync moves aside
	looking bool   // nothing is to be changed
	report  func(string)

	st      talking // nil: there is none
	wrapErr func(error) error
	answers <-chan wire.SyncAnswer
	over    <-chan struct{} // closed when nothing more comes, and ended says why
	left    chan struct{}   // closed when nobody hears any more
	ended   error
	view    *nodeView
	plan    *syncPlan
	began   bool // something was done on the node
	relayed bool // other nodes take part in it
	needs   map[*treeEntry]bool
	ahead   []*frame // that were sent to see how fast the line is
	lacks   int      // files that did not come from another node
	tries   int
	kept    []string
	sent    []*treeEntry
	wire    atomic.Int64 // bytes that were sent
	err     error
}

// say sends a step.
func (s *nodeSync) say(ctx context.Context, step wire.SyncStep) error {
	data, err := wire.Encode(step)
	if err != nil {
		return err
	}
	return s.sayEncoded(ctx, data)
}

// sayEncoded sends a step that is encoded already. It ends early where the agent
// says that it has failed.
func (s *nodeSync) sayEncoded(ctx context.Context, data []byte) error {
	s.wire.Add(int64(len(data)))
	limited, cancel := waits.Within(ctx, waits.Wait{On: s.node.Name(), What: "to take files", Limit: transferLimit})
	defer cancel()
	stop := context.AfterFunc(limited, s.st.Reset)
	err := s.st.SendEncoded(data)
	if !stop() {
		return context.Cause(limited)
	}
	if err == nil {
		return nil
	}
	s.st.Reset()
	<-s.over
	if errors.As(s.ended, new(*wire.Fault)) {
		err = s.ended
	}
	return s.wrapErr(err)
}

// listen receives answers until the call is over. What ends it early also ends
// what is being sent.
func (s *nodeSync) listen() {
	st, answers, over := s.st, make(chan wire.SyncAnswer), make(chan struct{})
	s.answers, s.over, s.left = answers, over, make(chan struct{})
	left := s.left
	go func() {
		defer close(over)
		for {
			var a wire.SyncAnswer
			if err := st.Recv(&a); err != nil {
				s.ended = err
				if !errors.Is(err, io.EOF) {
					st.Reset()
				}
				return
			}
			select {
			case answers <- a:
			case <-left:
			}
		}
	}()
}

// hear gives the next answer.
func (s *nodeSync) hear(ctx context.Context) (a wire.SyncAnswer, err error) {
	limited, cancel := waits.Within(ctx, waits.Wait{On: s.node.Name(), What: "to answer a sync", Limit: hashLimit})
	defer cancel()
	select {
	case a = <-s.answers:
		return a, nil
	case <-s.over:
		return a, s.wrapErr(tooEarly(s.ended))
	case <-limited.Done():
		s.st.Reset()
		return a, context.Cause(limited)
	}
}

// tooEarly makes the end of a call one that came too early.
func tooEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// leave ends the call.
func (s *nodeSync) leave() {
	if s.st == nil {
		return
	}
	_ = s.st.End(nil)
	if s.over != nil {
		close(s.left)
		st, over := s.st, s.over
		late := time.AfterFunc(partGrace, st.Reset)
		go func() {
			<-over
			late.Stop()
			st.Close()
		}()
	} else {
		s.st.Reset()
	}
	s.st, s.over = nil, nil
}

// look asks the node what it has: the one round trip of a sync that finds
// nothing to do.
func (s *nodeSync) look(ctx context.Context) (err error) {
	s.leave()
	ask := wire.SyncLook{
		Dir: s.dir, ID: s.id, Want: s.want.digest, Heart: s.byHeart.digest,
		Preview: s.looking, Stamp: s.stamp, Large: s.tree.large,
	}
	if s.st, s.wrapErr, err = s.node.talk(ctx, wire.Sync, ask); err != nil {
		s.st = nil
		return err
	}
	asked := time.Now()
	v := &nodeView{have: manifest{}, odd: map[string]wire.SyncOdd{}, parts: map[wire.Bytes]int64{}}
	s.view = v
	var digest []byte
	for first, more := true, true; more; first = false {
		var part wire.SyncView
		if err := s.receive(ctx, &part); err != nil {
			return err
		}
		if first {
			v.far = time.Since(asked) > farAway
			v.same, v.halfway, v.pairing, v.sends, digest = part.Same, part.Halfway, part.Pairing, part.Sends, part.Digest
		}
		if more = part.More; !v.take(part, toldMost+2*len(s.tree.entries)) {
			return errors.New("the node tells of files that no project can have, or of too many")
		}
	}
	if !v.same && len(s.byHeart.manifest) > 0 && bytes.Equal(digest, s.byHeart.digest) {
		v.have = s.byHeart.manifest
	}
	s.listen()
	return nil
}

// receive receives a part of what the node has.
func (s *nodeSync) receive(ctx context.Context, part *wire.SyncView) error {
	limited, cancel := waits.Within(ctx, waits.Wait{On: s.node.Name(), What: "to tell what is there", Limit: hashLimit})
	defer cancel()
	stop := context.AfterFunc(limited, s.st.Reset)
	err := s.st.Recv(part)
	if !stop() {
		return context.Cause(limited)
	}
	return s.wrapErr(tooEarly(err))
}

// toldMost is how many files a node may tell of, besides twice as many as there
// are here: what it tells is kept in memory.
const toldMost = 150_000

func (v *nodeView) take(part wire.SyncView, most int) bool {
	if len(v.odd)+len(v.have)+len(part.Odd)+len(part.Entries) > most {
		return false
	}
	for _, o := range part.Odd {
		if !localPath(string(o.Now.Path)) {
			return false
		}
		v.odd[string(o.Now.Path)] = o
	}
	for _, p := range part.Parts {
		if len(v.parts) < batchFiles {
			v.parts[p.Sum] = p.Size
		}
	}
	return v.have.add(part.Entries)
}

// prepare asks a node what it has, and plans.
func (s *nodeSync) prepare(ctx context.Context) error {
	s.report("looking what is there")
	if err := s.look(ctx); err != nil {
		return err
	}
	if !s.view.same {
		s.plan = planSync(s.tree, s.want.manifest, s.view)
	}
	if !s.needy() {
		s.leave()
	}
	return nil
}

// needy reports whether there is something to do on the node.
func (s *nodeSync) needy() bool {
	return s.err == nil && s.plan != nil && !s.view.same && !s.plan.empty() && !s.looking
}

// announce says what is to happen; the first batch also removes.
func (s *nodeSync) announce(ctx context.Context, files []*treeEntry, first bool) error {
	step := func(b wire.SyncBatch) error { return s.say(ctx, wire.SyncStep{Batch: &b}) }
	size := func(name wire.Bytes) int { return len(name) + 8 }
	if err := step(wire.SyncBatch{}); err != nil {
		return err
	}
	if first {
		for _, part := range wire.SyncLists(wireNames(s.plan.remove), size) {
			if err := step(wire.SyncBatch{Remove: part}); err != nil {
				return err
			}
		}
		for _, part := range wire.SyncLists(wireNames(s.plan.rmdirs), size) {
			if err := step(wire.SyncBatch{Rmdirs: part}); err != nil {
				return err
			}
		}
		for _, part := range wire.SyncLists(s.entries(s.plan.there), wire.SyncSize) {
			if err := step(wire.SyncBatch{There: part}); err != nil {
				return err
			}
		}
	}
	for _, part := range wire.SyncLists(s.entries(files), wire.SyncSize) {
		if err := step(wire.SyncBatch{Files: part}); err != nil {
			return err
		}
	}
	return nil
}

func wireNames(list []string) []wire.Bytes {
	names := make([]wire.Bytes, len(list))
	for i, name := range list {
		names[i] = wire.Bytes(name)
	}
	return names
}

func (s *nodeSync) entries(list []*treeEntry) []wire.SyncEntry {
	entries := make([]wire.SyncEntry, len(list))
	for i, e := range list {
		entries[i] = s.want.manifest[e.path]
	}
	return entries
}

// feed sends frames, the next of which is made while one is being sent.
func (s *nodeSync) feed(ctx context.Context, p *parcel, frames []*frame) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	made := make(chan message, 2)
	var failed error
	go func() {
		defer close(made)
		for _, f := range frames {
			if s.hasCome(f) || slices.Contains(s.ahead, f) {
				continue
			}
			var m message
			if m, failed = p.take(f); failed != nil {
				return
			}
			select {
			case made <- m:
			case <-ctx.Done():
				failed = context.Cause(ctx)
				return
			}
		}
	}()
	var pace pace
	for m := range made {
		began := time.Now()
		err := s.sayEncoded(ctx, m.data)
		p.better.Store(pace.better(p.better.Load(), len(m.data), time.Since(began)))
		m.sent()
		if err != nil {
			cancel(err)
			for range made { // until nobody writes failed any more
			}
			return err
		}
	}
	return failed
}

// hasCome reports whether the node has this part of a large file already.
func (s *nodeSync) hasCome(f *frame) bool {
	if f.entry == nil || len(s.view.parts) == 0 {
		return false
	}
	return f.at+f.raw <= s.view.parts[s.want.manifest[f.entry.path].Value]
}

// settle waits until what was sent has been written. What lacks of the files is
// the result.
func (s *nodeSync) settle(ctx context.Context, files []*treeEntry, how wire.SyncSettle) (lacks []*treeEntry, err error) {
	if err := s.say(ctx, wire.SyncStep{Settle: &how}); err != nil {
		return nil, err
	}
	return s.settled(ctx, files)
}

func (s *nodeSync) settled(ctx context.Context, files []*treeEntry) (lacks []*treeEntry, err error) {
	for more := true; more; {
		a, err := s.hear(ctx)
		if err != nil {
			return nil, err
		}
		done := a.Done
		if done == nil {
			return nil, errors.New("the node answers what was not asked")
		}
		for _, i := range done.Lacks {
			if i < 0 || i >= len(files) {
				return nil, errors.New("the node lacks what was not to be sent")
			}
			lacks = append(lacks, files[i])
		}
		for _, name := range done.Kept {
			s.kept = append(s.kept, string(name))
		}
		more = done.More
	}
	return lacks, nil
}

// deliver sends a batch whose content the node gets from here, and has it put
// in place.
func (s *nodeSync) deliver(ctx context.Context, files []*treeEntry, p *parcel) error {
	if err := s.bring(ctx, files, p); err != nil {
		return err
	}
	return s.finish(ctx, files)
}

// bring sends the content of a batch.
func (s *nodeSync) bring(ctx context.Context, files []*treeEntry, p *parcel) error {
	own, err := s.deltas(ctx, files)
	if err != nil {
		return err
	}
	frames := slices.DeleteFunc(slices.Clone(p.frames), func(f *frame) bool { return f.entry != nil && own[f.entry] != nil })
	if err := s.feed(ctx, p, frames); err != nil {
		return err
	}
	for _, e := range files {
		if d := own[e]; d != nil {
			if err := s.feed(ctx, d, d.frames); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish has a batch put in place. What has not come as it should, of other
// nodes or built on an older file, is sent from here.
func (s *nodeSync) finish(ctx context.Context, files []*treeEntry) error {
	for try := 0; ; try++ {
		lacks, err := s.settle(ctx, files, wire.SyncSettle{Place: true})
		if err != nil {
			return err
		}
		if len(lacks) == 0 {
			s.began, s.sent = true, append(s.sent, files...)
			return nil
		}
		for _, e := range lacks {
			if info, err := s.root.Lstat(e.path); err != nil || e.isOther(info) {
				return fileMoved(e, err)
			}
		}
		if try == syncTries {
			return fmt.Errorf("%s can't be brought there: what comes is not what is sent", nameText(lacks[0].path))
		}
		s.view.parts = nil
		again := newParcel(s.root, lacks, 1)
		s.report(fmt.Sprintf("sending %s", amount(lacks)))
		if err := s.feed(ctx, again, again.frames); err != nil {
			return err
		}
	}
}

// amount is "12 files, 48 KB".
func amount(list []*treeEntry) string {
	files, bytes := 0, int64(0)
	for _, e := range list {
		if e.kind != kindDir {
			files, bytes = files+1, bytes+e.size
		}
	}
	return fmt.Sprintf("%s, %s", count(files, "file"), units.Bytes(bytes))
}
