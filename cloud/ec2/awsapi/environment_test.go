package awsapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// nowhere writes down where calls are to be led, and leads none of them there.
type nowhere struct{ hosts []string }

// Do implements aws.HTTPClient.
func (n *nowhere) Do(r *http.Request) (*http.Response, error) {
	n.hosts = append(n.hosts, r.URL.Host)
	return nil, &net.OpError{Op: "dial", Err: errors.New("there is no way")}
}

// What a user has set for the AWS CLI leads dlwb's calls to the same places, in
// every partition.
func TestCallsGoWhereTheUsersSettingsLead(t *testing.T) {
	for name, c := range map[string]struct {
		env    map[string]string
		config string
		region string
		want   []string
	}{
		"AWS":        {region: "eu-central-1", want: []string{"ec2.eu-central-1.amazonaws.com", "sts.eu-central-1.amazonaws.com"}},
		"China":      {region: "cn-north-1", want: []string{"ec2.cn-north-1.amazonaws.com.cn", "sts.cn-north-1.amazonaws.com.cn"}},
		"GovCloud":   {region: "us-gov-west-1", want: []string{"ec2.us-gov-west-1.amazonaws.com", "sts.us-gov-west-1.amazonaws.com"}},
		"FIPS":       {env: map[string]string{"AWS_USE_FIPS_ENDPOINT": "true"}, region: "us-east-1", want: []string{"ec2-fips.us-east-1.amazonaws.com", "sts-fips.us-east-1.amazonaws.com"}},
		"dual stack": {env: map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "true"}, region: "us-west-2", want: []string{"ec2.us-west-2.api.aws", "sts.us-west-2.api.aws"}},
		"FIPS by the profile": {env: map[string]string{"AWS_PROFILE": "lab"}, config: "[profile lab]\nuse_fips_endpoint = true\n", region: "us-east-2",
			want: []string{"ec2-fips.us-east-2.amazonaws.com", "sts-fips.us-east-2.amazonaws.com"}},
		"a region by AWS_DEFAULT_REGION": {env: map[string]string{"AWS_DEFAULT_REGION": "sa-east-1"}, want: []string{"ec2.sa-east-1.amazonaws.com", "sts.sa-east-1.amazonaws.com"}},
		"a region by AWS_CONFIG_FILE":    {env: map[string]string{"AWS_PROFILE": "lab"}, config: "[profile lab]\nregion = ca-central-1\n", want: []string{"ec2.ca-central-1.amazonaws.com", "sts.ca-central-1.amazonaws.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t, "")
			t.Setenv("AWS_REGION", c.region)
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			write(t, c.config)
			api, p := load(t), &nowhere{}
			api.cfg.HTTPClient = p
			if c.region != "" && api.Region() != c.region {
				t.Error("the region is", api.Region())
			}
			_, err := sts.NewFromConfig(api.cfg).GetCallerIdentity(t.Context(), nil, func(o *sts.Options) { o.Retryer = aws.NopRetryer{} })
			_, other := api.EC2(api.Region()).DescribeRegions(t.Context(), nil, Once)
			for _, err := range []error{err, other} {
				if problem := Explain(err, Call{Action: "DescribeRegions"}); problem == nil || problem.Cause == "" || problem.Next == "" {
					t.Errorf("%+v", problem)
				}
			}
			slices.Sort(p.hosts)
			if !slices.Equal(p.hosts, c.want) {
				t.Errorf("calls went to %v, want %v", p.hosts, c.want)
			}
			if api.Endpoint() != "" {
				t.Error("an endpoint of its own:", api.Endpoint())
			}
		})
	}
}

