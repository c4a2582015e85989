package ecs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
)

// What AWS fails at, or has no time for, says nothing of the machines: nothing is wrong
// with the profile.
func TestWhatAWSDoesNotAnswerIsNotChecked(t *testing.T) {
	for name, reply := range map[string]struct {
		status int
		code   string
	}{"a fault": {http.StatusServiceUnavailable, "Unavailable"}, "too many calls": {http.StatusBadRequest, "Throttling"}} {
		t.Run(name, func(t *testing.T) {
			pointAWS(t, func(w http.ResponseWriter, action string) {
				w.WriteHeader(reply.status)
				_, _ = fmt.Fprintf(w, "<Response><Errors><Error><Code>%s</Code><Message>no</Message></Error></Errors></Response>", reply.code)
			})
			pre := New().Check(t.Context(), cloud.Spec{Count: 2, Instance: "g5.xlarge", Regions: []string{"us-east-1"}, Budget: 0})
			f := findingOf(t, pre, "machines")
			if f.Result() != cloud.NotChecked || !strings.Contains(f.Text, "not checked: ") || f.Next == "" {
				t.Errorf("%s %+v", f.Mark(), f)
			}
		})
	}
}

// pointAWS has a server in AWS's place, which knows the caller and leaves the rest to
// answer.
func pointAWS(t *testing.T, answer func(w http.ResponseWriter, action string)) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := r.PostFormValue("Action")
		if action == "GetCallerIdentity" {
			_, _ = fmt.Fprint(w, "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::111122223333:user/ada</Arn><UserId>A</UserId><Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>")
			return
		}
		answer(w, action)
	}))
	t.Cleanup(s.Close)
	for key, value := range map[string]string{"AWS_ENDPOINT_URL": s.URL, "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": t.TempDir() + "/none", "AWS_SHARED_CREDENTIALS_FILE": t.TempDir() + "/none", "AWS_PROFILE": "", "HTTP_PROXY": "", "http_proxy": ""} {
		t.Setenv(key, value)
	}
}

func findingOf(t *testing.T, pre cloud.Preflight, what string) cloud.Finding {
	t.Helper()
	for _, f := range pre.Findings {
		if f.What == what {
			return f
		}
	}
	t.Fatalf("nothing is said of %s: %+v", what, pre.Findings)
	return cloud.Finding{}
}
