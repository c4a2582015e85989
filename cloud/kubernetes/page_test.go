package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// served is a server that answers, until the test ends.
func served(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// A gateway in front of a cluster that it knows no more says 404 to everything. That is
// no proof that anything is gone.
func TestAPageThatIsNotFoundProvesNothing(t *testing.T) {
	for _, kind := range []string{options.RayJob, options.PyTorchJob, options.Job} {
		life, r, d := lifeAt(t, served(t, http.NotFound), ref{Kind: kind, Ranks: [][]int{{0}}})
		receipt, err := New().Down(t.Context(), life, func(int, string) {})
		if err == nil || receipt.Proven() || !strings.Contains(err.Error(), "no API server of Kubernetes") {
			t.Errorf("%s: down: %v %+v", kind, err, receipt)
		}
		if o, err := d.objectOf(t.Context(), r); err == nil {
			t.Errorf("%s: the object is %v", kind, o)
		}
		if s, err := New().Find(t.Context(), life, "run", cloud.Untold); err == nil {
			t.Errorf("%s: found %+v", kind, s)
		}
	}
}

// Where the kind itself was removed, its objects are gone with it.
func TestAJobWhoseKindWasRemovedIsGone(t *testing.T) {
	life, r, d := lifeAt(t, served(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/") && !strings.HasPrefix(r.URL.Path, "/apis/batch/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","items":[]}`)
	}), ref{Kind: options.RayJob, Ranks: [][]int{{0}}})
	if receipt, err := New().Down(t.Context(), life, func(int, string) {}); err != nil || !receipt.Proven() {
		t.Errorf("down: %v %+v", err, receipt)
	}
	if o, err := d.objectOf(t.Context(), r); err != nil || o != nil {
		t.Errorf("the object is %v, %v", o, err)
	}
}

// Whoever is interrupted while a job is being made knows in the end whether it was: one
// that comes to be after that would run, and nobody would know of it.
func TestAJobIsNotMadeBehindTheBackOfWhoeverIsInterrupted(t *testing.T) {
	begun, returned, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var made atomic.Bool
	kubeconfig(t, served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/apis/batch/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"batch/v1","resources":[{"name":"jobs","kind":"Job","namespaced":true,"verbs":["list"]}]}`)
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs"):
			close(begun)
			<-release
			made.Store(true)
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"run"}}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"metadata":{"name":"run"}}`)
		default:
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","items":[]}`)
		}
	}), "")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		<-begun
		interrupt()
		select {
		case <-returned:
		case <-time.After(time.Second):
		}
		close(release)
	}()
	_, err := New().Submit(ctx, cloud.Life{Name: "c", ID: "another", Dir: t.TempDir()}, cloud.Job{Run: "run", Replicas: 1, Spec: cloud.Spec{Image: "i", Own: &options.Machines{Kind: options.Job}},
		Code: cloud.Code{Dir: t.TempDir()}}, func(string, string) {}, func(int, string) {})
	if err == nil || !made.Load() {
		t.Errorf("it was left while it was being made: %v", err)
	}
	close(returned)
}
