package ec2

import (
	"net/http"
	"net/http/httptest"
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
	for name, page := range map[string]string{"a page": "<html><body>Your session has ended</body></html>", "nothing": ""} {
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
