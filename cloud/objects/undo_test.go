package objects

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// gate stands before the S3 of these tests, and calls before it passes a PUT on.
func gate(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (passed bool)) {
	t.Helper()
	u, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	if err != nil {
		t.Fatal(err)
	}
	on := httputil.NewSingleHostReverseProxy(u)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || before(w, r) {
			on.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ENDPOINT_URL_S3", s.URL)
}

// A save that fails, or is broken off, leaves nothing of what it has sent; what the
// set had before stays.
func TestWhatWasSentInVainIsRemoved(t *testing.T) {
	for what, harm := range map[string]func(stop context.CancelFunc) (refused string){
		"a file is refused":          func(context.CancelFunc) string { return "/new/z" },
		"the manifest is refused":    func(context.CancelFunc) string { return ending },
		"it is broken off in a file": func(stop context.CancelFunc) string { stop(); return "/new/z" },
	} {
		t.Run(what, func(t *testing.T) {
			address, _ := server(t)
			direct := open(t, address)
			one := write(t, 1)["config.json"]
			if _, err := direct.Save(t.Context(), "run/results", map[string]string{"a": one, "z/b": one}, nil); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			gate(t, func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/new/z") && !strings.HasSuffix(r.URL.Path, ending) {
					return true
				}
				for !strings.HasSuffix(r.URL.Path, ending) && !slices.Contains(lie(t, direct), "run/results/new/a") {
					if t.Context().Err() != nil {
						return false
					}
				}
				if strings.HasSuffix(r.URL.Path, harm(stop)) {
					http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
					return false
				}
				return true
			})
			b := open(t, address)
			files := map[string]string{"a": write(t, 2)["config.json"], "z/b": one, "new/a": one, "new/z": one}
			if _, err := b.Save(ctx, "run/results", files, nil); err == nil {
				t.Fatal("it was saved")
			}
			if got := lie(t, direct); !slices.Equal(got, []string{"run/results/a", "run/results/z/b"}) {
				t.Errorf("left is %q", got)
			}
		})
	}
}
