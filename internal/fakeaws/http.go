package fakeaws

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// Call is one request that has arrived.
type Call struct {
	N       int    // from 0, in the order of arrival
	Service string // "ec2", "sts", "ssm", "servicequotas", "pricing"
	Action  string // "RunInstances"
	Region  string
	// Params are the form, or the members of the JSON body.
	Params url.Values
	DryRun bool
	At     time.Time // virtual
	// Outcome is "ok", AWS's error code, or both with what a fault did
	// ("ok, reply lost"); empty while the call is going on.
	Outcome string
}

// Reads reports whether the call by its nature changes nothing.
func (c Call) Reads() bool {
	return c.DryRun || strings.HasPrefix(c.Action, "Describe") || strings.HasPrefix(c.Action, "Get") ||
		strings.HasPrefix(c.Action, "List")
}

// Calls is the log of all calls, in the order of arrival.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Forget empties the log of calls; their numbers go on.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.calls {
		s.calls[i].Params = nil
	}
	s.forgotten += len(s.calls)
	s.calls = nil
}

// failure is an error of AWS.
type failure struct {
	Status        int
	Code, Message string
}

func (f *failure) Error() string { return f.Code + ": " + f.Message }

// bad is a refusal with the HTTP status that AWS sends with its code.
func bad(code, format string, args ...any) *failure {
	return &failure{statusOf(code), code, fmt.Sprintf(format, args...)}
}

func statusOf(code string) int {
	switch code {
	case "UnauthorizedOperation", "MissingAuthenticationToken", "InvalidClientTokenId", "SignatureDoesNotMatch", "AccessDenied":
		return http.StatusForbidden
	case "AuthFailure":
		return http.StatusUnauthorized
	case "DryRunOperation":
		return http.StatusPreconditionFailed
	case "InsufficientInstanceCapacity", "InternalError":
		return http.StatusInternalServerError
	case "RequestLimitExceeded", "Unavailable":
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

var scope = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, *SignedHeaders=[^ ,]+, *Signature=[0-9a-f]{64}$`)

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/openTunnel" {
		s.openTunnel(w, r)
		return
	}
	q, err := s.parse(r)
	if err != nil {
		s.reply(w, q, nil, err, None)
		return
	}
	s.mu.Lock()
	q.call.N, q.call.At = s.forgotten+len(s.calls), s.clock.Now()
	s.calls = append(s.calls, q.call)
	f := s.fault(q.call)
	s.mu.Unlock()
	if s.unserved(w, q) {
		return
	}

	f.hook(Before, q.call)
	if f.Do == DelayApply {
		s.later(q, f)
		cut(w)
		return
	}
	if f.Delay > 0 && !s.clock.Wait(s.clock.Now().Add(f.Delay), r.Context().Done()) {
		s.outcome(q, "abandoned")
		cut(w)
		return
	}
	if f.Do == Hang || q.region != nil && q.region.Hangs {
		s.outcome(q, Hang.String())
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		cut(w)
		return
	}
	out, err := s.carryOut(q, f)
	if f.Do != Refuse && f.Do != Throttle && f.Do != FailBefore {
		f.hook(Applied, q.call)
	}
	time.Sleep(s.opt.ReplyDelay)
	s.reply(w, q, out, err, f.Do)
	f.hook(Replied, q.call)
}

// parse reads who calls what.
func (s *Server) parse(r *http.Request) (*request, error) {
	q := &request{s: s, call: Call{Service: "ec2"}}
	m := scope.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return q, bad("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	q.call.Region, q.call.Service = m[3], m[4]
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return q, bad("InvalidRequest", "The request body could not be read")
	}
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		_, q.call.Action, _ = strings.Cut(target, ".")
		q.json = true
		q.call.Params, err = wire.Form(body)
	} else {
		q.call.Params, err = url.ParseQuery(string(body))
		for k, v := range r.URL.Query() {
			q.call.Params[k] = v
		}
		q.call.Action = q.call.Params.Get("Action")
	}
	if err != nil {
		return q, bad("InvalidRequest", "The request could not be parsed")
	}
	q.params = params{q.call.Params, ""}
	q.call.DryRun = q.is("DryRun")
	return q, s.admit(q, m[1])
}

// admit checks the credentials and the region.
func (s *Server) admit(q *request, key string) error {
	for _, r := range s.regions {
		if r.Name == q.call.Region {
			q.region = r
		}
	}
	if q.call.Service == "pricing" { // it is nowhere, and for all regions
		q.region = nil
	}
	if key == AccessKey && (q.call.Service == "pricing" || q.region != nil && !q.region.Disabled) {
		return nil
	}
	switch {
	case q.call.Service == "sts":
		return bad("InvalidClientTokenId", "The security token included in the request is invalid.")
	case q.json:
		return bad("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	return bad("AuthFailure", "AWS was not able to validate the provided access credentials")
}

// carryOut does what a call asks for, as far as its fault lets it.
func (s *Server) carryOut(q *request, f Fault) (out any, err error) {
	defer func() {
		result := "ok"
		if err != nil {
			result = err.(*failure).Code
		}
		if f.Do != None {
			result += ", " + f.Do.String()
		}
		s.outcome(q, result)
	}()
	switch f.Do {
	case Refuse:
		orElse(&f.Code, "UnauthorizedOperation")
		orElse(&f.Status, statusOf(f.Code))
		return nil, &failure{f.Status, f.Code, refusal(f.Code)}
	case Throttle:
		return nil, s.throttled(q)
	case FailBefore:
		return nil, bad("InternalError", "An internal error has occurred")
	case Duplicate:
		_, _ = s.apply(q, false)
	}
	return s.apply(q, f.Do == Ignore)
}

func refusal(code string) string {
	if code == "UnauthorizedOperation" {
		return "You are not authorized to perform this operation."
	}
	return "The request was refused."
}

func (s *Server) throttled(q *request) error {
	switch {
	case q.json:
		return bad("ThrottlingException", "Rate exceeded")
	case q.call.Service == "sts":
		return bad("Throttling", "Rate exceeded")
	}
	return bad("RequestLimitExceeded", "Request limit exceeded.")
}

// apply runs one action, whole or not at all.
func (s *Server) apply(q *request, ignore bool) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do := actions[q.call.Service][q.call.Action]
	if do == nil {
		return nil, bad("InvalidAction", "The action %s is not valid for this web service.", q.call.Action)
	}
	s.settle()
	s.undo, s.after = nil, nil
	out, err := do(q)
	if err == nil && q.call.DryRun && !s.carriesOut(q) {
		err = bad("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	if err != nil || ignore {
		for i := len(s.undo) - 1; i >= 0; i-- {
			s.undo[i]()
		}
		return out, err
	}
	for _, f := range s.after {
		f()
	}
	return out, nil
}

// later applies a call whose caller is gone by then.
func (s *Server) later(q *request, f Fault) {
	at := s.clock.Now().Add(f.Delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawn(func() {
		if s.clock.Wait(at, s.done) {
			_, _ = s.carryOut(q, f)
			f.hook(Applied, q.call)
		}
	})
}

func (s *Server) outcome(q *request, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := q.call.N - s.forgotten; i >= 0 && i < len(s.calls) {
		s.calls[i].Outcome = what
	}
}
