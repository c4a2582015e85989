//go:build unix

package sagemaker

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/testport"
)

// moto starts a stand-in for AWS that others made, and gives this process's way to it.
func moto(t *testing.T) {
	t.Helper()
	program := os.Getenv("DLWB_MOTO")
	if program == "" {
		t.Skip("it needs moto_server in DLWB_MOTO: make test-sagemaker installs it")
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", testport.Free(t))
	c := exec.Command(program, "-H", "127.0.0.1", "-p", url[len("http://127.0.0.1:"):])
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	for key, value := range map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-west-2",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(key, value)
	}
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get(url + "/moto-api/"); err == nil {
			_ = r.Body.Close()
			return
		}
		if time.Now().After(limit) {
			t.Fatal("moto does not answer")
		}
	}
}

// Another stand-in for AWS takes the same calls: a role, a bucket, the job, its second
// submission, its end with the proof. Its jobs run nothing.
func TestMotoTakesAJobAndProvesItsEnd(t *testing.T) {
	moto(t)
	p := New()
	d, err := p.doors.Open(t.Context(), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("Training"), AssumeRolePolicyDocument: aws.String(trustPolicy)}); err != nil {
		t.Fatal(err)
	}
	bucket, err := d.bucketOf(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.bucket().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket,
		CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: "us-west-2"}}); err != nil {
		t.Fatal(err)
	}
	life := cloud.Life{Name: "c", ID: "0123456789ab", Began: time.Now(), Ledger: &book{}}
	j := jobThat(t, "r-moto", "print(1)\n", options.Machines{Channels: []string{"train=s3://ml-lab/train,sharded,fastfile"}, Checkpoints: "s3://ml-lab/ckpt"})
	j.Spec.Spot = true
	for _, f := range p.Check(t.Context(), j.Spec).Findings {
		t.Logf("%s %s: %s", f.Mark(), f.What, f.Text)
	}
	made, err := p.Submit(t.Context(), life, j, noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Submit(t.Context(), life, j, noStep, quiet)
	if err != nil || again.Ref != made.Ref {
		t.Errorf("%+v, %v", again, err)
	}
	if found, err := p.Find(t.Context(), life, "r-moto", cloud.Untold); err != nil || found.Ref != made.Ref {
		t.Errorf("%+v, %v", found, err)
	}
	r, err := p.Down(t.Context(), life, quiet)
	if err != nil || !r.Proven() || len(r.Resources) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A panel reads what others wrote: values that were put into another stand-in for
// CloudWatch, minute by minute.
func TestMotoTellsWhatAMachineDoes(t *testing.T) {
	moto(t)
	d, err := New().doors.Open(t.Context(), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Minute)
	put := func(host, name string, ago time.Duration, value float64) {
		t.Helper()
		if _, err := d.watch.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String(metricSpace), MetricData: []cwtypes.MetricDatum{{MetricName: &name, Value: &value,
			Timestamp: aws.Time(now.Add(-ago)), Dimensions: []cwtypes.Dimension{{Name: aws.String("Host"), Value: &host}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, ago := range []time.Duration{3 * time.Minute, 2 * time.Minute} {
		put("j/algo-1", metricCPU, ago, float64(100*(i+1)))
	}
	put("j/algo-1", metricGPU, 2*time.Minute, 75)
	put("j/algo-2", metricCPU, 2*time.Minute, 7)
	all, err := d.readings(t.Context(), "j/algo-1", now.Add(-metricLate))
	if err != nil || len(all) != 2 || all[0].values[metricCPU] != 100 || all[1].values[metricCPU] != 200 || all[1].values[metricGPU] != 75 || len(all[0].values) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}
