package awsapi

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const identityReply = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>` +
	`<Arn>arn:aws:iam::123456789012:user/ann</Arn><UserId>AIDA</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`

// Whoever sits behind an inspecting proxy has a bundle of certificates.
func TestABundleOfCertificatesIsUsed(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, identityReply) }))
	t.Cleanup(s.Close)
	isolate(t, s.URL)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	id, err := load(t).Identity(t.Context())
	if err != nil || id.Account != "123456789012" || id.ARN != "arn:aws:iam::123456789012:user/ann" {
		t.Errorf("%+v, %v", id, err)
	}
}

// A question to STS that hangs must not keep anybody from EC2.
func TestIdentityIsAskedOnceAndHoldsNobodyUp(t *testing.T) {
	calls, hang := 0, make(chan struct{})
	isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		<-hang
		_, _ = fmt.Fprint(w, identityReply)
	}))
	api, done := load(t), make(chan error)
	go func() {
		_, err := api.Identity(t.Context())
		done <- err
	}()
	select {
	case <-done:
		t.Fatal("it did not wait for the answer")
	case <-time.After(50 * time.Millisecond):
	}
	if api.EC2("us-east-1") == nil {
		t.Error("no client")
	}
	close(hang)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := api.Identity(t.Context()); err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
