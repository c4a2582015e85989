// Package wire is the protocol between dlwb and its agent on a node: one
// yamux session over any stream of bytes, in which each yamux stream is one
// call of one service. A message is a length (a varint), a byte that tells its
// kind, and CBOR (RFC 8949); bulk data follows messages as plain bytes where a
// service says so. Both sides hold every message against a bound, and neither
// trusts the other's bytes.
package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-yamux/v5"
)

// Version is the version of the protocol. It changes when an agent of another
// version could not be talked to; both sides are the same build as a rule, as the
// agent's name holds the hash of its bytes.
const Version = 1

const (
	// MessageMost bounds one message.
	MessageMost = 1 << 20
	// ChunkMost is how much bulk data one message carries at most.
	ChunkMost = 64 << 10
	// copyMost is up to what size a message is copied behind its head.
	copyMost = 32 << 10
	// largeMost is how many messages of more than largeMessage are received at a
	// time, on all calls.
	largeMost, largeMessage = 2, 2 * ChunkMost
	// callerWindow and agentWindow bound what one stream may have on the way: a
	// link of 100 ms carries ten times as much a second. callerRoom and agentRoom
	// bound by how much all windows of a session grow beyond the 256 KB with which
	// they begin.
	callerWindow, callerRoom = 4 << 20, 12 << 20
	agentWindow, agentRoom   = 16 << 20, 64 << 20
	// callsMost bounds the calls at a time that the other side may have open.
	callsMost = 256
	// pingLimit is how long anybody waits for the answer to a ping.
	pingLimit = 2 * time.Minute
)

// The kinds of messages.
const (
	kindMessage = 0
	kindFault   = 1
	kindEnd     = 2
)

var (
	encoding = must(cbor.EncOptions{}.EncMode())
	// Names and command lines may be of any bytes.
	decoding = must(cbor.DecOptions{MaxNestedLevels: 16, MaxArrayElements: 1 << 16, MaxMapPairs: 1 << 14,
		UTF8: cbor.UTF8DecodeInvalid}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options are constants
	}
	return v
}

// Session is all that is said over one connection.
type Session struct {
	mux    *yamux.Session
	pieces *pieces
	large  chan struct{} // has room for the large messages that may come at a time
	other  string        // who the other side is
}

// Dial begins a session as the one who calls, and is not called.
func Dial(conn io.ReadWriteCloser) (*Session, error) {
	c := config(0, callerWindow)
	c.ReadBufSize = 16 << 10 // a caller may have hundreds of sessions, and its reads are no system calls
	return session(yamux.Client, conn, c, callerRoom, theAgent)
}

// Answer begins a session as the one who is called.
func Answer(conn io.ReadWriteCloser) (*Session, error) {
	return session(yamux.Server, conn, config(callsMost, agentWindow), agentRoom, theCaller)
}

// muxer is one of yamux's two sides.
type muxer func(net.Conn, *yamux.Config, func() (yamux.MemoryManager, error)) (*yamux.Session, error)

func session(side muxer, conn io.ReadWriteCloser, c *yamux.Config, most int64, other string) (*Session, error) {
	r := &room{}
	r.left.Store(most)
	p := &pieces{ReadWriteCloser: conn, waiting: map[uint32]int{}}
	p.heard.Store(time.Now().UnixNano())
	mux, err := side(plainConn{p}, c, r.span)
	return &Session{mux, p, make(chan struct{}, largeMost), other}, err
}

func config(incoming, window uint32) *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false // Ping is for that
	c.MeasureRTTInterval = math.MaxInt64
	c.ConnectionWriteTimeout = pingLimit
	c.MaxIncomingStreams = incoming
	c.MaxStreamWindowSize = window
	c.ReadBufSize = 64 << 10
	c.LogOutput = io.Discard
	return c
}

// Ping asks the other side for an answer. What is returned is closed when that
// comes: within pingLimit, or never.
func (s *Session) Ping() <-chan struct{} {
	answered := make(chan struct{})
	go func() {
		if _, err := s.mux.Ping(); err == nil {
			close(answered)
		}
	}()
	return answered
}

// Silent is for how long nothing has come from the other side.
func (s *Session) Silent() time.Duration {
	return time.Duration(time.Now().UnixNano() - s.pieces.heard.Load())
}

// Call opens a stream for a call of a service and sends its request, until ctx
// ends.
func (s *Session) Call(ctx context.Context, service string, request any) (*Stream, error) {
	raw, err := s.mux.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	st := s.stream(raw)
	stop := context.AfterFunc(ctx, st.Reset)
	if err = st.Send(service); err == nil {
		err = st.Send(request)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		st.Reset()
		return nil, err
	}
	return st, nil
}

