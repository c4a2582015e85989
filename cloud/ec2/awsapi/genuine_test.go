package awsapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
)

// A login page of a network, or a proxy's page, comes with success. Read as an answer
// it lists nothing, and would prove that nothing is left.
func TestAPageInTheAnswersPlaceListsNothing(t *testing.T) {
	for name, page := range map[string][2]string{
		"a web page":                  {"text/html; charset=utf-8", "<!DOCTYPE html>\n<html><body>Welcome, please log in</body></html>"},
		"a web page that says XML":    {"text/xml", "<html><body>Your session has ended</body></html>"},
		"a web page without a type":   {"application/octet-stream", "\ufeff <!-- x -->\n<HTML><body>Blocked</body></HTML>"},
		"plain words":                 {"text/plain", "OK"},
		"nothing":                     {"text/xml", ""},
		"white space":                 {"text/xml", " \r\n"},
		"XML of something else":       {"text/xml", `<?xml version="1.0"?><status/>`},
		"something that is not whole": {"text/xml", `<?xml version="1.0"?><`},
		"JSON of something else":      {"application/json", `{"error":"please log in","items":[]}`},
		"another's refusal in XML":    {"text/xml", "<Response><Errors/></Response>"},
		"another's error in XML":      {"text/xml", "<ErrorResponse><Error/></ErrorResponse>"},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", page[0])
				_, _ = fmt.Fprint(w, page[1])
			}))
			api := load(t)
			objects := s3.NewFromConfig(api.Config(""), func(o *s3.Options) { o.UsePathStyle = true })
			for action, ask := range map[string]func() error{
				"DescribeInstances": func() error { _, err := api.EC2("us-east-1").DescribeInstances(t.Context(), nil); return err },
				"DescribeRegions": func() error {
					_, err := api.EC2("us-east-1").DescribeRegions(t.Context(), &ec2.DescribeRegionsInput{})
					return err
				},
				"GetCallerIdentity": func() error { _, err := api.Identity(t.Context()); return err },
				"ListObjectsV2": func() error {
					_, err := objects.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("b")})
					return err
				},
				"ListTrainingJobs": func() error {
					_, err := sagemaker.NewFromConfig(api.Config("")).ListTrainingJobs(t.Context(), nil)
					return err
				},
				"StopInstances": func() error {
					_, err := api.EC2("us-east-1").StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{"i-1"}})
					return err
				},
			} {
				if action == "StopInstances" && strings.TrimSpace(page[1]) == "" {
					continue // it lists nothing that anybody reads
				}
				p := Explain(ask(), Call{Action: action})
				if p == nil || p.Kind != Unknown || !strings.Contains(p.Cause, "something that is not AWS answered "+action) || !strings.Contains(p.Next, "HTTPS_PROXY") {
					t.Errorf("%s: %+v", action, p)
				}
			}
		})
	}
}

// What was never stored is not said to be.
func TestAPageDoesNotStoreAnObject(t *testing.T) {
	for _, page := range []string{"<html><body>Please log in</body></html>", `{"error":"please log in"}`, "OK"} {
		isolate(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(w, page)
		}))
		objects := s3.NewFromConfig(load(t).Config(""), func(o *s3.Options) { o.UsePathStyle = true })
		_, err := objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: strings.NewReader("x")})
		if p := Explain(err, Call{Action: "PutObject"}); p == nil || p.Kind != Unknown || !strings.Contains(p.Cause, "something that is not AWS") {
			t.Errorf("%s: %+v", page, p)
		}
		_, err = objects.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String("b"), Delete: &s3types.Delete{Objects: []s3types.ObjectIdentifier{{Key: aws.String("k")}}}})
		if p := Explain(err, Call{Action: "DeleteObjects"}); p == nil || p.Kind != Unknown {
			t.Errorf("%s: %+v", page, p)
		}
	}
}

