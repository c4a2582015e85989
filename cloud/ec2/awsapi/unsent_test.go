package awsapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/dlwb/dlwb/internal/testport"
)

// serve is an endpoint that does with each call what it is told.
func serve(t *testing.T, do http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then a client that leaves is noticed
		do(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// cut answers with what is given and then breaks the connection.
func cut(t *testing.T, reply string) string {
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprint(conn, reply)
		_ = conn.Close()
	})
}

// timed is a context whose time is over when a test says so, which need not be
// drawn short on a busy machine, and long on another.
type timed struct {
	context.Context
	end  context.CancelFunc
	done <-chan struct{}
}

func until(t *testing.T) *timed {
	done, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	return &timed{t.Context(), end, done.Done()}
}

func (c *timed) over() { c.end() }

// Done implements context.Context.
func (c *timed) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *timed) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// broken are calls that no word of AWS's comes back of.
var broken = []struct {
	name  string
	want  Kind
	setup func(t *testing.T) context.Context
}{
	{"the connection is cut before the answer", Unknown, func(t *testing.T) context.Context {
		isolate(t, cut(t, ""))
		return t.Context()
	}},
	{"the answer is cut", Unknown, func(t *testing.T) context.Context {
		isolate(t, cut(t, "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n<RunInstancesResponse><instancesSet>"))
		return t.Context()
	}},
	{"the answer is no XML", Unknown, func(t *testing.T) context.Context {
		isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<RunInstancesResponse><a></b>") }))
		return t.Context()
	}},
	{"a proxy's page with 502", Unknown, func(t *testing.T) context.Context {
		isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprint(w, "Bad Gateway")
		}))
		return t.Context()
	}},
	{"nothing but 503", Unknown, func(t *testing.T) context.Context {
		isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
		return t.Context()
	}},
	{"no answer in time", Unknown, func(t *testing.T) context.Context {
		ctx := until(t)
		isolate(t, serve(t, func(_ http.ResponseWriter, r *http.Request) {
			ctx.over()
			<-r.Context().Done()
		}))
		return ctx
	}},
	{"interrupted", Unknown, func(t *testing.T) context.Context {
		ctx, stop := context.WithCancel(t.Context())
		isolate(t, serve(t, func(_ http.ResponseWriter, r *http.Request) {
			stop()
			<-r.Context().Done()
		}))
		t.Cleanup(stop)
		return ctx
	}},
	{"connection refused", Unreachable, func(t *testing.T) context.Context {
		isolate(t, fmt.Sprintf("http://127.0.0.1:%d", testport.Free(t)))
		return t.Context()
	}},
	{"a name that does not exist", Unreachable, func(t *testing.T) context.Context {
		isolate(t, "http://ec2.nowhere.invalid")
		return t.Context()
	}},
	{"a certificate that nobody knows", Unreachable, func(t *testing.T) context.Context {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = nil
		s.StartTLS()
		t.Cleanup(s.Close)
		isolate(t, s.URL)
		return t.Context()
	}},
	{"no credentials", NoCredentials, func(t *testing.T) context.Context {
		isolate(t, "http://127.0.0.1:1")
		t.Setenv("AWS_ACCESS_KEY_ID", "")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		return t.Context()
	}},
	{"no SSO session", NoCredentials, func(t *testing.T) context.Context {
		profile(t, "[sso-session s]\nsso_start_url = https://example.awsapps.com/start\nsso_region = us-east-1\n"+
			"[profile lab]\nsso_session = s\nsso_account_id = 123456789012\nsso_role_name = r\n")
		return t.Context()
	}},
	{"an SSO session that has ended", NoCredentials, func(t *testing.T) context.Context {
		profile(t, "[profile lab]\nsso_start_url = https://example.awsapps.com/start\nsso_region = us-east-1\n"+
			"sso_account_id = 123456789012\nsso_role_name = r\n")
		return t.Context()
	}},
	{"a credential process that prints a secret", NoCredentials, func(t *testing.T) context.Context {
		profile(t, "[profile lab]\ncredential_process = echo "+canary+"\n")
		return t.Context()
	}},
	{"no region", BadRequest, func(t *testing.T) context.Context {
		isolate(t, "")
		return context.WithValue(t.Context(), noRegion{}, true)
	}},
}

// ports are other ones in every test.
var ports = regexp.MustCompile(`:\d{2,5}\b`)

type noRegion struct{}