// Accept waits for the next call and gives the service's name.
func (s *Session) Accept() (*Stream, error) {
	raw, err := s.mux.AcceptStream()
	if err != nil {
		return nil, err
	}
	return s.stream(raw), nil
}

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Close ends the session and every call.
func (s *Session) Close() error { return s.mux.Close() }

// Stream is one call. One goroutine may send while another one receives.
type Stream struct {
	raw  *yamux.Stream
	of   *Session
	in   *bufio.Reader
	send sync.Mutex
	over error // what Recv has told last: nothing comes after it

	ended sync.Once
	given chan struct{} // closed when the call is given up, or over
}

func (s *Session) stream(raw *yamux.Stream) *Stream {
	st := &Stream{raw: raw, of: s, given: make(chan struct{})}
	st.in = bufio.NewReaderSize(taking{st}, 4<<10)
	s.pieces.watch(raw.StreamID())
	return st
}

// taking takes what has come on a call. bufio reads into 4 KB at least, so that
// a small piece is taken at once.
type taking struct{ s *Stream }

func (t taking) Read(p []byte) (int, error) {
	n, err := t.s.raw.Read(p)
	t.s.of.pieces.took(t.s.raw.StreamID(), n)
	return n, err
}

// Send sends one message. One that is longer than MessageMost is an error of
// the program.
func (s *Stream) Send(v any) error {
	body, err := Encode(v)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	return s.write(kindMessage, body)
}

// laden is a message with bytes that are copied neither into its CBOR nor out of
// it: they follow that, and its length stands before it.
type laden interface {
	load() *[]byte // nil: it has none
}

// Encode gives a message as it is sent.
func Encode(v any) ([]byte, error) { return AppendEncoded(nil, v) }

// AppendEncoded adds to a slice what Encode gives.
func AppendEncoded(to []byte, v any) ([]byte, error) {
	head, err := encoding.Marshal(v)
	l, ok := v.(laden)
	if err != nil || !ok {
		return append(to, head...), err
	}
	var load []byte
	if p := l.load(); p != nil {
		load = *p
	}
	to = slices.Grow(to, binary.MaxVarintLen32+len(head)+len(load))
	return append(append(binary.AppendUvarint(to, uint64(len(head))), head...), load...), nil
}

// decode reads a message. The bytes that follow it stay in body.
func decode(body []byte, v any) error {
	l, ok := v.(laden)
	if !ok {
		return decoding.Unmarshal(body, v)
	}
	length, n := binary.Uvarint(body)
	if n <= 0 || length > uint64(len(body)-n) {
		return errors.New("it is longer than what came")
	}
	head, load := body[n:n+int(length)], body[n+int(length):]
	if err := decoding.Unmarshal(head, v); err != nil {
		return err
	}
	if p := l.load(); p != nil {
		*p = load
	} else if len(load) > 0 {
		return errors.New("there are bytes that belong to nothing")
	}
	return nil
}

// SendEncoded sends a message that is encoded already, as one that goes to
// several machines.
func (s *Stream) SendEncoded(body []byte) error { return s.write(kindMessage, body) }

func (s *Stream) write(kind byte, body []byte) error {
	if len(body) >= MessageMost {
		return fmt.Errorf("a message of %d bytes is longer than %d", len(body), MessageMost)
	}
	frame := make([]byte, 0, binary.MaxVarintLen32+1+min(len(body), copyMost))
	frame = append(binary.AppendUvarint(frame, uint64(len(body)+1)), kind)
	if len(body) <= copyMost {
		frame, body = append(frame, body...), nil
	}
	s.send.Lock()
	defer s.send.Unlock()
	if s.isOver() {
		return yamux.ErrStreamClosed
	}
	_, err := s.raw.Write(frame)
	if err == nil && len(body) > 0 {
		_, err = s.raw.Write(body)
	}
	return err
}

// Recv receives the next message. It returns io.EOF when the other side has
// ended the call well, its *Fault when it has not, a *ProtocolError when what it
// sent makes no sense, and io.ErrUnexpectedEOF or the session's error when the
// call was cut off.
func (s *Stream) Recv(v any) error {
	if s.over != nil {
		return s.over
	}
	length, done, err := s.announced()
	if err != nil {
		s.over = err
		return err
	}
	defer done()
	kind, body, err := s.read(length)
	switch {
	case err != nil:
		s.over = err
	case kind == kindEnd:
		s.over = io.EOF
	case kind == kindFault:
		f := &Fault{}
		if s.over = s.decode(body, f); s.over == nil {
			s.over = f.bounded()
		}
	case kind != kindMessage:
		s.over = s.brokenf("a message of the unknown kind %d", kind)
	default:
		s.over = s.decode(body, v)
	}
	return s.over
}

