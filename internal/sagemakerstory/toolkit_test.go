//go:build linux

package sagemakerstory

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// An estimator's job is started by the real sagemaker-training, as in AWS's containers:
// it fetches the code from S3, and the script gets its hyperparameters as they were
// typed, its data and its hosts.
func TestScriptModeRunsInTheRealToolkit(t *testing.T) {
	toolkit := os.Getenv("DLWB_SAGEMAKER_TRAINING")
	if toolkit == "" {
		t.Skip("it needs the program train of sagemaker-training in DLWB_SAGEMAKER_TRAINING: make test-sagemaker installs it")
	}
	p := newProject(t)
	p.fake.Train = []string{toolkit}
	p.fake.Hosts = func(n int) string { return fmt.Sprintf("127.0.0.%d", n+1) } // the toolkit waits until they have addresses
	p.fake.AddBucket("ml-lab", p.fake.Region)
	p.fake.Put("ml-lab", "data/a.txt", "one")
	p.Write("helper.py", "NAME = 'helped'\n")
	p.Write("train.py", `import json, os, sys
from helper import NAME
print("argv", json.dumps(sys.argv[1:]))
print("data", open(os.path.join(os.environ["SM_CHANNEL_TRAIN"], "a.txt")).read(), os.environ["SM_CURRENT_HOST"], os.environ["GREETING"], NAME)
with open(os.path.join(os.environ["SM_MODEL_DIR"], "model.txt"), "w") as f:
    f.write("weights")
print("step 1/1 loss 0.5000", flush=True)
`)
	p.profile("sagemaker", `{engine: plain, command: "train.py --epochs 3 --lr 0.10 --name 'a b' --on true", env: {GREETING: hello}}`,
		"machines: {instance: ml.m5.large, execution_role: Training, estimator: pytorch, channels: ['train=s3://ml-lab/data']}\n")
	p.Must("run", "--json", "--down")
	log := p.Logs()["rank-0.log"]
	for _, want := range []string{`argv ["--epochs", "3", "--lr", "0.10", "--name", "a b", "--on", "true"]`, "data one 127.0.0.1 hello helped", "step 1/1 loss 0.5000", "Reporting training SUCCESS"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
	if model := p.fake.Objects("sagemaker-us-west-2-123456789012", "dlwb/output/"); len(model) != 1 || !strings.HasSuffix(model[0], "/output/model.tar.gz") {
		t.Errorf("left is %q", model)
	}
	p.clean()
	p.Write("train.py", "import sys\nsys.exit(9)\n")
	out, err := p.Try("run", "--json", "--down")
	if err == nil || !strings.Contains(out, "ExitCode 9") {
		t.Errorf("the failure of a script is not told: %v\n%s", err, out)
	}
	p.clean()
}
