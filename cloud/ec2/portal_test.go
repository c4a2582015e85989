package ec2

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// portal answers everything with success and a page of its own.
func portal(t *testing.T, form, page string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", form)
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return "AWS_ENDPOINT_URL=" + s.URL
}

// Machines that run are not proven gone by the page of a proxy, which lists none.
func TestAPageInAWSsPlaceProvesNothingGone(t *testing.T) {
	for name, page := range map[string]string{"a page": "<html><body>Your session has ended</body></html>", "nothing": "", "JSON": `{"error":"no session"}`} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fakeaws.Options{})
			r.up()
			own := r.env
			r.env = append(r.env[:len(r.env):len(r.env)], portal(t, "text/html", page))
			receipt, err := r.provider().Down(t.Context(), r.life, r.say)
			if err == nil || receipt.Proven() || r.ledger.open() == 0 {
				t.Errorf("%v %+v", err, receipt)
			}
			r.env = own
			r.down()
		})
	}
}

// Nor is an account clean whose regions nobody has listed.
func TestAnAccountOfNoRegionsIsNotClean(t *testing.T) {
	const nobody = `<GetCallerIdentityResponse><GetCallerIdentityResult/></GetCallerIdentityResponse>`
	for page, says := range map[string]string{"": "something that is not AWS", nobody: "something that is not AWS",
		strings.Replace(nobody, "<GetCallerIdentityResult/>", "<GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/ann</Arn></GetCallerIdentityResult>", 1): "no region at all"} {
		r := rigOf(t, fakeaws.Options{})
		r.env = append(r.env, portal(t, "text/xml", page))
		hunt, err := r.provider().Orphans(t.Context(), func(string) bool { return false }, r.say)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v %+v", page, err, hunt)
		}
	}
}

// between stands before a server, and answers in its place from the second page of a list
// on: a session of the network ends whenever it likes.
func between(t *testing.T, at, form, page string) string {
	t.Helper()
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && !bytes.Contains(body, []byte("NextToken=")) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			pass.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", form)
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(s.Close)
	return "AWS_ENDPOINT_URL=" + s.URL
}

// Half a list is no list: what stands on the pages behind it is neither gone nor nobody's.
func TestAPageInThePlaceOfASecondPageProvesNothing(t *testing.T) {
	for name, page := range map[string][2]string{
		"a web page":   {"text/html", "<html><body>Your session has ended</body></html>"},
		"JSON":         {"application/json", `{"error":"your session has ended"}`},
		"XML's answer": {"text/xml", "<Response><Errors/></Response>"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fakeaws.Options{PageSize: 1})
			r.spec.Count = 3
			r.up()
			own := r.env
			r.env = append(r.env[:len(r.env):len(r.env)], between(t, r.aws.URL, page[0], page[1]))
			hunt, err := r.provider().Orphans(t.Context(), func(string) bool { return false }, r.say)
			if err == nil && hunt.Blind["us-east-1"] == "" {
				t.Errorf("gc has seen all: %+v", hunt)
			}
			receipt, err := r.provider().Down(t.Context(), r.life, r.say)
			if err == nil || receipt.Proven() || r.ledger.open() == 0 {
				t.Errorf("%v %+v", err, receipt)
			}
			r.env = own
			r.down()
		})
	}
}
