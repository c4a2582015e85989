package ec2

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// ssoRig makes the caller of a rig somebody who has logged in by SSO. The token is
// in the file where the AWS CLI puts it, and the portal gives keys for it that are
// soon to be renewed.
func (r *rig) sso(accepts *atomic.Value) (login func(token string, until time.Time)) {
	r.Helper()
	home := r.TempDir()
	portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(q.URL.Path, "/federation/credentials") || q.Header.Get("X-Amz-Sso_bearer_token") != accepts.Load() {
			w.Header().Set("X-Amzn-Errortype", "UnauthorizedException")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"message":"Session token not found or invalid"}`))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"roleCredentials": map[string]any{"accessKeyId": fakeaws.AccessKey, "secretAccessKey": fakeaws.SecretKey,
			"sessionToken": "", "expiration": time.Now().Add(2 * time.Second).UnixMilli()}})
	}))
	r.Cleanup(portal.Close)
	config := filepath.Join(home, ".aws", "config")
	if err := os.MkdirAll(filepath.Join(home, ".aws", "sso", "cache"), 0o700); err != nil {
		r.Fatal(err)
	}
	text := "[profile lab]\nsso_session = lab\nsso_account_id = 123456789012\nsso_role_name = researcher\nregion = us-east-1\n" +
		"[sso-session lab]\nsso_start_url = https://lab.awsapps.com/start\nsso_region = us-east-1\nsso_registration_scopes = sso:account:access\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	r.env = append(r.env, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_PROFILE=lab", "AWS_CONFIG_FILE="+config, "HOME="+home, "AWS_ENDPOINT_URL_SSO="+portal.URL)
	sum := sha1.Sum([]byte("lab"))
	file := filepath.Join(home, ".aws", "sso", "cache", hex.EncodeToString(sum[:])+".json")
	return func(token string, until time.Time) {
		b, _ := json.Marshal(map[string]string{"accessToken": token, "expiresAt": until.UTC().Format(time.RFC3339), "region": "us-east-1", "startUrl": "https://lab.awsapps.com/start"})
		if err := os.WriteFile(file, b, 0o600); err != nil {
			r.Fatal(err)
		}
	}
}

// The session of SSO expires while machines run: what can't be seen is unknown,
// nothing is ended and nothing is called gone; one sentence says what to do; and
// after the login the same dlwb goes on, without a restart.
func TestAnSSOSessionThatExpiresDestroysNothingAndIsPickedUpAgain(t *testing.T) {
	r := newRig(t, fakeaws.Options{})
	var accepts atomic.Value
	accepts.Store("first")
	login := r.sso(&accepts)
	login("first", time.Now().Add(time.Hour))
	p := r.provider()
	c, err := p.Up(t.Context(), r.life, r.spec, r.say)
	if err != nil {
		t.Fatal(err)
	}
	for name, expire := range map[string]func(){
		"the token's time is over":    func() { login("first", time.Now().Add(-time.Minute)) },
		"the portal takes it no more": func() { accepts.Store("another"); login("first", time.Now().Add(time.Hour)) },
	} {
		expire()
		var states []cloud.Status
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			if states, err = p.Probe(t.Context(), c); err != nil || time.Now().After(end) {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), "the AWS SSO session has expired") {
			t.Errorf("%s: %v", name, err)
		}
		if next, ok := err.(interface{ Advice() string }); !ok || !strings.HasPrefix(next.Advice(), "aws sso login") {
			t.Errorf("%s: the advice is not the login: %v", name, err)
		}
		for _, s := range states {
			if s.State != cloud.Unknown {
				t.Errorf("%s: %+v", name, s)
			}
		}
		receipt, err := p.Down(t.Context(), r.life, r.say)
		if err == nil || receipt.Proven() || len(r.calls("TerminateInstances")) > 0 {
			t.Errorf("%s: a down that sees nothing: %v %+v", name, err, receipt)
		}
		accepts.Store("second " + name)
		login("second "+name, time.Now().Add(time.Hour))
		if states, err = p.Probe(t.Context(), c); err != nil || states[0].State != cloud.Alive {
			t.Errorf("%s: after the login: %v %+v", name, err, states)
		}
	}
	receipt, err := p.Down(t.Context(), r.life, r.say)
	if err != nil || !receipt.Proven() || len(r.aws.Left()) > 0 {
		t.Errorf("%v %+v", err, receipt)
	}
}

// In China the price list is in yuan, which is said as such; what is not known in
// dollars keeps no budget, and the lifetime does.
func TestAPriceInYuanIsSaidAsSuch(t *testing.T) {
	r := newRig(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "cn-northwest-1"}}})
	r.spec.Regions = []string{"cn-northwest-1"}
	pre := r.provider().Check(t.Context(), r.spec)
	if f := findingOf(t, pre, "machine"); !strings.Contains(f.Text, "g5.xlarge: CNY ") || !strings.Contains(f.Text, "limits.budget can't") {
		t.Errorf("%+v", f)
	}
	if pre.PricePerHour != 0 {
		t.Errorf("yuan were counted as dollars: %v", pre.PricePerHour)
	}
	if f := findingOf(t, pre, "price"); !f.OK || !strings.Contains(f.Text, "limits.lifetime ends it") {
		t.Errorf("%+v", f)
	}
	for _, c := range r.calls("GetProducts") {
		if c.Region != "cn-northwest-1" {
			t.Errorf("the price list was asked for in %s", c.Region)
		}
	}
	r.spec.Budget = 20
	if f := findingOf(t, r.provider().Check(t.Context(), r.spec), "price"); f.OK {
		t.Errorf("a budget that nothing keeps: %+v", f)
	}
}

// A need without quota for spot machines falls back to the other market before
// anything is paid, as the launch would.
func TestNoSpotQuotaStandsInNobodysWayWhereOnDemandIsAllowed(t *testing.T) {
	for fallback, ok := range map[bool]bool{true: true, false: false} {
		t.Run("", func(t *testing.T) {
			r := newRig(t, fakeaws.Options{})
			r.aws.SetQuota("us-east-1", "L-3819A6DF", 0)
			r.aws.SetQuota("us-east-1", "L-DB2E81BA", 64)
			r.spec.Spot, r.spec.Own = true, &options.Machines{SpotFallback: fallback}
			f := findingOf(t, r.provider().Check(t.Context(), r.spec), "spot quota")
			if f.OK != ok || !strings.Contains(f.Text, "is 0 vCPUs") {
				t.Errorf("%v: %+v", fallback, f)
			}
			c, err := r.provider().Up(t.Context(), r.life, r.spec, r.say)
			if (err == nil) != ok || ok && c.Spot {
				t.Errorf("%v: %v %+v", fallback, err, c)
			}
			r.down()
		})
	}
}
