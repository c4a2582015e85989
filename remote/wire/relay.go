package wire

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/libp2p/go-yamux/v5"
)

// A relay passes the calls of one session on to another one, without looking into
// them: a process that holds connections to agents does so for others. What the
// agent sends is held in memory here within the same bounds as anywhere.

// AnswerLocal begins a session as the one who is called, by a process of this
// machine, whose calls are relayed: what it sends waits here until the agent takes
// it, so its windows are no larger than a caller's.
func AnswerLocal(conn io.ReadWriteCloser) (*Session, error) {
	return session(yamux.Server, conn, config(callsMost, callerWindow), callerRoom, theCaller)
}

// OpenControl opens a stream to the relay itself, as the first one of a session.
func (s *Session) OpenControl(ctx context.Context) (*Stream, error) {
	raw, err := s.mux.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	return s.stream(raw), nil
}

// Relay passes each further call of this session on to another one, until this one
// ends.
func (s *Session) Relay(to *Session) {
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for {
		from, err := s.Accept()
		if err != nil {
			return
		}
		calls.Go(func() { passOn(ctx, from, to) })
	}
}

// passOn makes the same call of another session and carries both ways.
func passOn(ctx context.Context, from *Stream, session *Session) {
	raw, err := session.mux.OpenStream(ctx)
	if err != nil {
		from.Reset()
		return
	}
	to := session.stream(raw)
	var ways sync.WaitGroup
	ways.Go(func() { carry(to, from) })
	ways.Go(func() { carry(from, to) })
	ways.Wait()
	from.Close()
	to.Close()
}

// carried are the buffers of what is passed on.
var carried = sync.Pool{New: func() any { return new([ChunkMost]byte) }}

// carry passes bytes on in one direction, and the end of them: a call that is
// given up on one side is given up on the other.
func carry(to, from *Stream) {
	buffer := carried.Get().(*[ChunkMost]byte)
	defer carried.Put(buffer)
	_, err := io.CopyBuffer(onlyWriter{to.raw}, taking{from}, buffer[:])
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil && !errors.Is(err, yamux.ErrStreamClosed) {
		from.Reset()
		to.Reset()
	}
}

// onlyWriter hides what else a stream can do from io.Copy.
type onlyWriter struct{ io.Writer }
