//go:build linux

package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/otheruser"
)

// asOther asks for an address as another user of the machine would, with curl.
func asOther(t *testing.T, page string, args ...string) (status string) {
	t.Helper()
	said, _ := otheruser.Run(t, "curl", append([]string{"-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20"}, append(args, page)...)...)
	return said
}

func TestAnotherUserOfTheMachineGetsNothingThroughAForward(t *testing.T) {
	b := newBedAlone(t).withOneNode()
	b.up("")
	var seen atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	port := strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)

	s, _, page := b.forward(port, "--http")
	entry := page.String()
	at := "http://" + page.Host + "/"
	here := "http://127.0.0.1:" + page.Port() + "/"
	for name, got := range map[string]string{
		"with nothing":                asOther(t, at),
		"with the ticket":             asOther(t, entry),
		"by the address":              asOther(t, here),
		"by the address, with Host":   asOther(t, here, "-H", "Host: "+page.Host),
		"with the ticket, from ::1":   asOther(t, "http://[::1]:"+page.Port()+"/?"+page.RawQuery, "-H", "Host: "+page.Host),
		"with the ticket in the form": asOther(t, at+"_dlwb/enter", "-d", page.RawQuery),
		"with a websocket":            asOther(t, at+"ws", "-H", "Upgrade: websocket", "-H", "Connection: Upgrade", "-H", "Origin: http://"+page.Host),
	} {
		if got != "403" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if seen.Load() != 0 {
		t.Errorf("%d requests reached the server", seen.Load())
	}
	v := b.visit(page) // the ticket is still good: the owner was not locked out
	if status, text := v.get("/"); status != http.StatusOK || text != "hello" {
		t.Errorf("the owner: %d %q", status, text)
	}
	reached := seen.Load()
	for _, c := range v.client.Jar.Cookies(page) {
		if got := asOther(t, at, "-H", "Cookie: "+c.String()); got != "403" {
			t.Errorf("with the owner's cookie: %s", got)
		}
	}
	if seen.Load() != reached {
		t.Errorf("%d requests reached the server", seen.Load()-reached)
	}
	s.await("that somebody was refused", func(e printedEvent) bool {
		return e["event"] == "forward" && strings.Contains(fmt.Sprint(e["why"]), fmt.Sprintf("a connection of user %d", otheruser.UID))
	})
	s.signal(syscall.SIGINT)
	s.end()
}

// blunt says something at once, hangs up in the rudest way, and reads nothing.
const blunt = `import socket, struct, sys
for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6), ("::ffff:127.0.0.1", socket.AF_INET6)):
    for rude in (False, True, None):
        s = socket.socket(family)
        try:
            s.connect((host, int(sys.argv[1])))
            s.sendall(b"POST /taken HTTP/1.0\r\n\r\n")
            if rude:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if rude is None:
                s.settimeout(20)
                print("got", s.recv(100))
        except OSError as e:
            print(e)
        s.close()
`

func TestAnotherUserOfTheMachineGetsNothingThroughARawPort(t *testing.T) {
	b := newBedAlone(t).withOneNode()
	b.up("")
	reached := make(chan string, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { reached <- "a connection"; return ctx }
	server.Start()
	defer server.Close()
	s, _, page := b.forward(strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port))
	<-reached // dlwb has looked whether something answers there; a busy server sees it late
	said, _ := otheruser.Run(t, "/usr/bin/python3", "-c", blunt, page.Port())
	if strings.Contains(strings.ReplaceAll(said, "got b''", ""), "got") {
		t.Errorf("something came back:\n%s", said)
	}
	if status, _ := answerTo(t, page.String()); status != http.StatusOK {
		t.Errorf("the owner: %d", status)
	}
	var came []string
	for len(reached) > 0 {
		came = append(came, <-reached)
	}
	if strings.Join(came, ", ") != "a connection, /" {
		t.Errorf("what reached the server: %q", came)
	}
	s.signal(syscall.SIGINT)
	s.end()
}

func TestAnotherUserOfTheMachineReadsNoState(t *testing.T) {
	b := newBedAlone(t)
	b.up("")
	_, _, page := b.forward("9/http")
	for dir := b.home; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) { // as a home is that others may enter
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	state := filepath.Join(b.home, "state")
	if err := filepath.WalkDir(state, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(paths) < 20 {
		t.Fatalf("only %d files and directories: %q", len(paths), paths)
	}
	const read = `import os, socket, stat, sys
for path in open(sys.argv[1]).read().split("\0"):
    for what in (lambda: os.stat(path), lambda: os.listdir(path), lambda: open(path, "rb").read(1), lambda: open(path, "ab"),
                 lambda: socket.socket(socket.AF_UNIX).connect(path)):
        try:
            what()
            print("got at", path)
        except OSError:
            pass
print("looked")
`
	list := filepath.Join(b.home, "paths")
	if err := os.WriteFile(list, []byte(strings.Join(append(paths[1:], paths[0]+"/x"), "\x00")), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, _ := otheruser.Run(t, "/usr/bin/python3", "-c", read, list); said != "looked\n" {
		t.Errorf("another user says:\n%s", said)
	}
	// The ticket is in no argument list, and in no environment that is open.
	_, ticket, _ := strings.Cut(page.RawQuery, "=")
	if found, _ := otheruser.Run(t, "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"); len(ticket) != 32 || !strings.Contains(found, "forward\nbed") || strings.Contains(found, ticket) {
		t.Errorf("a ticket %q is among what another user reads of processes, or nothing was read: %d bytes", ticket, len(found))
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == 0 && info.Size() < 10<<20 {
			f, err := os.Open(path)
			if err != nil {
				continue
			}
			text, _ := io.ReadAll(f)
			_ = f.Close()
			if strings.Contains(string(text), ticket) {
				t.Errorf("the ticket is in %s", path)
			}
		}
	}
}
