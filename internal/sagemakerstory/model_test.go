//go:build linux

package sagemakerstory

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Every request to SageMaker, CloudWatch and the rest is one that AWS's own model of its
// services takes: its members, its types, its enumerations.
func TestEveryRequestIsOneOfAWSsModel(t *testing.T) {
	python := os.Getenv("DLWB_BOTOCORE")
	if python == "" {
		t.Skip("it needs a python with botocore in DLWB_BOTOCORE: make test-sagemaker installs it")
	}
	p := newProject(t)
	p.fake.AddBucket("ml-lab", p.fake.Region)
	p.fake.Use = func(string, string) (float64, bool) { return 7, true }
	p.profile("sagemaker", "{engine: plain, command: train.py 0.05}", "machines: {count: 2, instance: ml.g5.xlarge, execution_role: Training, keep_alive: 30m, checkpoints: 's3://ml-lab/ckpt', retries: 2, encrypt_traffic: true, "+
		"subnet: subnet-1, security_groups: [sg-1], kms_key: alias/k, tags: {a: b}, channels: ['fast=fsx/fs-0fedcba9876543210/fsx/imagenet']}\nlimits: {lifetime: 1h}\n")
	p.Must("run", "--json", "--down")
	dir, names := t.TempDir(), map[string]bool{}
	for i, c := range p.fake.Calls("") {
		names[c.Name] = true
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.%s.%s", i, c.Service, c.Name)), c.Body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"CreateTrainingJob", "DescribeTrainingJob", "UpdateTrainingJob", "ListTags", "GetLogEvents", "DescribeLogStreams", "GetMetricData", "SimulatePrincipalPolicy"} {
		if !names[name] {
			t.Errorf("%s was not sent", name)
		}
	}
	if said, err := exec.Command(python, "../tools/aws_model.py", dir, "15").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	} else {
		t.Logf("%s", said)
	}
	p.clean()
}