// profile makes the configuration consist of a profile named lab.
func profile(t *testing.T, text string) {
	t.Helper()
	isolate(t, "http://127.0.0.1:1")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_PROFILE", "lab")
	if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasSurelyNotSentIsToldFromDoubt(t *testing.T) {
	var text strings.Builder
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			ctx := b.setup(t)
			api := load(t)
			err := launch(ctx, api)
			if ctx.Value(noRegion{}) != nil {
				_, err = api.EC2("").RunInstances(ctx, &ec2.RunInstancesInput{MinCount: new(int32), MaxCount: new(int32)}, Once)
			}
			p := Explain(err, asked)
			if p.Kind != b.want {
				t.Errorf("kind %q, want %q: %v", p.Kind, b.want, err)
			}
			sound(t, b.name, p)
			fmt.Fprintf(&text, "%s\n  kind:  %s\n  cause: %s\n  next:  %s\n\n", b.name, p.Kind, ports.ReplaceAllString(p.Cause, ":PORT"), p.Next)
		})
	}
	golden(t, "broken.golden", text.String())
}

func TestALaunchThatIsNotValidIsNotSent(t *testing.T) {
	isolate(t, serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	_, err := load(t).EC2("us-east-1").RunInstances(t.Context(), &ec2.RunInstancesInput{}, Once)
	if p := Explain(err, asked); p.Kind != BadRequest {
		t.Errorf("%+v", p)
	}
}

// The words of a server must not make a launch that was carried out look like
// one that was never sent.
func TestWordsOfAServerDoNotTakeAwayDoubt(t *testing.T) {
	for _, says := range []string{"get identity: get credentials: SSO token", "operation error ec2imds: ", "Invalid Configuration: Missing Region", "failed to resolve service endpoint"} {
		isolate(t, refuse(t, "InternalError", 500, says).URL)
		if p := Explain(launch(t.Context(), load(t)), asked); p.Kind != Unknown {
			t.Errorf("%q makes it %q", says, p.Kind)
		}
	}
}

func TestAProfileThatDoesNotExistIsNamed(t *testing.T) {
	isolate(t, "")
	t.Setenv("AWS_PROFILE", "nobody")
	_, err := Load(t.Context())
	p := Explain(err, Call{})
	if p == nil || p.Kind != NoCredentials || !strings.Contains(p.Cause, `"nobody"`) || p.Next == "" {
		t.Errorf("%+v", p)
	}
}

func TestAConfigurationThatCanNotBeReadIsNamed(t *testing.T) {
	isolate(t, "")
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", dir)
	if _, err := Load(t.Context()); err != nil {
		if p := Explain(err, Call{}); p.Kind != NoCredentials {
			t.Errorf("%+v", p)
		}
	}
}

func TestAProblemIsExplainedOnce(t *testing.T) {
	first := &Problem{Kind: NoQuota, Cause: "the quota"}
	if p := Explain(fmt.Errorf("launch: %w", first), asked); p != first {
		t.Errorf("%+v", p)
	}
	if !errors.Is(&Problem{Err: context.Canceled}, context.Canceled) {
		t.Error("the SDK's error is lost")
	}
}

func TestSourceSaysWhereCredentialsComeFrom(t *testing.T) {
	isolate(t, "")
	if got, err := load(t).Source(t.Context()); err != nil || !strings.Contains(got, "environment") {
		t.Errorf("%q, %v", got, err)
	}
	profile(t, "[profile lab]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = "+canary+"\n")
	if got, err := load(t).Source(t.Context()); err != nil || got != "the AWS profile lab" {
		t.Errorf("%q, %v", got, err)
	}
	profile(t, "[profile lab]\ncredential_process = false\n")
	_, err := load(t).Source(t.Context())
	if p := Explain(err, Call{}); p == nil || p.Kind != NoCredentials {
		t.Errorf("%v: %+v", err, p)
	}
}

func TestQuoteShowsNoSecrets(t *testing.T) {
	for _, s := range []string{
		"Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE, Signature=" + canary,
		"x-amz-security-token:" + canary + "\nhost:x",
		`{"SecretAccessKey": "` + canary + `"}`,
		"http://ann:" + canary + "@proxy:8080",
		"-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary + "\n-----END OPENSSH PRIVATE KEY-----",
		"-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary,
		"user data " + strings.Repeat(canary, 4),
	} {
		if got := quote(s); strings.Contains(got, canary) || strings.Contains(got, "AKIA") {
			t.Errorf("%q shows the secret", got)
		}
	}
	if got := quote("One  thing\n is wrong."); got != "One thing is wrong" {
		t.Errorf("%q", got)
	}
}
