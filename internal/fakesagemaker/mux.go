//go:build unix

package fakesagemaker

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// mux is the far end of the connections of a tunnel, in the framing of smux 1, which the
// plugin has: version, command, length, number of the stream, bytes.
type mux struct {
	c    *channel
	port string
	rest []byte // of a frame that has not come whole

	mu      sync.Mutex
	streams map[uint32]*muxed
}

// muxed is one connection, once the port was reached.
type muxed struct {
	in   chan []byte // what goes to the port; closed at its end
	over sync.Once
}

const (
	frameOpen = iota
	frameEnd
	frameData
	frameHead = 8
)

// take takes bytes of frames.
func (m *mux) take(b []byte) {
	m.rest = append(m.rest, b...)
	for len(m.rest) >= frameHead {
		length := int(binary.LittleEndian.Uint16(m.rest[2:]))
		if len(m.rest) < frameHead+length {
			return
		}
		number, data := binary.LittleEndian.Uint32(m.rest[4:]), append([]byte{}, m.rest[frameHead:frameHead+length]...)
		m.frame(m.rest[1], number, data)
		m.rest = m.rest[frameHead+length:]
	}
}

func (m *mux) frame(command byte, number uint32, data []byte) {
	m.mu.Lock()
	s := m.streams[number]
	if command == frameOpen {
		s = &muxed{in: make(chan []byte, 1<<10)}
		m.streams[number] = s
	}
	m.mu.Unlock()
	switch {
	case command == frameOpen:
		m.c.f.runs.Go(func() { m.carry(number, s) })
	case s == nil:
	case command == frameEnd:
		s.over.Do(func() { close(s.in) })
	case command == frameData:
		s.in <- data
	}
}

// carry carries one connection to the port.
func (m *mux) carry(number uint32, s *muxed) {
	ctx, cancel := context.WithTimeout(m.c.ctx, 5*time.Second)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+m.port)
	cancel()
	if err != nil {
		flag := make([]byte, 4)
		binary.BigEndian.PutUint32(flag, flagNobody)
		m.c.say(payloadFlag, flag)
		m.say(frameEnd, number, nil)
		return
	}
	defer context.AfterFunc(m.c.ctx, func() { _ = conn.Close() })()
	m.c.f.runs.Go(func() {
		defer conn.Close()
		for {
			select {
			case data, more := <-s.in:
				if !more {
					return
				}
				if _, err := conn.Write(data); err != nil {
					return
				}
			case <-m.c.ctx.Done():
				return
			}
		}
	})
	piece := make([]byte, 1<<10)
	for {
		n, err := conn.Read(piece)
		if n > 0 {
			m.say(frameData, number, piece[:n])
		}
		if err != nil {
			m.say(frameEnd, number, nil)
			return
		}
	}
}

func (m *mux) say(command byte, number uint32, data []byte) {
	frame := make([]byte, frameHead, frameHead+len(data))
	frame[0], frame[1] = 1, command
	binary.LittleEndian.PutUint16(frame[2:], uint16(len(data))) //nolint:gosec // a piece
	binary.LittleEndian.PutUint32(frame[4:], number)
	m.c.say(payloadOutput, append(frame, data...))
}