// What answers look like that are the service's: as far as this is concerned.
func TestAnswersOfTheServicesAreTaken(t *testing.T) {
	body, form := "", "text/xml"
	isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", form)
		_, _ = fmt.Fprint(w, body)
	}))
	api := load(t)
	objects := s3.NewFromConfig(api.Config(""), func(o *s3.Options) { o.UsePathStyle = true })
	if signed, err := s3.NewPresignClient(objects).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")}); err != nil || !strings.Contains(signed.URL, "/b/k?") {
		t.Errorf("an address that is signed: %v %v", signed, err)
	}
	for _, c := range []struct {
		form, body string
		ask        func() error
	}{
		{"text/html; charset=utf-8", "<DescribeInstancesResponse/>", func() error { _, err := api.EC2("us-east-1").DescribeInstances(t.Context(), nil); return err }},
		{"text/xml", "<DescribeInstancesResponse/>", func() error { _, err := api.EC2("us-east-1").DescribeInstances(t.Context(), nil); return err }},
		{"", "<?xml version=\"1.0\"?>\n<!-- x -->\n<ns:DescribeInstancesResponse xmlns:ns='http://x'>" + strings.Repeat(" ", 9000) + "</ns:DescribeInstancesResponse>",
			func() error { _, err := api.EC2("us-east-1").DescribeInstances(t.Context(), nil); return err }},
		{"application/xml", "<ListBucketResult><Name>b</Name></ListBucketResult>", func() error {
			_, err := objects.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("b")})
			return err
		}},
		{"application/xml", "", func() error {
			_, err := objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
			return err
		}},
		{"application/xml", "\n<?xml version=\"1.0\"?><CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>", func() error {
			_, err := objects.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{Bucket: aws.String("b"), Key: aws.String("k"), UploadId: aws.String("u")})
			return err
		}},
		{"text/html", "<html>an object of somebody's</html>", func() error {
			_, err := objects.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("index.html")})
			return err
		}},
		{"application/x-amz-json-1.1", "{}", func() error {
			_, err := sagemaker.NewFromConfig(api.Config("")).ListTrainingJobs(t.Context(), nil)
			return err
		}},
		{"application/x-amz-json-1.1", `{"TrainingJobSummaries":[]}`, func() error {
			_, err := sagemaker.NewFromConfig(api.Config("")).ListTrainingJobs(t.Context(), nil)
			return err
		}},
		{"application/x-amz-json-1.1", "", func() error {
			_, err := sagemaker.NewFromConfig(api.Config("")).StopTrainingJob(t.Context(), &sagemaker.StopTrainingJobInput{TrainingJobName: aws.String("x")})
			return err
		}},
	} {
		form, body = c.form, c.body
		if err := c.ask(); err != nil {
			t.Errorf("%s %.60s: %v", c.form, c.body, err)
		}
	}
}

