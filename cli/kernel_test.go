package cli

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cli/told"
	"github.com/dlwb/dlwb/workbench/event"
)

// socket is as much of a websocket as a kernel needs.
type socket struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// dial opens a websocket as a page of the server would.
func (v visitor) dial(path string, origin string) (*socket, int) {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodGet, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.client.Jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
	for key, value := range map[string]string{
		"Origin": origin, "Upgrade": "websocket", "Connection": "Upgrade",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		req.Header.Set(key, value)
	}
	conn, err := loopback.DialContext(v.t.Context(), "tcp", req.URL.Host)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	if err := req.Write(conn); err != nil {
		v.t.Fatal(err)
	}
	s := &socket{v.t, conn, bufio.NewReader(conn)}
	resp, err := http.ReadResponse(s.r, req)
	if err != nil {
		v.t.Fatal(err)
	}
	return s, resp.StatusCode
}

// say sends one text frame; what a client sends is masked, here with zeros.
func (s *socket) say(text []byte) {
	s.t.Helper()
	head := []byte{0x81, 0x80 | 126, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(head[2:], uint16(len(text)))
	if _, err := s.conn.Write(append(head, text...)); err != nil {
		s.t.Fatal(err)
	}
}

// hear reads one frame.
func (s *socket) hear() []byte {
	s.t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(s.r, head); err != nil {
		s.t.Fatal(err)
	}
	size := uint64(head[1] & 0x7f)
	if extra := map[uint64]int{126: 2, 127: 8}[size]; extra > 0 {
		more := make([]byte, 8)
		if _, err := io.ReadFull(s.r, more[8-extra:]); err != nil {
			s.t.Fatal(err)
		}
		size = binary.BigEndian.Uint64(more)
	}
	if size > 1<<20 {
		s.t.Fatalf("a frame of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(s.r, body); err != nil {
		s.t.Fatal(err)
	}
	return body
}

// message is one of Jupyter's messages to a kernel, or from it.
type message struct {
	Header struct {
		ID       string `json:"msg_id"`
		Type     string `json:"msg_type"`
		Session  string `json:"session"`
		User     string `json:"username"`
		Version  string `json:"version"`
		Sent     string `json:"date"`
		Subshell any    `json:"subshell_id,omitempty"`
	} `json:"header"`
	Parent   map[string]any `json:"parent_header"`
	Metadata map[string]any `json:"metadata"`
	Content  map[string]any `json:"content"`
	Channel  string         `json:"channel"`
	Buffers  []any          `json:"buffers"`
}

// kernel starts one and gives the path of its messages.
func (v visitor) kernel() string {
	v.t.Helper()
	post, _ := http.NewRequest(http.MethodPost, v.base+"/api/kernels", strings.NewReader("{}"))
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Origin", v.base)
	resp, err := v.client.Do(post)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	var kernel struct{ ID string }
	if err := json.NewDecoder(resp.Body).Decode(&kernel); err != nil || resp.StatusCode != http.StatusCreated || kernel.ID == "" {
		v.t.Fatalf("%s: %v, %v", resp.Status, kernel, err)
	}
	return "/api/kernels/" + kernel.ID + "/channels?session_id=s1"
}

// runsACell opens a kernel through the door and runs a cell in it; a page of another
// site gets none.
func (v visitor) runsACell() {
	v.t.Helper()
	path := v.kernel()
	if _, status := v.dial(path, "https://evil.example"); status != http.StatusForbidden {
		v.t.Errorf("a page of another site gets %d", status)
	}
	s, status := v.dial(path, v.base)
	if status != http.StatusSwitchingProtocols {
		v.t.Fatalf("our own page gets %d", status)
	}
	if said := s.cell("print('the answer is', 6 * 7)"); !strings.Contains(said, "the answer is 42") {
		v.t.Errorf("the cell says %q", said)
	}
}

// cell runs code in a kernel and gives what it prints.
func (s *socket) cell(code string) (printed string) {
	s.t.Helper()
	var m message
	m.Header.ID, m.Header.Type, m.Header.Session, m.Header.Version = "m1", "execute_request", "s1", "5.3"
	m.Header.Sent = time.Now().UTC().Format(time.RFC3339Nano)
	m.Parent, m.Metadata, m.Channel, m.Buffers = map[string]any{}, map[string]any{}, "shell", []any{}
	m.Content = map[string]any{"code": code, "silent": false, "store_history": false,
		"user_expressions": map[string]any{}, "allow_stdin": false, "stop_on_error": true}
	text, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.say(text)
	for {
		var got message
		if err := json.Unmarshal(s.hear(), &got); err != nil {
			continue // a ping, or another form
		}
		switch {
		case got.Header.Type == "stream":
			printed += fmt.Sprint(got.Content["text"])
		case got.Header.Type == "error":
			s.t.Fatalf("the cell failed: %v", got.Content)
		case got.Header.Type == "status" && got.Content["execution_state"] == "idle" && printed != "":
			return printed
		}
	}
}

func TestForwardOfAnHTTPPortHasADoorAndARawOneSaysThatItHasNone(t *testing.T) {
	b := newBed(t).withOneNode()
	b.up("forward: [9/http]\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	port := strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)
	for _, args := range [][]string{{port, "--http"}, {port + "/http"}} {
		s, opened, page := b.forward(args...)
		if status, _ := answerTo(t, "http://"+page.Host+"/"); opened["kind"] != "http" || status != http.StatusForbidden {
			t.Errorf("%v: %d without a ticket, opened %v", args, status, opened)
		}
		if status, text := b.visit(page).get("/"); status != http.StatusOK || text != "hello" {
			t.Errorf("%v: %d %q with one", args, status, text)
		}
		_ = s.cmd.Process.Kill()
		s.end()
	}
	s, opened, page := b.forward(port)
	if status, _ := answerTo(t, page.String()); opened["kind"] != "tcp" || status != http.StatusOK || page.RawQuery != "" {
		t.Errorf("raw: %d, opened %v", status, opened)
	}
	_ = s.cmd.Process.Kill()
	s.end()
	if text := told.Forward(event.ForwardOpened{Kind: event.ForwardTCP, Name: port}); !strings.Contains(text, "raw TCP") {
		t.Errorf("the text of a raw one: %s", text)
	}

	// A tunnel's stream is one object, and Ctrl-C is no error.
	s = b.start("forward", "bed", "8265", "--json")
	opened = s.await("the tunnel", func(e printedEvent) bool { return e["event"] != nil })
	s.signal(syscall.SIGINT)
	if code := s.end(); code != 0 || opened["event"] != "forward_opened" || opened["url"] == "" {
		t.Errorf("exit code %d, %v", code, opened)
	}

	// With nothing named it opens what the profile lists.
	_, listed, _ := b.forward()
	if listed["name"] != "9/http" || listed["remote_port"] != 9.0 {
		t.Errorf("the profile's: %v", listed)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--reverse", "x"}, 2, "PORT or PORT:LOCAL"},
		{[]string{"--reverse", "0:5000"}, 2, "each from 1 to 65535"},
		{[]string{"--close", "--port", "8888"}, 2, "--close goes without --port"},
		{[]string{"--close", "--reverse", "6006"}, 2, "--close goes without --reverse"},
		{[]string{"--close", "--keep"}, 2, "--close goes without --keep"},
		{[]string{"8265", "--close", "--http"}, 2, "--close goes without --http"},
		{[]string{"--reverse", "6006"}, 1, "the nodes of a local cluster are this machine"},
		{[]string{"--port", "8000", "8265", "8266"}, 2, "--port is for one forward"},
		{[]string{"8265/https"}, 2, "none of jupyter, tensorboard and a port number"},
	} {
		if r := b.run(append([]string{"forward", "bed"}, c.args...)...); r.code != c.code || !strings.Contains(r.stderr, c.says) {
			t.Errorf("forward %v: exit code %d\n%s", c.args, r.code, r.stderr)
		}
	}
}

// killJupyter kills the service and what watches over it.
func (b *bed) killJupyter() {
	b.t.Helper()
	running := append(b.pids("--port-retries=0"), b.pids("supervise")...)
	if len(running) < 2 {
		b.t.Fatalf("processes of the service: %v", running)
	}
	for _, pid := range running {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}
