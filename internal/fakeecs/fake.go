//go:build unix

// Package fakeecs is a stand-in for Amazon ECS and Auto Scaling, with launch templates,
// sessions of Systems Manager, log groups and instance profiles, on top of
// internal/fakeaws, which has the machines. A container of it really runs its command
// as a process of this machine. It is for tests, and is no part of the program.
package fakeecs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/fakeecr"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// Region is where everything is.
const Region = "us-west-2"

// Fake is one account.
type Fake struct {
	URL string
	AWS *fakeaws.Server
	// Ray is a directory with a real ray and its python3; empty: the dashboard is one
	// of the fake's own.
	Ray string
	// NeverBegins has each job fail before its driver starts, with this message of Ray's.
	NeverBegins string
	// Lost are the numbers of workers, from 0, whose Ray does not come up.
	Lost map[int]bool
	// Full has machines of a type not come, by the words of Auto Scaling.
	Full map[string]string
	// Unnamed has machines come without the tag that names their group.
	Unnamed bool
	// Profiles are the instance profiles that are there.
	Profiles []string

	fakeecr.Holder
	dir     string
	net     int // the second byte of the machines' addresses
	server  *httptest.Server
	callers atomic.Int64 // connections that are there
	done    chan struct{}
	every   sync.WaitGroup

	mu        sync.Mutex
	ahead     time.Duration
	answer    func(call string, nth int) *Error
	cut       func(call string, nth int) bool
	counts    map[string]int
	journal   []Call
	machines  int
	faces     int // network interfaces of containers
	clusters  map[string]*cluster
	providers map[string]*provider
	tasks     map[string][]*definition // by family
	groups    map[string]*group
	templates map[string]*template
	logs      map[string]map[string][]string
	ports     map[string]string // the real port of each of Ray's
	board     *board

	parameters map[string]m // of Systems Manager
}

// Call is one that came in.
type Call struct {
	Service, Name string
	Body          []byte
}

// Error is one of AWS's.
type Error struct {
	Status     int
	Code, Says string
}

// New starts one below a directory.
func New(dir string) *Fake {
	f := &Fake{dir: dir, net: 20 + os.Getpid()%200, done: make(chan struct{}), counts: map[string]int{}, clusters: map[string]*cluster{}, providers: map[string]*provider{},
		tasks: map[string][]*definition{}, groups: map[string]*group{}, templates: map[string]*template{}, logs: map[string]map[string][]string{},
		Profiles: []string{"ecsInstanceRole"}, Lost: map[int]bool{}, Full: map[string]string{}, ports: map[string]string{}, parameters: map[string]m{}}
	f.AWS = fakeaws.New(fakeaws.Options{Regions: []fakeaws.Region{{Name: Region}}, Boot: booter{f}})
	f.board = newBoard(f)
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.server.Config.ConnState = func(_ net.Conn, is http.ConnState) {
		switch is {
		case http.StateNew:
			f.callers.Add(1)
		case http.StateClosed, http.StateHijacked:
			f.callers.Add(-1)
		}
	}
	f.server.Start()
	f.URL = f.server.URL
	f.every.Go(f.reconcile)
	return f
}

// Close ends all containers and the servers.
func (f *Fake) Close() {
	close(f.done)
	f.server.Close() // nothing is begun any more
	f.AWS.Close()
	f.every.Wait()
	f.mu.Lock()
	for _, c := range f.clusters {
		for _, t := range c.tasks {
			t.kill("the fake ends")
		}
	}
	f.mu.Unlock()
	f.board.close()
}

// Env is what leads a program here; its PATH has a session-manager-plugin that connects
// to what a session of the fake leads to.
func (f *Fake) Env() []string {
	bin := filepath.Join(f.dir, "bin")
	_ = os.MkdirAll(bin, 0o755)
	_ = testprogram.Write(filepath.Join(bin, "session-manager-plugin"), []byte(plugin), 0o755)
	env := f.AWS.Env()
	env[0] = "AWS_ENDPOINT_URL=" + f.URL
	return append(env, "PATH="+bin+":"+os.Getenv("PATH"))
}