// An error page in AWS's place is not asked again, and not taken for AWS's want of
// time: whoever waits would hear nothing of what stands in the way.
func TestAnErrorPageInTheAnswersPlaceIsToldAtOnce(t *testing.T) {
	for status, says := range map[int]string{http.StatusForbidden: "HTTP 403 and no word of AWS's", http.StatusProxyAuthRequired: "HTTP 407 and no word of AWS's",
		http.StatusNetworkAuthenticationRequired: "HTTP 511 and no word of AWS's", http.StatusBadRequest: "does not serve DescribeRegions", http.StatusNotFound: "does not serve DescribeRegions"} {
		var asked atomic.Int32
		isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"__type":"Nonsense","message":"no"}`)
		}))
		_, err := load(t).EC2("us-east-1").DescribeRegions(t.Context(), nil)
		p := Explain(err, Call{Action: "DescribeRegions"})
		if p == nil || p.Kind != Unknown || !strings.Contains(p.Cause, says) || asked.Load() != 1 {
			t.Errorf("%d: %+v, asked %d times", status, p, asked.Load())
		}
	}
}

// The time that somebody has may end between two tries.
func TestWhatStandsInTheWayIsToldWhenTheTimeIsOver(t *testing.T) {
	const refused = "http://127.0.0.1:1"
	failing := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	asked := make(chan struct{}, 1)
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	for at, says := range map[string]string{refused: "nothing listens where AWS is expected", failing: "HTTP 503", silent: "did not answer DescribeRegions in time"} {
		isolate(t, at)
		ctx := until(t)
		if at == silent {
			go func() {
				<-asked
				ctx.over()
			}()
		}
		_, err := load(t).EC2("us-east-1").DescribeRegions(ctx, nil, func(o *ec2.Options) {
			o.Retryer = patient{o.Retryer, ctx}
		})
		if p := Explain(err, Call{Action: "DescribeRegions"}); p == nil || !strings.Contains(p.Cause, says) {
			t.Errorf("%s: %+v", at, p)
		}
	}
}

// patient waits for long after its first try, when the time is over.
type patient struct {
	aws.Retryer
	within *timed
}

// RetryDelay implements aws.Retryer.
func (p patient) RetryDelay(int, error) (time.Duration, error) {
	p.within.over()
	return time.Hour, nil
}

// A proxy that does not open the way has sent nothing on, and it is the one to be
// asked about that.
func TestAProxyThatRefusesIsNamed(t *testing.T) {
	for status, says := range map[int]string{http.StatusProxyAuthRequired: "USER:PASSWORD@", http.StatusForbidden: "to allow ec2.us-east-1.amazonaws.com", http.StatusBadGateway: "NO_PROXY"} {
		var asked atomic.Int32
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.Method != http.MethodConnect {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			w.WriteHeader(status)
		}))
		isolate(t, "")
		api := load(t)
		at, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		api.cfg.HTTPClient = api.cfg.HTTPClient.(*client).HTTPClient.(*awshttp.BuildableClient).
			WithTransportOptions(func(to *http.Transport) { to.Proxy = http.ProxyURL(at) })
		_, err = api.EC2("us-east-1").RunInstances(t.Context(), &ec2.RunInstancesInput{MaxCount: aws.Int32(1), MinCount: aws.Int32(1)})
		p := Explain(err, Call{Action: "RunInstances"})
		if p == nil || p.Kind != Unreachable || !strings.Contains(p.Cause, strings.TrimPrefix(proxy.URL, "http://")+" did not open the way to ec2.us-east-1.amazonaws.com") ||
			!strings.Contains(p.Cause, fmt.Sprint("HTTP ", status)) || !strings.Contains(p.Next, says) {
			t.Errorf("%d: %+v", status, p)
		}
		if again := asked.Load() > 1; again != (status >= 500) {
			t.Errorf("%d: asked %d times", status, asked.Load())
		}
		proxy.Close()
	}
}

// Nobody looks for what became of a question, nor for instances behind another service.
func TestWhatAWSFailedAtIsLookedForWhereItMayHaveMadeSomething(t *testing.T) {
	isolate(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(w, `<Response><Errors><Error><Code>InternalError</Code><Message>x</Message></Error></Errors><RequestID>x</RequestID></Response>`)
	}))
	api, once := load(t), func(o *sagemaker.Options) { o.Retryer = aws.NopRetryer{} }
	_, asked := api.EC2("us-east-1").DescribeRegions(t.Context(), nil, Once)
	_, made := api.EC2("us-east-1").CreateVpc(t.Context(), &ec2.CreateVpcInput{}, Once)
	_, other := sagemaker.NewFromConfig(api.Config("")).StopTrainingJob(t.Context(), &sagemaker.StopTrainingJobInput{TrainingJobName: aws.String("x")}, once)
	for name, c := range map[string]struct {
		err   error
		looks bool
	}{"a question": {asked, false}, "an instance's": {made, true}, "another service": {other, false}} {
		p := Explain(c.err, Call{Region: "us-east-1"})
		if p == nil || p.Kind != Unknown || strings.Contains(p.Next, "aws ec2 describe-instances") != c.looks {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// The last of several tries is cut off when the time is over: what came of it nobody
// knows, whatever the tries before it were told.
func TestATryThatIsCutOffIsDoubtWhateverCameBefore(t *testing.T) {
	var asked atomic.Int32
	within := until(t)
	isolate(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			within.over()
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"__type":"ThrottlingException","message":"slow down"}`)
	}))
	_, err := sagemaker.NewFromConfig(load(t).Config("")).StopTrainingJob(within, &sagemaker.StopTrainingJobInput{TrainingJobName: aws.String("x")})
	if asked.Load() < 2 {
		t.Fatalf("there was no second try: %v", err)
	}
	if p := Explain(err, Call{Action: "StopTrainingJob"}); p == nil || p.Kind != Unknown {
		t.Errorf("%+v", p)
	}
}