func write(t *testing.T, config string) {
	t.Helper()
	if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// EC2 may have another endpoint than the rest: what dlwb does otherwise with an
// endpoint that is not AWS's own holds for each way to say so.
func TestAnEndpointOfEC2AloneIsKnownAsSuch(t *testing.T) {
	const at = "http://127.0.0.1:9"
	for name, c := range map[string]struct {
		env    map[string]string
		config string
		want   string
	}{
		"AWS_ENDPOINT_URL":     {env: map[string]string{"AWS_ENDPOINT_URL": at}, want: at},
		"AWS_ENDPOINT_URL_EC2": {env: map[string]string{"AWS_ENDPOINT_URL_EC2": at}, want: at},
		"EC2's before all":     {env: map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:8", "AWS_ENDPOINT_URL_EC2": at}, want: at},
		"another service's":    {env: map[string]string{"AWS_ENDPOINT_URL_S3": at}},
		"ignored":              {env: map[string]string{"AWS_ENDPOINT_URL_EC2": at, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}},
		"the profile's":        {config: "[default]\nendpoint_url = " + at + "\n", want: at},
		"services of the profile": {config: "[default]\nservices = lab\n[services lab]\nec2 =\n  endpoint_url = " + at + "\n",
			want: at},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t, "")
			_ = os.Unsetenv("AWS_ENDPOINT_URL")
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			write(t, c.config)
			if got := load(t).Endpoint(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A credential_process gives keys; where it gives none, that is said soon, and
// nothing of what it printed.
func TestACredentialProcessIsAskedAndNeverQuoted(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"gives keys":       {script: `echo '{"Version":1,"AccessKeyId":"AKIAIOSFODNN7EXAMPLE","SecretAccessKey":"` + canary + `","SessionToken":"x","Expiration":"2099-01-01T00:00:00Z"}'`},
		"fails":            {`echo ` + canary + `; exit 1`, "credential_process"},
		"prints no JSON":   {`echo ` + canary, "credential_process"},
		"another version":  {`echo '{"Version":7,"SecretAccessKey":"` + canary + `"}'`, "credential_process"},
		"is not there":     {"", "credential_process"},
		"prints very much": {`echo '{"Version":1,'; i=0; while [ $i -lt 20000 ]; do echo ` + canary + `; i=$((i+1)); done`, "credential_process"},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, identityReply) }))
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
			t.Setenv("AWS_PROFILE", "lab")
			program := filepath.Join(t.TempDir(), "keys")
			if c.script != "" {
				if err := testprogram.Write(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			write(t, "[profile lab]\ncredential_process = "+program+"\n")
			began := time.Now()
			_, err := load(t).Identity(t.Context())
			p := Explain(err, Call{Action: "GetCallerIdentity"})
			switch {
			case c.says == "" && p != nil:
				t.Errorf("%s; %s", p.Cause, p.Next)
			case c.says == "":
			case p == nil || p.Kind != NoCredentials || !strings.Contains(p.Cause+p.Next, c.says):
				t.Errorf("%+v", p)
			case strings.Contains(p.Cause+p.Next, canary):
				t.Error("the secret is shown:", p.Cause, p.Next)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// On a laptop nobody answers where an instance of EC2 has its credentials from: that
// is found out within a few seconds, also where packets get lost.
func TestALaptopWithoutCredentialsIsToldSoSoon(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	refused := "http://127.0.0.1:1"
	hotel := serve(t, func(w http.ResponseWriter, _ *http.Request) { // a captive portal
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<html>Welcome, please log in</html>")
	})
	for name, at := range map[string]string{"silent": "http://" + silent.Addr().String(), "refused": refused, "a portal": hotel} {
		t.Run(name, func(t *testing.T) {
			isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, identityReply) }))
			for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"} {
				t.Setenv(name, "")
			}
			t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", at)
			began := time.Now()
			_, err := load(t).Identity(t.Context())
			took := time.Since(began)
			p := Explain(err, Call{Action: "GetCallerIdentity"})
			if p == nil || p.Kind != NoCredentials || !strings.Contains(p.Cause, "no AWS credentials were found") || p.Next != Login {
				t.Errorf("%+v", p)
			}
			if took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			t.Logf("%s", took)
		})
	}
}
