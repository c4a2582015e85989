package fakeaws

import (
	"net/http"
	"slices"
	"strings"
)

// Lacks are what stand-ins for AWS are known not to have. The zero value lacks
// nothing.
type Lacks struct {
	// DryRuns are actions that are carried out although they are dry runs.
	DryRuns []string
	// Unserved are actions that are answered by the error page of a web server.
	Unserved []string
	// TokenFilter: the filter for client tokens is refused by a fault of the
	// server's; TokenFilterSilent: nothing fits it.
	TokenFilter, TokenFilterSilent bool
	// Wildcards: * stands for itself in the filters of types.
	Wildcards bool
	// KeysByID: a key pair is not deleted by its id, which is answered well.
	KeysByID bool
	// KeyTags: key pairs keep no tags.
	KeyTags bool
}

// unserved answers as a web server does whose program fell over it.
func (s *Server) unserved(w http.ResponseWriter, q *request) bool {
	if !slices.Contains(s.opt.Lacks.Unserved, q.call.Action) {
		return false
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte("<!doctype html>\n<title>500 Internal Server Error</title>\n"))
	return true
}

// carriesOut reports whether a dry run is one all the same.
func (s *Server) carriesOut(q *request) bool {
	return slices.Contains(s.opt.Lacks.DryRuns, q.call.Action)
}

// lackedFilter is what becomes of a filter that is not there; known: it is one
// of those.
func (q *request) lackedFilter(name string) (known bool, err error) {
	l := q.s.opt.Lacks
	switch {
	case name != "client-token":
		return false, nil
	case l.TokenFilter:
		return true, &failure{http.StatusInternalServerError, "FilterNotImplementedError", "The filter 'client-token' has not been implemented."}
	}
	return l.TokenFilterSilent, nil
}

// lackedWildcard reports whether a pattern fits nothing, because it is none there.
func (q *request) lackedWildcard(pattern string) bool {
	return q.s.opt.Lacks.Wildcards && strings.Contains(pattern, "*")
}