func (s *Stream) decode(body []byte, v any) error {
	if err := decode(body, v); err != nil {
		return s.brokenf("a message that can't be decoded: %w", err)
	}
	return nil
}

func (s *Stream) brokenf(format string, args ...any) error {
	return &ProtocolError{s.of.other, fmt.Errorf(format, args...)}
}

// announced waits for the beginning of a message: its length. The message is
// received before done is called.
func (s *Stream) announced() (length int, done func(), err error) {
	length, err = s.length()
	switch {
	case err != nil:
		return 0, nil, err
	case length <= largeMessage:
		return length, func() {}, nil
	}
	select {
	case s.of.large <- struct{}{}:
		return length, func() { <-s.of.large }, nil
	case <-s.given:
	case <-s.of.Done():
	}
	return 0, nil, io.ErrUnexpectedEOF
}

// length reads the length of a message, a varint.
func (s *Stream) length() (int, error) {
	n := uint64(0)
	for shift := 0; n <= MessageMost && shift < 35; shift += 7 {
		b, err := s.in.ReadByte()
		if err != nil { // without a word: it is cut off
			return 0, s.of.broken(noEnd(err))
		}
		n |= uint64(b&0x7f) << shift
		if b < 0x80 && n > 0 && n <= MessageMost {
			return int(n), nil
		} else if b < 0x80 {
			break
		}
	}
	return 0, s.brokenf("a message of %d bytes", n)
}

func (s *Stream) read(length int) (kind byte, body []byte, err error) {
	body = make([]byte, length)
	if _, err := io.ReadFull(s.in, body); err != nil {
		return 0, nil, s.of.broken(noEnd(err))
	}
	return body[0], body[1:], nil
}

// noEnd makes the end of a stream one that came too early. What a lost connection
// ends with may wrap the end of that.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// End ends this side of the call: well with nil, else with a *Fault.
func (s *Stream) End(err error) error {
	if err == nil {
		return errors.Join(s.write(kindEnd, nil), s.CloseWrite())
	}
	body, encodeErr := encoding.Marshal(faultOf(err).bounded())
	if encodeErr != nil {
		return encodeErr
	}
	return errors.Join(s.write(kindFault, body), s.CloseWrite())
}

// Raw is what follows the messages as plain bytes. Its reads end with io.EOF at
// the other side's CloseWrite.
func (s *Stream) Raw() io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{s.in, s.raw}
}

// CloseWrite says that no more bytes come from here.
func (s *Stream) CloseWrite() error {
	if s.isOver() {
		return yamux.ErrStreamClosed
	}
	sent := make(chan error, 1)
	go func() { sent <- s.raw.CloseWrite() }()
	select {
	case err := <-sent:
		return err
	case <-s.given:
		return yamux.ErrStreamClosed
	}
}

// isOver reports whether the call was given up here.
func (s *Stream) isOver() bool {
	select {
	case <-s.given:
		return true
	default:
		return false
	}
}

// Reset gives the call up, both ways and at once.
func (s *Stream) Reset() { s.end(s.raw.Reset) }

// Close is for a call that is over.
func (s *Stream) Close() { s.end(s.raw.Close) }

// end ends what is sent and received, once, and waits for nothing: on a connection on
// which nothing is taken any more, yamux would wait to tell the other side.
func (s *Stream) end(how func() error) {
	s.ended.Do(func() {
		close(s.given)
		_ = s.raw.SetWriteDeadline(time.Unix(1, 0))
		go func() {
			_ = how()
			s.of.pieces.forget(s.raw.StreamID())
		}()
	})
}

// plainConn makes a connection for yamux, which needs addresses and deadlines
// for nothing that matters here: Close ends every read and write.
type plainConn struct{ io.ReadWriteCloser }

type plainAddr struct{}

func (plainAddr) Network() string { return "stream" }
func (plainAddr) String() string  { return "stream" }

func (plainConn) LocalAddr() net.Addr              { return plainAddr{} }
func (plainConn) RemoteAddr() net.Addr             { return plainAddr{} }
func (plainConn) SetDeadline(time.Time) error      { return nil }
func (plainConn) SetReadDeadline(time.Time) error  { return nil }
func (plainConn) SetWriteDeadline(time.Time) error { return nil }

// Gone gives a context that ends when the other side gives the call up, for a
// service that receives nothing more. Nobody else may receive after it.
func (s *Stream) Gone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, s.in)
		cancel()
	}()
	return ctx, cancel
}
