//go:build linux

// Package intake is the node's side of a sync: it says what lies in a code
// directory, takes what is to be there, and puts it in place when all of a batch
// has come. Files come from the caller, or from other nodes that pass them on;
// whoever sends them, the caller says over its own connection what their
// checksums are.
//
// What it knows of a directory lies in ~/.dlwb/sync/ID. Nothing else is touched
// but the code directory, which no path leaves, and ~/.dlwb/kept.
package intake

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/dlwb/dlwb/remote/cut"
	"github.com/dlwb/dlwb/remote/wire"
)

// Conn is one call.
type Conn interface {
	Send(v any) error
	Recv(v any) error
}

// gcWhileFilesCome lets some more garbage lie: what comes is used once, in large
// pieces, and collecting them took a fifth of the time.
const gcWhileFilesCome = 400

// intake is one call of the service.
type intake struct {
	place *place
	stage *stage // of the batch under way; nil: there is none
	batch wire.SyncBatch
	steps <-chan received
	peer  *listener
	fan   *fan
	s     Conn
}

// received is what Recv gave.
type received struct {
	step wire.SyncStep
	err  error
}

// Serve answers one call of the service wire.Sync.
func Serve(ctx context.Context, home string, s Conn) error {
	var look wire.SyncLook
	if err := s.Recv(&look); err != nil {
		return err
	}
	p, err := open(home, look)
	if err != nil {
		return err
	}
	in := &intake{place: p, s: s}
	defer in.close()
	views, err := p.views(ctx)
	if err != nil {
		return err
	}
	for _, v := range views {
		if err := s.Send(v); err != nil {
			return err
		}
	}
	in.remember(ctx)
	if views[0].Same || look.Preview {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer debug.SetGCPercent(debug.SetGCPercent(gcWhileFilesCome))
	in.steps = receive(ctx, s)
	return in.run(ctx)
}

// remember writes down what reading files has told of their states.
func (in *intake) remember(ctx context.Context) {
	p := in.place
	if p.look.Preview || !p.learnt.Load() || p.pending.file != (fileID{}) {
		return
	}
	// Only time is lost when this fails: the files are read again.
	if dir, err := stateDir(p.home, p.look.ID, true); err == nil {
		if unlock, err := p.lock(ctx, dir); err == nil {
			_ = p.save(dir)
			unlock()
		}
		_ = dir.Close()
	}
}

// receive receives while what came before is being worked on.
func receive(ctx context.Context, s Conn) <-chan received {
	steps := make(chan received)
	go func() {
		for {
			var r received
			r.err = s.Recv(&r.step)
			select {
			case steps <- r:
			case <-ctx.Done():
				return
			}
			if r.err != nil {
				return
			}
		}
	}()
	return steps
}

func (in *intake) close() {
	if in.peer != nil {
		in.peer.close()
	}
	if in.fan != nil {
		in.fan.cut()
	}
	if in.stage != nil {
		in.stage.close()
	}
	in.place.close()
}

func (in *intake) run(ctx context.Context) error {
	for {
		select {
		case r := <-in.steps:
			if errors.Is(r.err, io.EOF) {
				return nil
			}
			if r.err != nil {
				return r.err
			}
			if err := in.step(ctx, r.step); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// step does one step.
func (in *intake) step(ctx context.Context, step wire.SyncStep) error {
	switch {
	case step.Through: // what it is about has come
		return nil
	case step.Batch != nil:
		return in.begin(step.Batch)
	case step.Cut != "":
		return in.cut(step.Cut)
	case step.Listen != "":
		return in.listen(step.Listen)
	case step.Forward != nil:
		return in.forward(ctx, step.Forward)
	case step.Pack == nil && step.Piece == nil && step.Settle == nil && !step.Mark:
		return wire.Faultf(wire.Wrong, "there is a step of no known kind")
	case in.stage == nil:
		return wire.Faultf(wire.Wrong, "files came before their batch")
	}
	if in.fan != nil && step.Settle == nil {
		in.fan.send(step)
	}
	switch {
	case step.Settle != nil:
		if in.fan != nil {
			in.fan.flush()
		}
		return in.settle(ctx, step.Settle)
	case step.Pack != nil, step.Piece != nil:
		in.stage.take(step)
	}
	return in.stage.failed()
}

// begin takes what is to happen.
func (in *intake) begin(b *wire.SyncBatch) error {
	if in.stage == nil {
		if err := in.openStage(); err != nil {
			return err
		}
	}
	for _, name := range append(b.Remove, b.Rmdirs...) {
		if !wire.LocalPath(string(name)) {
			return wire.Faultf(wire.Wrong, "%.99q can't be removed", name)
		}
	}
	in.batch.Remove = append(in.batch.Remove, b.Remove...)
	in.batch.Rmdirs = append(in.batch.Rmdirs, b.Rmdirs...)
	if len(in.batch.Remove)+len(in.batch.Rmdirs)+len(in.batch.There) > wire.SyncEntriesMost {
		return wire.Faultf(wire.Wrong, "the batch is too long")
	}
	for _, e := range b.There {
		if !e.Valid() {
			return wire.Faultf(wire.Wrong, "%.99q can't be in a project", e.Path)
		}
		in.batch.There = append(in.batch.There, e)
	}
	for _, e := range b.Files {
		if err := in.stage.expect(e); err != nil {
			return err
		}
	}
	return nil
}

func (in *intake) openStage() (err error) {
	p := in.place
	if p.code == nil {
		if err := os.MkdirAll(p.dir, 0o755); err != nil {
			return err
		}
		if err := p.openCode(); err != nil {
			return err
		}
	}
	sweep(p.code)
	in.stage, err = newStage(p.code, p.look.Stamp+"-"+strings.ToLower(rand.Text()[:10]), p.look.Large)
	return err
}

// cut tells the chunks of a file that lies here.
func (in *intake) cut(name wire.Bytes) error {
	var list []wire.SyncChunk
	if in.place.code != nil && wire.LocalPath(string(name)) && in.place.byPath[name] != nil {
		if f, err := in.place.code.Open(string(name)); err == nil {
			list, err = cut.File(f)
			_ = f.Close()
			if err != nil {
				list = nil // then all of it is sent
			}
		}
	}
	parts := wire.SyncLists(list, func(wire.SyncChunk) int { return 32 })
	for i, part := range parts {
		if err := in.s.Send(wire.SyncAnswer{Chunks: &wire.SyncChunks{Chunks: part, More: i < len(parts)-1}}); err != nil {
			return err
		}
	}
	return nil
}

// settle says what has come and, where all has, puts it in place.
func (in *intake) settle(ctx context.Context, how *wire.SyncSettle) error {
	if how.Peer {
		if err := in.fromPeer(ctx); err != nil {
			return err
		}
	}
	done, err := in.stage.settle()
	if err != nil {
		return err
	}
	if !how.Place || len(done.Lacks) > 0 {
		return in.done(done)
	}
	if err := in.place.put(ctx, in.stage, in.batch); err != nil {
		return err
	}
	in.stage.close()
	in.stage, in.batch = nil, wire.SyncBatch{}
	parts := wire.SyncLists(in.place.kept, func(name wire.Bytes) int { return len(name) + 8 })
	in.place.kept = nil
	for i, part := range parts {
		if err := in.done(wire.SyncDone{Kept: part, More: i < len(parts)-1}); err != nil {
			return err
		}
	}
	return nil
}

func (in *intake) done(d wire.SyncDone) error { return in.s.Send(wire.SyncAnswer{Done: &d}) }
