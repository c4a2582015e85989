package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// lateServer is an API server whose first call that makes a Job is cut, and acted on all
// the same: the Job is there from the look on that late names, if any.
type lateServer struct {
	mu    sync.Mutex
	late  int             // 0: never
	looks int             // for Jobs, since it was asked for
	job   json.RawMessage // as it was asked for
	made  int             // calls that made it
	gone  bool            // deleted
}

func (s *lateServer) there() bool { return s.late > 0 && s.looks >= s.late && s.job != nil && !s.gone }

func (s *lateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	jobs := strings.Contains(r.URL.Path, "/jobs")
	switch {
	case r.URL.Path == "/apis/batch/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"batch/v1","resources":[{"name":"jobs","kind":"Job","namespaced":true,"verbs":["list"]}]}`)
	case r.Method == http.MethodPost && jobs:
		s.made++
		_ = json.NewDecoder(r.Body).Decode(&s.job)
		panic(http.ErrAbortHandler)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"metadata":{"name":"run"}}`)
	case r.Method == http.MethodDelete && jobs:
		s.gone = true
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case r.Method == http.MethodGet && jobs:
		s.looks++
		named := strings.HasSuffix(r.URL.Path, "/jobs/run")
		switch {
		case s.there() && named:
			_, _ = w.Write(s.job)
		case s.there():
			fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","items":[%s]}`, s.job)
		case named:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"run","kind":"jobs"}}`)
		default:
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","items":[]}`)
		}
	default:
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","items":[]}`)
	}
}

// cutShort hands a job in whose call is cut.
func (s *lateServer) cutShort(t *testing.T) (cloud.Life, cloud.Submitted, error) {
	t.Helper()
	kubeconfig(t, served(t, s.ServeHTTP), "")
	life := cloud.Life{Name: "c", ID: "life", Dir: t.TempDir(), Began: time.Now()}
	submitted, err := New().Submit(t.Context(), life, cloud.Job{Run: "run", Replicas: 1, Spec: cloud.Spec{Image: "i", Own: &options.Machines{Kind: options.Job}},
		Code: cloud.Code{Dir: t.TempDir()}}, func(string, string) {}, cloud.Untold)
	return life, submitted, err
}

func within(t *testing.T, limit time.Duration) {
	was := lateLimit
	lateLimit = limit
	t.Cleanup(func() { lateLimit = was })
}

// A job whose answer was lost is waited for, and is the run's.
func TestAJobWhoseAnswerWasLostIsTheRuns(t *testing.T) {
	s := &lateServer{late: 2}
	_, submitted, err := s.cutShort(t)
	if err != nil || submitted.Ref == "" || s.made != 1 {
		t.Errorf("%v %+v, made %d times", err, submitted, s.made)
	}
}

// One that comes later than dlwb was there to see is found by whoever looks next.
func TestAJobThatWasAskedForIsWaitedFor(t *testing.T) {
	s := &lateServer{}
	within(t, 0) // who was killed
	life, _, err := s.cutShort(t)
	if err == nil {
		t.Fatal("it is said to be there")
	}
	within(t, time.Minute)
	s.mu.Lock()
	s.late, s.looks = 3, 0
	s.mu.Unlock()
	var told []string
	found, err := New().Find(t.Context(), life, "run", func(_ int, text string) { told = append(told, text) })
	if err != nil || found.Ref == "" {
		t.Errorf("%v %+v", err, found)
	}
	if len(told) != 1 || !strings.Contains(told[0], "it may still come, until ") {
		t.Errorf("told was %q", told)
	}
}

// After its time no job comes any more.
func TestAJobThatCanNotComeAnyMoreIsNone(t *testing.T) {
	s := &lateServer{}
	within(t, 2*time.Second)
	life, _, err := s.cutShort(t)
	if err == nil {
		t.Fatal("it is said to be there")
	}
	if found, err := New().Find(t.Context(), life, "run", cloud.Untold); err != nil || found.Ref != "" {
		t.Errorf("%v %+v", err, found)
	}
	if receipt, err := New().Down(t.Context(), life, cloud.Untold); err != nil || !receipt.Proven() {
		t.Errorf("%v %+v", err, receipt)
	}
}

// Nothing is proven gone that may still come: it is waited for, and removed.
func TestDownWaitsForAJobThatMayStillCome(t *testing.T) {
	s := &lateServer{}
	within(t, 0)
	life, _, err := s.cutShort(t)
	if err == nil {
		t.Fatal("it is said to be there")
	}
	within(t, time.Minute)
	s.mu.Lock()
	s.late, s.looks = 2, 0
	s.mu.Unlock()
	receipt, err := New().Down(t.Context(), life, cloud.Untold)
	if err != nil || !receipt.Proven() || len(receipt.Resources) == 0 {
		t.Errorf("%v %+v", err, receipt)
	}
	if !s.gone {
		t.Error("the job that came is still there")
	}
}
