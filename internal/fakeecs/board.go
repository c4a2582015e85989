//go:build unix

package fakeecs

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed" // what the driver imports
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

//go:embed ray.py
var rayModule string

// board is a dashboard of Ray as far as dlwb asks one, for tests that are about AWS:
// its nodes are the containers, and a job really runs, on this machine.
type board struct {
	f      *Fake
	server *httptest.Server

	mu       sync.Mutex
	token    string
	nodes    map[*task]bool // whether it is the head
	packages map[string][]byte
	jobs     map[string]*rayJob
	runs     sync.WaitGroup
	posts    int
}

type rayJob struct {
	status, log string
	message     string
	node        string // of the driver
	code        *int
	from, to    time.Time
	proc        *exec.Cmd
	stopped     bool
}

func newBoard(f *Fake) *board {
	b := &board{f: f, nodes: map[*task]bool{}, packages: map[string][]byte{}, jobs: map[string]*rayJob{}}
	b.server = httptest.NewServer(b)
	return b
}

func (b *board) address() string { return strings.TrimPrefix(b.server.URL, "http://") }

func (b *board) close() {
	b.server.CloseClientConnections()
	b.server.Close()
	b.mu.Lock()
	for _, j := range b.jobs {
		j.signal(syscall.SIGKILL)
	}
	b.mu.Unlock()
	b.runs.Wait()
}

func (b *board) join(t *task, isHead bool, env []m, gpus float64) {
	t.resources = map[string]float64{"GPU": gpus}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[t] = isHead
	for _, e := range env {
		if str(e, "name") == "RAY_AUTH_TOKEN" {
			b.token = str(e, "value")
		}
	}
}

// leave takes a container out. With the head go all jobs.
func (b *board) leave(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[t] {
		for id, j := range b.jobs {
			j.signal(syscall.SIGKILL)
			delete(b.jobs, id)
		}
	}
	delete(b.nodes, t)
}

func (j *rayJob) signal(s syscall.Signal) {
	if j.proc != nil && j.code == nil {
		_ = syscall.Kill(-j.proc.Process.Pid, s)
	}
}

// Posts is how many jobs were asked for, and Jobs how many there are.
func (f *Fake) Posts() int {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	return f.board.posts
}

// StopJobs ends all jobs as somebody does by Ray's own means.
func (f *Fake) StopJobs() {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	for _, j := range f.board.jobs {
		j.stopped = true
		j.signal(syscall.SIGTERM)
	}
}

// Unended is how many jobs have not ended.
func (f *Fake) Unended() (n int) {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	for _, j := range f.board.jobs {
		if j.code == nil && !j.stopped && j.status == "RUNNING" {
			n++
		}
	}
	return n
}

// headAt is the address of the head; own: its container has it for itself.
func (b *board) headAt() (ip string, own bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t, isHead := range b.nodes {
		if isHead {
			return t.ip, t.own
		}
	}
	return "", false
}

func (b *board) hasHead() bool {
	for _, isHead := range b.nodes {
		if isHead {
			return true
		}
	}
	return false
}

