package api

import (
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// What is in no namespace is asked for by its name alone.
func TestAnObjectOfTheClusterIsAskedForByItsName(t *testing.T) {
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}))
	defer s.Close()
	c, err := New(&rest.Config{Host: s.URL}, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Namespaces().Get(t.Context(), "team", meta.GetOptions{}); !apierrors.IsNotFound(err) || asked != "GET /api/v1/namespaces/team" {
		t.Errorf("%q: %v", asked, err)
	}
	if err := c.Nodes().Delete(t.Context(), "n1", meta.DeleteOptions{}); !apierrors.IsNotFound(err) || asked != "DELETE /api/v1/nodes/n1" {
		t.Errorf("%q: %v", asked, err)
	}
	if _, err := c.Pods("team").Get(t.Context(), "p", meta.GetOptions{}); !apierrors.IsNotFound(err) || asked != "GET /api/v1/namespaces/team/pods/p" {
		t.Errorf("%q: %v", asked, err)
	}
}
