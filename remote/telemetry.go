package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// frameMost bounds one frame; a real one has a line for each GPU.
const frameMost = 256 << 10

// Telemetry hands over the node's telemetry, one whole frame ("frame …" to
// "end") at a time, about one each second, over one long-lived session. It
// survives reconnects and ends with ctx, or with an error that a new connection
// can't mend. An empty iface means all interfaces. pace asks for more or fewer
// frames at any time; nil: one each second. sink must not keep its argument.
func (n *Node) Telemetry(ctx context.Context, iface string, pace *Pace, sink func(frame []byte)) error {
	line := "exec sh ~/.dlwb/bin/telemetry"
	if iface != "" {
		line += " " + Quote(iface)
	}
	for try := 0; ; try++ {
		got, again, err := n.telemetryOnce(ctx, line, pace, sink)
		if !again {
			return err
		}
		if got {
			try = 0
		}
		if !n.rest(ctx, try) {
			return n.wrap("read telemetry", context.Cause(ctx))
		}
	}
}

// telemetryOnce reads one session's frames: got tells whether there were any,
// again whether a new session may do better.
func (n *Node) telemetryOnce(ctx context.Context, line string, pace *Pace, sink func([]byte)) (got, again bool, err error) {
	said := newRemarks()
	st, err := n.stream(ctx, line, said)
	if err != nil {
		return false, isTransport(err), err
	}
	if pace != nil {
		go pace.ask(st)
	}
	var frames frameSplitter
	over, err := st.each(ctx, nil, func(p []byte) error {
		frames.split(p, func(frame []byte) {
			got = true
			sink(frame)
		})
		return nil
	})
	if !over {
		return got, false, n.wrap("read telemetry", err)
	}
	var exit *exitError
	if errors.As(err, &exit) && !got && exit.code <= 128 {
		return got, false, n.wrap("read telemetry", fmt.Errorf("the script ended with exit code %d: %s", exit.code, said.text()))
	}
	return got, true, err
}

// frameSplitter cuts a byte stream into frames. What is no frame, and a frame
// that was cut by a lost connection, is dropped.
type frameSplitter struct{ buf []byte }

func (s *frameSplitter) split(p []byte, f func(frame []byte)) {
	s.buf = append(s.buf, p...)
	for {
		end := endOfFrame(s.buf)
		if end < 0 {
			break
		}
		if start := startOfFrame(s.buf[:end]); start >= 0 {
			f(s.buf[start:end])
		}
		s.buf = append(s.buf[:0], s.buf[end:]...)
	}
	if len(s.buf) > frameMost {
		s.buf = s.buf[:0]
	}
}

// endOfFrame is the index after the first line "end"; -1: there is none.
func endOfFrame(p []byte) int {
	if i := bytes.Index(p, []byte("\nend\n")); i >= 0 {
		return i + len("\nend\n")
	}
	return -1
}

// startOfFrame is the index of the last line that begins a frame.
func startOfFrame(p []byte) int {
	if i := bytes.LastIndex(p, []byte("\nframe ")); i >= 0 {
		return i + 1
	}
	if bytes.HasPrefix(p, []byte("frame ")) {
		return 0
	}
	return -1
}
