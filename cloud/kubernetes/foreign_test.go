package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// holder is an API server that has one object, and pods of a job of that name. It
// takes whatever else is made.
type holder struct {
	path   string // of the object's kind
	kind   string
	labels string

	mu      sync.Mutex
	deleted []string
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	is := strings.HasPrefix(r.URL.Path, h.path)
	object := fmt.Sprintf(`{"metadata":{"name":"run","namespace":"default","labels":{%s}}}`, h.labels)
	switch {
	case r.Method == http.MethodPost && is:
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409,"message":"it already exists"}`)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"metadata":{"name":"run"}}`)
	case r.Method == http.MethodDelete:
		h.mu.Lock()
		h.deleted = append(h.deleted, r.URL.Path)
		h.mu.Unlock()
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case r.Method == http.MethodGet && is && strings.HasSuffix(r.URL.Path, "/run"):
		fmt.Fprint(w, strings.Replace(object, "{", `{`+h.kind+`,`, 1))
	case strings.Contains(r.URL.RawQuery, "job-name%3Drun") && strings.HasSuffix(r.URL.Path, "/pods"):
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1",%s]}`, object[1:])
	case r.URL.Query().Has("labelSelector"):
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","items":[]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)
	}
}

func TestWhatAnotherOneHasUnderTheNameOfARunIsNeverTakenForIts(t *testing.T) {
	const core, jobs = "/api/v1/namespaces/default/", "/apis/batch/v1/namespaces/default/jobs"
	mine := `"app.kubernetes.io/managed-by":"dlwb","dlwb.dev/life":"life","dlwb.dev/run":"run"`
	for what, object := range map[string]*holder{
		"config map": {path: core + "configmaps", kind: `"kind":"ConfigMap","apiVersion":"v1"`},
		"secret":     {path: core + "secrets", kind: `"kind":"Secret","apiVersion":"v1"`},
		"service":    {path: core + "services", kind: `"kind":"Service","apiVersion":"v1"`},
		"Job":        {path: jobs, kind: `"kind":"Job","apiVersion":"batch/v1"`},
	} {
		for of, labels := range map[string]string{"nobody": ``, "another life": strings.Replace(mine, `"life"`, `"other"`, 1),
			"another run": strings.Replace(mine, `"run"`, `"other"`, 1), "this run": mine} {
			t.Run(what+" of "+of, func(t *testing.T) {
				h := &holder{path: object.path, kind: object.kind, labels: labels}
				server := httptest.NewServer(h)
				defer server.Close()
				life, _, _ := lifeAt(t, server.URL, ref{Kind: options.Job, Ranks: [][]int{{0}, {1}}})
				code := t.TempDir()
				if err := os.WriteFile(filepath.Join(code, "a.py"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := New().Submit(t.Context(), life, cloud.Job{Run: "run", Replicas: 2, Env: []string{"A=b"}, Code: cloud.Code{Dir: code, Paths: []string{"a.py"}},
					Spec: cloud.Spec{Image: "i", Own: &options.Machines{}}}, func(string, string) {}, func(int, string) {})
				refusal := "there is a " + what + " run in namespace default of context lab that is not of this run"
				if strange := of != "this run"; strange != (err != nil && strings.Contains(err.Error(), refusal)) {
					t.Errorf("%v", err)
				}
				if what != "Job" || of == "this run" || of == "another run" {
					return
				}
				if _, err := New().Down(t.Context(), life, func(int, string) {}); err != nil || len(h.deleted) > 0 {
					t.Errorf("down: %v, deleted %v", err, h.deleted)
				}
			})
		}
	}
}

// A tenant may look for his own kind of jobs, and not for each that the cluster has.
func TestKindsThatMayNotBeSeenAreNotInTheWayOfDown(t *testing.T) {
	for kind, wrong := range map[string]bool{options.Job: false, options.PyTorchJob: true} {
		h := &holder{path: "/none", labels: ``}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/apis/kubeflow.org/v1":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"kubeflow.org/v1","resources":[{"name":"pytorchjobs","kind":"PyTorchJob","namespaced":true,"verbs":["list"]}]}`)
			case strings.HasSuffix(r.URL.Path, "/pytorchjobs"):
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pytorchjobs is forbidden"}`)
			case strings.HasSuffix(r.URL.Path, "/pods"):
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
			default:
				h.ServeHTTP(w, r)
			}
		}))
		kubeconfig(t, server.URL, "")
		life := cloud.Life{Name: "c", ID: "life", Dir: t.TempDir()}
		at, err := locate(options.Machines{})
		if err != nil {
			t.Fatal(err)
		}
		if err := noteRef(life, "run", ref{place: at, Kind: kind, Name: "run", Ranks: [][]int{{0}}}); err != nil {
			t.Fatal(err)
		}
		if r, err := New().Down(t.Context(), life, func(int, string) {}); (err != nil) != wrong || !wrong && !r.Proven() {
			t.Errorf("%s: %v, %+v", kind, err, r)
		}
		server.Close()
	}
}
