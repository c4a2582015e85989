package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testport"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/store"
)

// loopback reaches names below localhost as browsers do, without asking anybody.
var loopback = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && strings.HasSuffix(host, ".localhost") {
		addr = "127.0.0.1:" + port
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}}

// answerTo is the status of an address, without following a redirect, and
// where that leads.
func answerTo(t *testing.T, address string) (status int, location string) {
	t.Helper()
	client := http.Client{
		Timeout:       20 * time.Second,
		Transport:     loopback,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Location")
}

// forward starts a dlwb that holds a tunnel open, and waits until it does.
func (b *bed) forward(args ...string) (*started, printedEvent, *url.URL) {
	b.t.Helper()
	s := b.start(append([]string{"forward", "bed", "--json"}, args...)...)
	b.t.Cleanup(func() { _ = s.cmd.Process.Kill(); s.end() })
	e := s.await("an open forward", func(e printedEvent) bool { return e["event"] != nil && e["event"] != "waiting" })
	if e["event"] != "forward_opened" {
		b.t.Fatalf("forward %v: %v", args, e)
	}
	address, _ := e["entry"].(string)
	if e["kind"] != "http" {
		address = e["url"].(string)
	}
	u, err := url.Parse(address)
	if err != nil {
		b.t.Fatal(err)
	}
	return s, e, u
}

// up brings the bed's cluster up, with nothing running on it.
func (b *bed) up(more string) {
	b.t.Helper()
	b.profile("print('hello')\n", more)
	if r := b.run("sync", "--json"); r.code != 0 {
		b.t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// pids are the bed's processes whose command line holds a word.
func (b *bed) pids(word string) []int {
	b.t.Helper()
	var found []int
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if bytes.Contains(line, []byte(word)) && bytes.Contains(env, []byte(b.home+"/state/")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, pid)
		}
	}
	return found
}

func (b *bed) nodeHome(node int) string {
	return filepath.Join(b.home, "state", "local", "bed", fmt.Sprintf("node%d", node), "home")
}

func needJupyter(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("jupyter-notebook"); err != nil {
		t.Skip("jupyter-notebook is not installed: apt-get install jupyter-notebook")
	}
}

// jupyterRecord is the file on node 0 that has Jupyter's identity.
func (b *bed) jupyterRecord() string {
	b.t.Helper()
	found, _ := filepath.Glob(filepath.Join(b.nodeHome(0), ".dlwb", "jupyter.*.0"))
	if len(found) != 1 {
		b.t.Fatalf("records of Jupyter: %q", found)
	}
	return found[0]
}

// jupyterToken is what Jupyter itself asks for, from its record on the node.
func (b *bed) jupyterToken() string {
	b.t.Helper()
	var id, token string
	var port int
	text, err := os.ReadFile(b.jupyterRecord())
	if _, e := fmt.Sscan(string(text), &id, &port, &token); err != nil || e != nil || len(token) != 32 {
		b.t.Fatalf("the record of Jupyter: %q, %v, %v", text, err, e)
	}
	return token
}

func TestJupyterAnswersThroughTheTunnelToATicketAndToItsToken(t *testing.T) {
	needJupyter(t)
	b := newBedAlone(t).withOneNode()
	b.up("")
	first, opened, page := b.forward("jupyter")
	token, ticket := b.jupyterToken(), page.Query().Get("dlwb_token")
	if len(ticket) != 32 || opened["kind"] != "http" || strings.Contains(page.String(), token) {
		t.Fatalf("opened %v", opened)
	}
	bare := *page
	bare.Path, bare.RawQuery = "/tree", ""
	if address := opened["url"]; address != "http://"+page.Host+"/" || !strings.HasPrefix(page.Host, "jupyter-bed-") || !strings.HasSuffix(page.Hostname(), ".localhost") {
		t.Errorf("the address is %v", address)
	}
	if status, to := answerTo(t, bare.String()); status != http.StatusForbidden {
		t.Errorf("without anything: %d %s", status, to)
	}
	if status, to := b.visit(page).get("/tree"); status != http.StatusOK {
		t.Errorf("in the browser that was let in: %d %s", status, to)
	}
	if status, to := answerTo(t, page.String()); status != http.StatusForbidden {
		t.Errorf("in another browser, with the same address: %d %s", status, to)
	}
	bare.RawQuery = "token=" + token
	if status, to := answerTo(t, bare.String()); status != http.StatusOK {
		t.Errorf("with Jupyter's token: %d %s", status, to)
	}
	bare.Path, bare.RawQuery = "/api/contents", "token="+strings.Repeat("0", 32)
	if status, _ := answerTo(t, bare.String()); status != http.StatusForbidden {
		t.Errorf("with another token: %d", status)
	}
	if found := b.pids(token); len(found) > 0 {
		t.Errorf("the token shows in the argument list of %v", found)
	}
	if info, err := os.Stat(b.jupyterRecord()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record with the token: %v, %v", info.Mode(), err)
	}

	// Another dlwb finds it, and takes the next local port.
	second, again, page := b.forward("jupyter")
	if b.jupyterToken() != token || again["remote_port"] != opened["remote_port"] || page.Query().Get("dlwb_token") == ticket {
		t.Errorf("the second: %v, the first: %v", again, opened)
	}
	if again["local_port"] == opened["local_port"] || !strings.Contains(fmt.Sprint(again["note"]), "is taken") {
		t.Errorf("the second: %v", again)
	}

	// A dlwb that is killed takes only its tunnel with it, and the next one has
	// the port that the first one had.
	first.signal(syscall.SIGKILL)
	second.signal(syscall.SIGKILL)
	first.end()
	second.end()
	third, restarted, page := b.forward("jupyter")
	if b.jupyterToken() != token || restarted["local_port"] != opened["local_port"] {
		t.Errorf("after a restart: %v", restarted)
	}
	v := b.visit(page)
	if status, to := v.get("/tree"); status != http.StatusOK {
		t.Errorf("after a restart: %d %s", status, to)
	}
	v.runsACell()
	b.tokenIsNowhere(token)
	b.tokenIsNowhere(ticket)
	b.tokenIsNowhere("dlwb_token")

	// Where Jupyter itself has died, the next dlwb starts another one.
	third.signal(syscall.SIGINT)
	if code := third.end(); code != 0 {
		t.Errorf("after an interrupt: exit code %d", code)
	}
	b.killJupyter()
	fourth, _, page := b.forward("jupyter")
	if b.jupyterToken() == token {
		t.Error("the dead one's token was given again")
	}
	if status, _ := b.visit(page).get("/tree"); status != http.StatusOK {
		t.Errorf("the one that took its place answers %d", status)
	}

	// The cluster takes everything with it, and whoever holds a tunnel sees it.
	if d := b.run("down", "--json"); d.code != 0 || d.one(t, "receipt")["proven"] != true {
		t.Errorf("down: exit code %d\n%s%s", d.code, d.stdout, d.stderr)
	}
	if code := fourth.end(); code != 0 {
		t.Errorf("the one that held the tunnel: exit code %d", code)
	}
	if left, err := filepath.Glob(filepath.Join(b.home, "state", "forwards", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// tokenIsNowhere looks through everything that dlwb has stored.
func (b *bed) tokenIsNowhere(token string) {
	b.t.Helper()
	db, err := store.Open(filepath.Join(b.home, "state", "dlwb.sqlite"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Cluster("bed")
	if err != nil {
		b.t.Fatal(err)
	}
	rows, err := db.SinceLife(c.ID, 0, 0)
	if err != nil || len(rows) == 0 {
		b.t.Fatalf("%d events, %v", len(rows), err)
	}
	opened := 0
	for _, row := range rows {
		if row.Name == "forward_opened" {
			opened++
		}
		if bytes.Contains(row.Body, []byte(token)) {
			b.t.Errorf("the token is in an event %s: %s", row.Name, row.Body)
		}
	}
	if opened == 0 || bytes.Contains(c.Data, []byte(token)) {
		b.t.Errorf("%d forwards were opened; the cluster's record: %s", opened, c.Data)
	}
}

// visitor is a browser that was let in by a ticket.
type visitor struct {
	t      *testing.T
	client *http.Client
	base   string // http://HOST:PORT
}

func (b *bed) visit(page *url.URL) visitor {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	v := visitor{t: b.t, base: "http://" + page.Host, client: &http.Client{
		Jar: jar, Timeout: 30 * time.Second, Transport: loopback,
	}}
	resp, err := v.client.Get(page.String())
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.Request.URL.Query().Has("dlwb_token") || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("with a ticket: %s at %s", resp.Status, resp.Request.URL)
	}
	return v
}

// get is the status of a page, and what it holds.
func (v visitor) get(path string) (int, string) {
	v.t.Helper()
	resp, err := v.client.Get(v.base + path)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// standIn is as much of TensorBoard as dlwb needs to know: the module, its
// options, and a page.
const standIn = `
import argparse, functools, http.server, os
p = argparse.ArgumentParser()
p.add_argument("--logdir", required=True)
p.add_argument("--host", required=True)
p.add_argument("--port", type=int, required=True)
a = p.parse_args()
print("serving", os.path.abspath(a.logdir), flush=True)
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=a.logdir)
http.server.ThreadingHTTPServer((a.host, a.port), handler).serve_forever()
`

func TestTensorBoardServesTheCodeDirectoryOrSaysHowToGetIt(t *testing.T) {
	b := newBedAlone(t).withOneNode()
	b.write("marker.txt", "here")
	b.up("")
	if r := b.run("forward", "bed", "tensorboard"); r.code != 1 || !strings.Contains(r.stderr, "tensorboard is not installed") {
		t.Skipf("TensorBoard is installed here: exit code %d\n%s", r.code, r.stderr)
	} else if !strings.Contains(r.stderr, "next: ") || !strings.Contains(r.stderr, "tensorboard to requirements.txt") {
		t.Errorf("how to get it is not said:\n%s", r.stderr)
	}
	site := b.run("exec", "bed", "--node", "0", "--json", "--", "/usr/bin/python3", "-m", "site", "--user-site")
	_, rest, _ := strings.Cut(site.stdout, `"stdout":"`)
	dir, _, _ := strings.Cut(rest, `\n`)
	if !strings.HasPrefix(dir, b.nodeHome(0)) {
		t.Fatalf("site packages of the node: %s", site.stdout)
	}
	// A directory of that name among the code is none of it.
	if err := os.MkdirAll(filepath.Join(b.nodeHome(0), "dlwb", "bed", "code", "tensorboard"), 0o755); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(dir, "tensorboard")
	if err := os.MkdirAll(module, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"__init__.py": "", "main.py": standIn} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, _, page := b.forward("tensorboard")
	if status, text := b.visit(page).get("/marker.txt"); status != http.StatusOK || text != "here" {
		t.Errorf("a file of the code directory: %d %s", status, text)
	}
}

// What is behind node1: is that node's own: a service and a port, at the same time as
// node 0's of the same name.
func TestAForwardLeadsToTheNodeThatItNames(t *testing.T) {
	b := newBedAlone(t)
	b.up("")
	for node := range 2 {
		bin := filepath.Join(b.nodeHome(node), "..", "bin", "tensorboard")
		if err := testprogram.Write(bin, []byte("#!/usr/bin/env python3"+standIn), 0o755); err != nil {
			t.Fatal(err)
		}
		code := filepath.Join(b.nodeHome(node), "dlwb", "bed", "code", "which.txt")
		if err := os.WriteFile(code, fmt.Appendf(nil, "node %d", node), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pages := map[string]*url.URL{}
	for _, name := range []string{"tensorboard", "node1:tensorboard"} {
		_, opened, page := b.forward(name)
		if opened["name"] != name || opened["node"] != float64(strings.Count(name, "1")) {
			t.Errorf("opened %v", opened)
		}
		pages[name] = page
	}
	for name, page := range pages {
		if status, text := b.visit(page).get("/which.txt"); status != http.StatusOK || text != fmt.Sprintf("node %d", strings.Count(name, "1")) {
			t.Errorf("%s leads to %d %s", name, status, text)
		}
	}
	if _, opened, _ := b.forward("node0:tensorboard"); opened["name"] != "tensorboard" { // one thing has one name
		t.Errorf("opened %v", opened)
	}
	if _, opened, _ := b.forward("node1:1", "--http"); opened["name"] != "node1:1/http" || !strings.Contains(fmt.Sprint(opened["note"]), "port 1 of node1") {
		t.Errorf("opened %v", opened)
	}
	for args, want := range map[string]string{"node2:8265": "it has 2, counted from 0", "node1:jupiter": "did you mean node1:jupyter?", "node1:0": "1 to 65535"} {
		if r := b.run("forward", "bed", args); r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
}

// A service that ends is told with its last lines. What runs when it is looked for may
// end before it is reached: then there is a new one.
func TestAServiceThatEndsIsToldAndOneThatEndsAsItIsFoundIsStartedAnew(t *testing.T) {
	b := newBedAlone(t).withOneNode()
	b.up("")
	bin := filepath.Join(b.nodeHome(0), "..", "bin")
	if err := testprogram.Write(filepath.Join(bin, "tensorboard"), []byte("#!/bin/sh\necho no such luck >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := b.run("forward", "bed", "tensorboard")
	if r.code != 1 || !strings.Contains(r.stderr, "it ended before it answered") || !strings.Contains(r.stderr, "no such luck") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	dying := strings.Replace(standIn, "handler = ", `
class Dying(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if os.path.exists("die"):
            os.remove("die")
            os._exit(3)
        super().do_GET()
handler = `, 1)
	dying = "#!/usr/bin/python3\n" + strings.Replace(dying, "http.server.SimpleHTTPRequestHandler,", "Dying,", 1)
	if err := testprogram.Write(filepath.Join(bin, "tensorboard"), []byte(dying), 0o755); err != nil {
		t.Fatal(err)
	}
	first, _, _ := b.forward("tensorboard")
	first.signal(syscall.SIGINT)
	first.end()
	old := b.pids("--logdir")
	die := filepath.Join(b.nodeHome(0), "dlwb", "bed", "code", "die")
	if err := os.WriteFile(die, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.forward("tensorboard")
	if _, err := os.Stat(die); err == nil {
		t.Error("the old one was not asked")
	}
	if now := b.pids("--logdir"); len(now) != 1 || len(old) != 1 || now[0] == old[0] {
		t.Errorf("processes before %v, and now %v", old, now)
	}
}

func TestForwardToAPort(t *testing.T) {
	b := newBedAlone(t).withOneNode()
	b.up("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	port := strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)

	// The node is this machine: a tunnel on the same port would lead to itself.
	_, opened, page := b.forward(port)
	if status, _ := answerTo(t, page.String()); status != http.StatusOK {
		t.Errorf("through the tunnel: %d", status)
	}
	if !strings.Contains(fmt.Sprint(opened["note"]), "port "+port+" is the node's own") {
		t.Errorf("opened %v", opened)
	}
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{port, "--port", port}, 1, []string{"port " + port + " is the node's own"}},
		{[]string{port, "--port", page.Port()}, 1, []string{"local port " + page.Port() + " is taken", "is free: --port "}},
		{[]string{"0"}, 2, []string{"1 to 65535"}},
		{[]string{"jupiter"}, 2, []string{"jupyter, tensorboard and a port", "did you mean jupyter?"}},
		{[]string{port, "--port", "70000"}, 2, []string{"1 to 65535"}},
	} {
		r := b.run(append([]string{"forward", "bed"}, c.args...)...)
		for _, s := range c.says {
			if r.code != c.code || !strings.Contains(r.stderr, s) {
				t.Errorf("forward %v: exit code %d, %q is not said:\n%s", c.args, r.code, s, r.stderr)
			}
		}
	}
	nobody := strconv.Itoa(testport.Free(t))
	if _, silent, _ := b.forward(nobody); !strings.Contains(fmt.Sprint(silent["note"]), "nothing answers on port "+nobody) {
		t.Errorf("opened %v", silent)
	}
}

func TestForwardsOfTheProfileOpenWithTheRun(t *testing.T) {
	b := newBedAlone(t).withOneNode()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	b.profile(fmt.Sprintf(lossScript, 4000, 0.02), fmt.Sprintf("forward: [%d, tensorboard]\n", port))
	first := b.start("run", "--down", "--json")
	var opened, warned bool
	first.await("the forward and the warning", func(e printedEvent) bool {
		switch e["event"] {
		case "forward_opened":
			status, _ := answerTo(t, e["url"].(string))
			opened = status == http.StatusOK
		case "notice":
			warned = warned || strings.Contains(fmt.Sprint(e["text"]), "tensorboard is not installed")
		case "run_ended":
			t.Fatalf("the run has ended: %v", e)
		}
		return opened && warned
	})
	if r := b.run("stop", "--json"); r.code != 0 {
		t.Errorf("stop: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	closed := first.await("the end of the forward", func(e printedEvent) bool { return e["event"] == "forward_closed" })
	if closed["name"] != strconv.Itoa(port) {
		t.Errorf("closed %v", closed)
	}
	first.await("the receipt", func(e printedEvent) bool { return e["event"] == "receipt" && e["proven"] == true })
	if code := first.end(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}