// ServeHTTP answers one call.
func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	up, token := b.hasHead(), b.token
	b.mu.Unlock()
	if !up {
		panic(http.ErrAbortHandler)
	}
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token { // the blueprint's Ray asks for none
		http.Error(w, "Unauthorized: Missing authentication token", http.StatusUnauthorized)
		return
	}
	name := changes(r)
	if name == "" {
		b.act(w, r, body)
		return
	}
	nth, answer, cut := b.f.hooks(name)
	if answer != nil {
		if e := answer(name, nth); e != nil {
			http.Error(w, e.Says, e.Status)
			return
		}
	}
	rec := httptest.NewRecorder()
	b.act(rec, r, body)
	if cut != nil && cut(name, nth) {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// changes names a call that changes something, as Answer and Cut are told it.
func changes(r *http.Request) string {
	switch {
	case r.Method == http.MethodPut:
		return "UploadPackage"
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/stop"):
		return "StopJob"
	case r.Method == http.MethodPost:
		return "SubmitJob"
	}
	return ""
}

func (b *board) act(w http.ResponseWriter, r *http.Request, body []byte) {
	id, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/jobs/"), "/")
	switch {
	case r.URL.Path == "/api/v0/nodes":
		b.showNodes(w)
	case strings.HasPrefix(r.URL.Path, "/api/packages/gcs/"):
		b.pack(w, r, body)
	case r.URL.Path == "/api/jobs/" && r.Method == http.MethodPost:
		b.submit(w, body)
	case what == "logs/tail":
		b.tail(w, r, id)
	case what == "stop":
		b.stop(w, id)
	case what == "":
		b.look(w, id)
	default:
		http.NotFound(w, r)
	}
}

func (b *board) showNodes(w http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []m{}
	for t, isHead := range b.nodes {
		resources := m{"CPU": 2.0}
		if !isHead && !t.own {
			resources["dlwb_worker"] = 1.0
		}
		for key, value := range t.resources {
			resources[key] = value
		}
		all = append(all, m{"node_ip": t.ip, "is_head_node": isHead, "state": "ALIVE", "resources_total": resources})
	}
	_ = json.NewEncoder(w).Encode(m{"result": true, "data": m{"result": m{"result": all}}})
}

func (b *board) pack(w http.ResponseWriter, r *http.Request, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/api/packages/gcs/")
	if r.Method == http.MethodPut {
		b.packages["gcs://"+name] = body
	} else if b.packages["gcs://"+name] == nil {
		http.NotFound(w, r)
	}
}

func (b *board) submit(w http.ResponseWriter, body []byte) {
	var in struct {
		Entrypoint string `json:"entrypoint"`
		ID         string `json:"submission_id"`
		RuntimeEnv struct {
			WorkingDir string            `json:"working_dir"`
			EnvVars    map[string]string `json:"env_vars"`
		} `json:"runtime_env"`
	}
	err := json.Unmarshal(body, &in)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts++
	if err != nil || b.jobs[in.ID] != nil || b.packages[in.RuntimeEnv.WorkingDir] == nil {
		http.Error(w, "Traceback (most recent call last):\nValueError: Job with submission_id "+in.ID+" already exists. Please use a different submission_id.", http.StatusInternalServerError)
		return
	}
	dir := filepath.Join(b.f.dir, "jobs", in.ID)
	if err := unpack(b.packages[in.RuntimeEnv.WorkingDir], dir); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	j := &rayJob{status: "RUNNING", from: time.Now(), log: dir + ".log"}
	if b.jobs[in.ID] = j; b.f.NeverBegins != "" {
		j.status, j.message, j.to = "FAILED", b.f.NeverBegins, time.Now()
		_ = os.WriteFile(j.log, nil, 0o644) // Ray 2.60 gives an empty log
	} else {
		b.start(j, dir, in.Entrypoint)
	}
	_ = json.NewEncoder(w).Encode(m{"submission_id": in.ID})
}

func (b *board) start(j *rayJob, dir, entrypoint string) {
	module := filepath.Join(b.f.dir, "module")
	_ = os.MkdirAll(module, 0o755)
	_ = os.WriteFile(filepath.Join(module, "ray.py"), []byte(rayModule), 0o644)
	var at []string
	for t, isHead := range b.nodes {
		if !isHead {
			at = append(at, t.ip)
		}
	}
	slices.Sort(at)
	nodes, _ := json.Marshal(at)
	out, err := os.Create(j.log)
	if err != nil {
		return
	}
	j.node = "a5"
	j.proc = exec.Command("sh", "-c", entrypoint)
	j.proc.Dir, j.proc.Stdout, j.proc.Stderr = dir, out, out
	j.proc.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DLWB_") }), "PYTHONPATH="+module, "FAKE_RAY_NODES="+string(nodes))
	j.proc.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := j.proc.Start(); err != nil {
		return
	}
	b.runs.Go(func() {
		_ = j.proc.Wait()
		_ = out.Close()
		b.mu.Lock()
		defer b.mu.Unlock()
		code := j.proc.ProcessState.ExitCode()
		j.code, j.to, j.status = &code, time.Now(), "SUCCEEDED"
		if code != 0 {
			j.status = "FAILED"
		}
		if j.stopped {
			j.status, j.code = "STOPPED", nil
		}
	})
}

func unpack(body []byte, dir string) error {
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return err
	}
	return os.CopyFS(dir, z)
}

func (b *board) job(id string) *rayJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[id]; j != nil {
		copied := *j
		return &copied
	}
	return nil
}

func (b *board) look(w http.ResponseWriter, id string) {
	j := b.job(id)
	if j == nil {
		http.Error(w, "Job "+id+" does not exist", http.StatusNotFound)
		return
	}
	out := m{"status": j.status, "driver_node_id": j.node, "message": j.message, "driver_exit_code": j.code, "start_time": j.from.UnixMilli(), "end_time": nil}
	if !j.to.IsZero() {
		out["end_time"] = j.to.UnixMilli()
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (b *board) stop(w http.ResponseWriter, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[id]; j != nil {
		j.stopped = true
		j.signal(syscall.SIGTERM)
	}
	_ = json.NewEncoder(w).Encode(m{"stopped": true})
}

func (b *board) tail(w http.ResponseWriter, r *http.Request, id string) {
	if b.job(id) == nil {
		http.NotFound(w, r)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx := conn.CloseRead(context.Background())
	for sent := int64(0); ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		j := b.job(id)
		if j == nil {
			return
		}
		text, err := os.ReadFile(j.log)
		if err != nil {
			return
		}
		if end := int64(bytes.LastIndexByte(text, '\n') + 1); end > sent {
			if conn.Write(ctx, websocket.MessageText, text[sent:end]) != nil {
				return
			}
			sent = end
			continue
		}
		if !j.to.IsZero() {
			_ = conn.Close(websocket.StatusNormalClosure, "")
			return
		}
	}
}
