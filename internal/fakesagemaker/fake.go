//go:build unix

// Package fakesagemaker is a stand-in for SageMaker and what its training jobs need:
// CloudWatch Logs, S3, IAM, STS, Systems Manager, quotas and prices, by the real
// protocols. A job of it really runs its command, once for each host, as a process of
// this machine with the directories that a container has. It is for tests, and is no
// part of the program.
package fakesagemaker

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/fakeecr"
)

// Account is whose everything is.
const Account = "123456789012"

// Fake is one account.
type Fake struct {
	URL string
	// Caller is the account of the credentials; empty: Account.
	Caller string
	// Region is that of the jobs and of new buckets.
	Region string
	// Train is run in place of the command of an image that is not told one: the
	// toolkit of such an image.
	Train []string
	// Hosts names host n of a job to the containers; nil: algo-N.
	Hosts func(n int) string
	// NeverBegins is why jobs fail while their machines are started; empty: they don't.
	NeverBegins string
	// Pace is how long each state before Training lasts.
	Pace time.Duration
	// Late is how long lines take to come to CloudWatch.
	Late   time.Duration
	answer func(call string, nth int) *Error
	cut    func(call string, nth int) bool
	// PageMost is how many events a page of a log has at most; 0: as many as asked for.
	PageMost int
	// Short tells which answers with an object break off in the middle; nil: none.
	Short func(key string, nth int) bool
	// Use is what CloudWatch has of each host (JOB/algo-N) for the last minute, by metric.
	Use func(host, metric string) (value float64, known bool)
	// Quota is that of each type.
	Quota int
	most  int // machines of a type at once

	fakeecr.Holder
	dir string

	mu       sync.Mutex
	calls    map[string]int
	shorts   map[string]int
	journal  []Call
	refused  map[string]int // by the code of the error
	buckets  map[string]*bucket
	jobs     map[string]*Job
	order    []string
	sessions []*Session
	streams  map[string]*stream
	roles    map[string]string // name: trust policy
	day      int               // tokens of logs are good for one
	runs     sync.WaitGroup
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	server   *httptest.Server
}

// Call is one that came in.
type Call struct {
	// Service is as AWS's model has it: what its calls are addressed by, or what they
	// are signed for.
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
	f := &Fake{Region: "us-west-2", dir: dir, Pace: 30 * time.Millisecond, Quota: 8, calls: map[string]int{}, refused: map[string]int{}, buckets: map[string]*bucket{},
		jobs: map[string]*Job{}, streams: map[string]*stream{},
		roles: map[string]string{"Training": `{"Statement":[{"Principal":{"Service":"sagemaker.amazonaws.com"}}]}`}}
	f.ctx, f.end = context.WithCancel(context.Background())
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	f.URL = f.server.URL
	f.AddBucket("sagemaker-"+f.Region+"-"+Account, f.Region)
	return f
}

// Close ends all jobs and the server.
func (f *Fake) Close() {
	f.server.Close() // no job is begun any more
	f.mu.Lock()
	f.end() // of the streams of sessions
	f.mu.Unlock()
	f.mu.Lock()
	for _, j := range f.jobs {
		j.kill()
	}
	f.mu.Unlock()
	f.runs.Wait()
}