// plugin is AWS's program as far as dlwb uses it: stdin and stdout are the connection, or
// one to a port of loopback that it opens.
const plugin = `#!/usr/bin/env python3
import json, os, socket, sys, threading
if sys.argv[1:] == ["--version"]:
    sys.exit(print("1.2.707.0"))
answer = json.loads(os.environ[sys.argv[1]])
asked = json.loads(sys.argv[5])
assert sys.argv[3] == "StartSession" and asked["DocumentName"] in ("AWS-StartSSHSession", "AWS-StartPortForwardingSessionToRemoteHost")
host, _, port = answer["StreamUrl"].removeprefix("tcp://").partition(":")
try:
    s = socket.create_connection((host, int(port)))
except OSError as e:
    sys.exit("Connection to destination port failed, check SSM Agent logs: %s" % e)
inward, outward = 0, 1
if asked["DocumentName"] == "AWS-StartPortForwardingSessionToRemoteHost":
    l = socket.create_server(("127.0.0.1", int(asked["Parameters"]["localPortNumber"][0])))
    print("Port %d opened for sessionId %s." % (l.getsockname()[1], answer["SessionId"]), flush=True)
    here = l.accept()[0]
    inward = outward = here.fileno()
def up():
    while True:
        data = os.read(inward, 65536)
        if not data:
            break
        s.sendall(data)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while True:
    data = s.recv(65536)
    if not data:
        break
    while data:
        data = data[os.write(outward, data):]
os._exit(0)
`

// Calls are all that came in, in order.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.journal...)
}

// Answer sets what may answer a call before anything is done.
func (f *Fake) Answer(by func(call string, nth int) *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = by
}

// Cut sets what may drop the connection after a call was done.
func (f *Fake) Cut(by func(call string, nth int) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = by
}

// hooks counts a call and gives what may disturb it.
func (f *Fake) hooks(call string) (nth int, answer func(string, int) *Error, cut func(string, int) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[call]++
	return f.counts[call], f.answer, f.cut
}

// Alone reports whether nobody is connected: what was asked for by who is killed has
// come in by then.
func (f *Fake) Alone() bool { return f.callers.Load() == 0 }

// Counts are how often each call came in, those to the dashboard that change something
// too.
func (f *Fake) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// request is a call with what it asks.
type request struct {
	service, name string
	form          url.Values
	in            map[string]any
}

func (f *Fake) parse(r *http.Request, body []byte) request {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		service, name, _ := strings.Cut(target, ".")
		q := request{service: service, name: name}
		_ = json.Unmarshal(body, &q.in)
		return q
	}
	form, _ := url.ParseQuery(string(body))
	q := request{service: "ec2", name: form.Get("Action"), form: form}
	switch form.Get("Version") {
	case "2011-01-01":
		q.service = "autoscaling"
	case "2010-05-08":
		q.service = "iam"
	}
	return q
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	q := f.parse(r, body)
	f.mu.Lock()
	f.journal = append(f.journal, Call{q.service, q.name, body})
	f.mu.Unlock()
	nth, answer, cut := f.hooks(q.name)
	time.Sleep(3 * time.Millisecond)
	if answer != nil {
		if e := answer(q.name, nth); e != nil {
			f.refuse(w, q, e)
			return
		}
	}
	rec := httptest.NewRecorder()
	f.act(rec, r, q, body)
	if cut != nil && cut(q.name, nth) {
		if h, is := w.(http.Hijacker); is {
			if c, _, err := h.Hijack(); err == nil {
				_ = c.Close()
			}
		}
		return
	}
	for key, values := range rec.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// act finds what answers a call: this fake, or the one below it.
