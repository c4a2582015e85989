package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// What an older KubeRay does not know, and a job can do without, is left out; what else it
// does not know is an error.
func TestWhatAnOlderKubeRayDoesNotKnowIsLeftOut(t *testing.T) {
	for unknown, taken := range map[string]bool{"preRunningDeadlineSeconds": true, "submitterConfig": true, "entrypoint": false} {
		var sent []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			sent = append(sent, string(text))
			w.Header().Set("Content-Type", "application/json")
			if strings.Contains(string(text), `"`+unknown+`"`) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"strict decoding error: unknown field \"spec.%s\""}`, unknown)
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(text)
		}))
		_, d := doorTo(t, server.URL)
		j := rayLaid(t, 2, 1, options.Machines{})
		o := &unstructured.Unstructured{Object: objectFor(t, rayJob, j)}
		err := d.create(t.Context(), rayJob, o, meta.CreateOptions{FieldValidation: "Strict"})
		if (err == nil) != taken || taken && (len(sent) != 2 || !strings.Contains(sent[1], `"shutdownAfterJobFinishes":true`)) {
			t.Errorf("%s: %v after %d calls", unknown, err, len(sent))
		}
		server.Close()
	}
}