// Env is what leads a program here.
func (f *Fake) Env() []string {
	return []string{"AWS_ENDPOINT_URL=" + f.URL, "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI", "AWS_SESSION_TOKEN=",
		"AWS_REGION=" + f.Region, "AWS_DEFAULT_REGION=" + f.Region, "AWS_PROFILE=", "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "DLWB_SETTLE=15s"}
}

// Calls are all that came in, in order; with a name, only those.
func (f *Fake) Calls(name string) (all []Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.journal {
		if name == "" || c.Name == name {
			all = append(all, c)
		}
	}
	return all
}

// Refused is how many requests in JSON, as SageMaker takes them, were answered with an error
// of this code.
func (f *Fake) Refused(code string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused[code]
}

// Role adds a role with a trust policy; empty: takes it away.
func (f *Fake) Role(name, trust string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.roles[name] = trust; trust == "" {
		delete(f.roles, name)
	}
}

// Answer sets what may answer a call before anything is done: with an error by its
// code.
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

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, dataChannel) {
		f.stream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	name, act := f.route(r, body)
	f.mu.Lock()
	f.calls[name]++
	nth := f.calls[name]
	f.journal = append(f.journal, Call{serviceOf(r), name, body})
	answer, cut := f.answer, f.cut
	f.mu.Unlock()
	// A reply to a request whose body is not read whole yet is cut by some clients.
	time.Sleep(2 * time.Millisecond)
	if answer != nil {
		if e := answer(name, nth); e != nil {
			f.refuse(w, r, e)
			return
		}
	}
	rec := httptest.NewRecorder()
	act(rec)
	f.mu.Lock()
	f.refused[rec.Header().Get(errorType)]++
	f.mu.Unlock()
	if cut != nil && cut(name, nth) {
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

// serviceOf is the service of a call.
func serviceOf(r *http.Request) string {
	if target, _, is := strings.Cut(r.Header.Get("X-Amz-Target"), "."); is {
		return target
	}
	_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	if parts := strings.Split(scope, "/"); len(parts) > 3 {
		return parts[3]
	}
	return ""
}

// route finds the name of a call, and what does it.
func (f *Fake) route(r *http.Request, body []byte) (string, func(http.ResponseWriter)) {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		_, name, _ := strings.Cut(target, ".")
		return name, func(w http.ResponseWriter) { f.json(w, r, name, body) }
	}
	if r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, _ := url.ParseQuery(string(body))
		name := form.Get("Action")
		return name, func(w http.ResponseWriter) { f.form(w, r, name, form) }
	}
	name, act := f.s3(r, body)
	return name, act
}

// json answers the services whose calls are JSON 1.1.
func (f *Fake) json(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	actions := map[string]func([]byte) (any, *Error){
		"CreateTrainingJob": f.create, "DescribeTrainingJob": f.describe, "StopTrainingJob": f.stopJob, "UpdateTrainingJob": f.update,
		"AddTags": f.addTags, "ListTags": f.listTags, "DescribeLogStreams": f.describeStreams, "GetLogEvents": f.getEvents,
		"StartSession": f.startSession, "TerminateSession": f.terminateSession,
		"ListServiceQuotas": f.quotas, "GetProducts": f.products,
	}
	act, known := actions[name]
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), fakeecr.Target) && f.ECR() != nil {
		known, act = true, func(body []byte) (any, *Error) {
			out, e := f.ECR().Answer(name, body)
			if e != nil {
				return nil, &Error{400, e.Code, e.Says}
			}
			return out, nil
		}
	}
	if !known {
		f.refuse(w, r, &Error{400, "UnknownOperationException", "unknown: " + name})
		return
	}
	out, e := act(body)
	if e != nil {
		f.refuse(w, r, e)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

// errorType is the header that says the code of an error in JSON 1.1.
const errorType = "X-Amzn-ErrorType"

// refuse answers with an error, as the service of a request has it.
func (f *Fake) refuse(w http.ResponseWriter, r *http.Request, e *Error) {
	if r.Header.Get("X-Amz-Target") != "" {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.Header().Set(errorType, e.Code)
		w.WriteHeader(e.Status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": e.Code, "message": e.Says})
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(e.Status)
	if r.Method == http.MethodHead {
		return
	}
	var says strings.Builder
	_ = xml.EscapeText(&says, []byte(e.Says))
	if r.Method == http.MethodPost {
		_, _ = fmt.Fprintf(w, `<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, e.Code, says.String())
		return
	}
	_, _ = fmt.Fprintf(w, `<Error><Code>%s</Code><Message>%s</Message></Error>`, e.Code, says.String())
}

// epoch is a time as JSON 1.1 has it.
func epoch(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return float64(t.UnixMilli()) / 1000
}

func read[T any](body []byte) (in T, e *Error) {
	if err := json.Unmarshal(body, &in); err != nil {
		return in, &Error{400, "SerializationException", err.Error()}
	}
	return in, nil
}
