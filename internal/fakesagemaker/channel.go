//go:build unix

package fakesagemaker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/creack/pty"
)

// dataChannel is where the streams of sessions are, as the plugin is led there.
const dataChannel = "/v1/data-channel/"

// agentVersion is one whose tunnels carry several connections.
const agentVersion = "3.3.40.0"

// The payloads of messages, as AWS's session-manager-plugin numbers them.
const (
	payloadOutput            = 1
	payloadSize              = 3
	payloadHandshake         = 5
	payloadHandshakeResponse = 6
	payloadHandshakeComplete = 7
	payloadFlag              = 10
)

const (
	flagEnd      = 2 // the client ends the session
	flagNobody   = 3 // nothing listens on the port
	digestAt     = 80
	payloadAt    = 120
	outputStream = "output_stream_data"
	inputStream  = "input_stream_data"
)

// channel is the stream of a session, at its end in the container.
type channel struct {
	f    *Fake
	s    Session
	conn *websocket.Conn
	ctx  context.Context

	mu   sync.Mutex // of what is sent
	next int64      // sequence number

	feed func([]byte) // takes what the client sends
	size func([]byte) // takes the size of its terminal
}

// stream serves the stream of a session.
func (f *Fake) stream(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	s := f.session(strings.TrimPrefix(r.URL.Path, dataChannel))
	if s == nil || f.ctx.Err() != nil {
		f.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	f.runs.Add(1)
	defer f.runs.Done()
	f.mu.Unlock()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	c := &channel{f: f, s: *s, conn: conn, ctx: ctx}
	_, hello, err := conn.Read(ctx)
	if err != nil || !bytes.Contains(hello, []byte(`"TokenValue":"`+s.token+`"`)) {
		return
	}
	kind, properties := "Standard_Stream", map[string]string{}
	if s.Document == portSession {
		kind, properties = "Port", map[string]string{"portNumber": s.Parameters["portNumber"][0], "localPortNumber": s.Parameters["localPortNumber"][0], "type": "LocalPortForwarding"}
	}
	c.say(payloadHandshake, must(map[string]any{"AgentVersion": agentVersion, "RequestedClientActions": []any{
		map[string]any{"ActionType": "SessionType", "ActionParameters": map[string]any{"SessionType": kind, "Properties": properties}}}}))
	c.listen()
}

func must(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}

// listen takes what the client sends until it is gone.
func (c *channel) listen() {
	expected := int64(0)
	for {
		_, m, err := c.conn.Read(c.ctx)
		if err != nil {
			return
		}
		if len(m) < payloadAt || strings.TrimRight(string(m[4:36]), " \x00") != inputStream {
			continue // the client acknowledges what it gets
		}
		number := int64(binary.BigEndian.Uint64(m[48:]))
		c.acknowledge(number)
		if number != expected {
			continue // it was sent again
		}
		expected++
		if !c.take(binary.BigEndian.Uint32(m[112:]), m[payloadAt:]) {
			return
		}
	}
}

// take acts on a payload; false: the session is over.
func (c *channel) take(kind uint32, payload []byte) bool {
	switch kind {
	case payloadHandshakeResponse:
		c.say(payloadHandshakeComplete, must(map[string]any{"HandshakeTimeToComplete": 1, "CustomerMessage": ""}))
		if c.s.Document == portSession {
			m := &mux{c: c, port: c.s.Parameters["portNumber"][0], streams: map[uint32]*muxed{}}
			c.feed = m.take
			return true
		}
		return c.shell() == nil
	case payloadOutput:
		c.feed(payload)
	case payloadSize:
		if c.size != nil {
			c.size(payload)
		}
	case payloadFlag:
		return binary.BigEndian.Uint32(payload) != flagEnd
	}
	return true
}

// say sends a payload.
func (c *channel) say(kind uint32, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(outputStream, kind, c.next, payload)
	c.next++
}

func (c *channel) acknowledge(number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send("acknowledge", 0, 0, must(map[string]any{"AcknowledgedMessageType": inputStream, "AcknowledgedMessageId": "", "AcknowledgedMessageSequenceNumber": number, "IsSequentialMessage": true}))
}

// bye tells the client that the session is over.
func (c *channel) bye() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send("channel_closed", 0, 0, must(map[string]any{"MessageType": "channel_closed", "SessionId": c.s.ID, "SchemaVersion": 1, "Output": ""}))
}

// send sends one message of the plugin's protocol.
func (c *channel) send(kind string, payloadKind uint32, number int64, payload []byte) {
	m := make([]byte, payloadAt+len(payload))
	binary.BigEndian.PutUint32(m, payloadAt-4)
	copy(m[4:36], fmt.Sprintf("%-32s", kind))
	binary.BigEndian.PutUint32(m[36:], 1)
	binary.BigEndian.PutUint64(m[40:], uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
	binary.BigEndian.PutUint64(m[48:], uint64(number))                 //nolint:gosec // counted from 0
	_, _ = rand.Read(m[64:digestAt])
	digest := sha256.Sum256(payload)
	copy(m[digestAt:], digest[:])
	binary.BigEndian.PutUint32(m[112:], payloadKind)
	binary.BigEndian.PutUint32(m[116:], uint32(len(payload))) //nolint:gosec // short
	copy(m[payloadAt:], payload)
	_ = c.conn.Write(c.ctx, websocket.MessageBinary, m)
}

// shell runs a shell on a terminal of its own, as the agent in the container does.
func (c *channel) shell() error {
	cmd := exec.CommandContext(c.ctx, "/bin/sh")
	cmd.Env = append(os.Environ(), "PS1=container# ", "TERM=xterm-256color", "ENV=")
	tty, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	c.feed = func(text []byte) { _, _ = tty.Write(text) }
	c.size = func(text []byte) {
		var size struct{ Cols, Rows uint16 }
		if json.Unmarshal(text, &size) == nil {
			_ = pty.Setsize(tty, &pty.Winsize{Rows: size.Rows, Cols: size.Cols})
		}
	}
	c.f.runs.Go(func() {
		piece := make([]byte, 1<<10)
		for {
			n, err := tty.Read(piece)
			if n > 0 {
				c.say(payloadOutput, piece[:n])
			}
			if err != nil {
				break
			}
		}
		_ = tty.Close()
		_ = cmd.Wait()
		if !errors.Is(c.ctx.Err(), context.Canceled) {
			c.bye()
		}
	})
	return nil
}