func (f *Fake) act(w http.ResponseWriter, r *http.Request, q request, body []byte) {
	switch {
	case q.service == "AmazonEC2ContainerServiceV20141113":
		f.json(w, q, f.ecs)
	case q.service == fakeecr.Target && f.ECR() != nil:
		f.json(w, q, func(q request) (any, *Error) {
			out, e := f.ECR().Answer(q.name, body)
			if e != nil {
				return nil, &Error{400, e.Code, e.Says}
			}
			return out, nil
		})
	case strings.HasPrefix(q.service, "Logs_"):
		f.json(w, q, f.cloudwatch)
	case q.service == "AmazonSSM" && (strings.HasSuffix(q.name, "Session") || strings.HasPrefix(str(q.in, "Name"), "/dlwb/") || strings.HasPrefix(str(q.in, "Name"), "/aws/service/ecs/")):
		f.json(w, q, f.ssm)
	case q.service == "autoscaling":
		f.form(w, q, f.scaling)
	case q.service == "iam":
		f.form(w, q, f.iam)
	case q.service == "ec2" && strings.Contains(q.name, "LaunchTemplate"):
		f.form(w, q, f.launchTemplates)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		f.AWS.ServeHTTP(w, r)
	}
}

func (f *Fake) json(w http.ResponseWriter, q request, act func(request) (any, *Error)) {
	f.mu.Lock()
	out, e := act(q)
	f.mu.Unlock()
	if e != nil {
		f.refuse(w, q, e)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

func (f *Fake) form(w http.ResponseWriter, q request, act func(request) (string, *Error)) {
	f.mu.Lock()
	out, e := act(q)
	f.mu.Unlock()
	if e != nil {
		f.refuse(w, q, e)
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	if q.service == "ec2" {
		_, _ = fmt.Fprintf(w, `<%[1]sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>%[2]s</%[1]sResponse>`, q.name, out)
		return
	}
	_, _ = fmt.Fprintf(w, `<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%[1]sResponse>`, q.name, out)
}

func (f *Fake) refuse(w http.ResponseWriter, q request, e *Error) {
	if q.form == nil {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.Header().Set("X-Amzn-ErrorType", e.Code)
		w.WriteHeader(e.Status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": e.Code, "message": e.Says})
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(e.Status)
	if q.service == "ec2" {
		_, _ = fmt.Fprintf(w, `<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r</RequestID></Response>`, e.Code, e.Says)
		return
	}
	_, _ = fmt.Fprintf(w, `<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, e.Code, e.Says)
}

func bad(code, format string, args ...any) *Error {
	return &Error{400, code, fmt.Sprintf(format, args...)}
}

// str, texts and number read a member of a JSON body.
func str(in map[string]any, key string) string { s, _ := in[key].(string); return s }

func texts(in map[string]any, key string) (all []string) {
	list, _ := in[key].([]any)
	for _, v := range list {
		s, _ := v.(string)
		all = append(all, s)
	}
	return all
}

func number(in map[string]any, key string) int { n, _ := in[key].(float64); return int(n) }

func objects(in map[string]any, key string) (all []map[string]any) {
	list, _ := in[key].([]any)
	for _, v := range list {
		m, _ := v.(map[string]any)
		all = append(all, m)
	}
	return all
}

// arn is one of the account.
func arn(service, what string) string {
	return "arn:aws:" + service + ":" + Region + ":123456789012:" + what
}

// Left is what is still there that was made, in words.
func (f *Fake) Left() (all []string) {
	all = f.AWS.Left()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, c := range f.clusters {
		if c.status != "INACTIVE" {
			all = append(all, "cluster "+name)
		}
		for _, t := range c.tasks {
			if t.status != "STOPPED" {
				all = append(all, "task "+t.arn)
			}
		}
	}
	for name, p := range f.providers {
		if p.status != "INACTIVE" {
			all = append(all, "capacity provider "+name)
		}
	}
	for family, list := range f.tasks {
		for _, d := range list {
			if d.active {
				all = append(all, "task definition "+family)
			}
		}
	}
	for name := range f.groups {
		all = append(all, "auto scaling group "+name)
	}
	for name := range f.templates {
		all = append(all, "launch template "+name)
	}
	for name := range f.logs {
		all = append(all, "log group "+name)
	}
	for name := range f.parameters {
		all = append(all, "parameter "+name)
	}
	return all
}
