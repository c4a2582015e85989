package sagemaker

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ownimage"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
)

// example is an example of the official SDK's documents as a profile has it. What the
// SDK sends for it is in testdata/sdk, written by internal/tools/sagemaker_sdk.py.
type example struct {
	instance, image string
	count           int
	engine          string
	words           []string // of the command, behind train.py
	m               options.Machines
	spot            bool
	life            time.Duration
	disk            int64
	metrics         [][2]string
	env             map[string]string
}

var examples = map[string]example{
	"script-mode":      {words: []string{"--epochs", "3", "--lr=0.001", "--backend", "gloo", "--name", `a "b" ä`}, life: 12 * time.Hour},
	"spot-checkpoints": {spot: true, life: time.Hour, m: options.Machines{MaxWait: "2h", Checkpoints: "s3://ml-lab/ckpt/charlm", CheckpointPath: "/opt/ml/checkpoints"}},
	"channels": {m: options.Machines{Subnet: "subnet-1", Groups: []string{"sg-1", "sg-2"}, Channels: []string{"train=s3://ml-lab/train,sharded,fastfile", "val=s3://ml-lab/val",
		"stream=s3://ml-lab/stream,pipe,gzip", "list=s3://ml-lab/list.manifest,manifest", "home=efs/fs-0123456789abcdef0/data", "fast=fsx/fs-0fedcba9876543210/fsx/imagenet,rw"}}},
	"mpi": {count: 2, m: options.Machines{Distribution: options.MPI, MPIProcesses: 8, MPIOptions: []string{"-verbose", "-x", "NCCL_DEBUG=INFO"}}},
	"data-parallel": {count: 2, instance: "ml.p4d.24xlarge", image: "pytorch:2.0.1",
		m: options.Machines{Distribution: options.DataParallel, MPIOptions: []string{"-x", "NCCL_DEBUG=VERSION"}}},
	"torch-distributed":     {count: 2, instance: "ml.g5.12xlarge", engine: "torchrun"},
	"pytorchddp":            {count: 2, instance: "ml.p4d.24xlarge", image: "pytorch:2.0.1", m: options.Machines{Distribution: options.PyTorchDDP}},
	"parameter-server":      {count: 2, m: options.Machines{Estimator: options.TensorFlow, Distribution: options.ParameterServer}},
	"multi-worker-mirrored": {count: 2, engine: "tensorflow", m: options.Machines{Estimator: options.TensorFlow}},
	"around": {instance: "ml.m5.large", disk: 100 << 30, metrics: [][2]string{{"loss", "loss ([0-9.]+)"}}, env: map[string]string{"A": "b"},
		m: options.Machines{KMSKey: "alias/k", KeepAlive: "30m", Tags: map[string]string{"project": "charlm"}, Encrypted: true, Retries: 2, Subnet: "subnet-1", Groups: []string{"sg-1"}}},
	"remote-debug": {m: options.Machines{RemoteDebug: true}},
	"own-image": {instance: "ml.m5.large", image: "123456789012.dkr.ecr.us-west-2.amazonaws.com/train:1",
		m: options.Machines{Estimator: "-", Channels: []string{"train=s3://ml-lab/train"}, Hyper: map[string]string{"epochs": "3"}}},
}

// asked is what dlwb sends for an example.
func (x example) asked(t *testing.T) map[string]any {
	t.Helper()
	m := x.m
	switch m.Estimator {
	case "":
		m.Estimator = options.PyTorch
	case "-":
		m.Estimator = ""
	}
	if x.instance == "" {
		x.instance = "ml.g5.xlarge"
	}
	if x.life == 0 {
		x.life = 24 * time.Hour
	}
	x.count = max(x.count, 1)
	spec := cloud.Spec{Name: "c", Count: x.count, Own: &m, Instance: x.instance, Spot: x.spot, Image: x.image, Disk: x.disk, Lifetime: x.life, Metrics: x.metrics}
	j := cloud.Job{Run: "job-1", Replicas: x.count, Spec: spec, Engine: x.engine, Command: append([]string{"python3", "-u", "train.py"}, x.words...)}
	image, err := imageOf(spec.Image, m.Estimator, "us-west-2", spec.Instance)
	if err != nil {
		t.Fatal(err)
	}
	limit, err := cloud.PaidFor(spec, 0, 0, longest)
	if err != nil {
		t.Fatal(err)
	}
	r := ref{Region: "us-west-2", Name: nameOf(j.Run), Bucket: "ml-lab", Prefix: "dlwb/life/job-1/", Output: "s3://ml-lab/models"}
	in, err := requestOf(j, r, settings{life: cloud.Life{Name: "c", ID: "life"}, role: "arn:aws:iam::123456789012:role/Training", image: image, limit: limit, env: x.env})
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, []byte(shown(in)))
}

func decoded(t *testing.T, text []byte) (all map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// without takes out what is known to be another: the debugger and the profiler, which
// the SDK turns on by itself, the place of the code, and dlwb's own tags.
func without(all map[string]any) map[string]any {
	for _, key := range []string{"DebugHookConfig", "ProfilerConfig", "ProfilerRuleConfigurations"} {
		delete(all, key)
	}
	if hyper, is := all["HyperParameters"].(map[string]any); is {
		if _, has := hyper["sagemaker_submit_directory"]; has {
			hyper["sagemaker_submit_directory"] = `"s3://…/sourcedir.tar.gz"`
		}
	}
	if tags, is := all["Tags"].([]any); is {
		tags = slices.DeleteFunc(tags, func(tag any) bool { return strings.HasPrefix(tag.(map[string]any)["Key"].(string), "dlwb:") })
		if all["Tags"] = tags; len(tags) == 0 {
			delete(all, "Tags")
		}
	}
	return all
}

// Of each of the documented examples dlwb sends what the official SDK sends.
func TestTheRequestIsThatOfTheOfficialSDK(t *testing.T) {
	files, err := filepath.Glob("testdata/sdk/*.json")
	if err != nil || len(files) != len(examples) {
		t.Fatalf("there are %d calls of the SDK for %d examples: %v", len(files), len(examples), err)
	}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata/sdk", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			want, got := without(decoded(t, text)), without(examples[name].asked(t))
			if name == "own-image" {
				own(t, want, got)
			}
			if !reflect.DeepEqual(got, want) {
				a, _ := json.MarshalIndent(got, "", "  ")
				b, _ := json.MarshalIndent(want, "", "  ")
				t.Errorf("sent is\n%s\nand by the SDK\n%s", a, b)
			}
		})
	}
}

// own looks at what dlwb itself starts, in place of the image's own command: its entry
// point, and the channel by which its launcher comes.
func own(t *testing.T, want, got map[string]any) {
	t.Helper()
	words, _ := got["AlgorithmSpecification"].(map[string]any)["ContainerEntrypoint"].([]any)
	if len(words) != 3 || words[2] != entrypoint || len(entrypoint) > 256 {
		t.Errorf("the entry point is %q", words)
	}
	delete(got["AlgorithmSpecification"].(map[string]any), "ContainerEntrypoint")
	delete(want["AlgorithmSpecification"].(map[string]any), "ContainerEntrypoint")
	channels, _ := got["InputDataConfig"].([]any)
	last, _ := channels[len(channels)-1].(map[string]any)
	if last["ChannelName"] != channelName {
		t.Errorf("the last channel is %v", last)
	}
	got["InputDataConfig"] = channels[:len(channels)-1]
}

// What script mode can't hand over is refused, and what it can comes to the script as
// it was typed.
func TestACommandBecomesHyperparametersOrIsRefused(t *testing.T) {
	for command, want := range map[string]string{
		"python3 train.py --lr -0.5 --name=x=y -b 8": "{train.py map[b:8 lr:-0.5 name:x=y]}", "run.sh": "{run.sh map[]}", "python3.11 -u ./src/t.py": "{src/t.py map[]}",
		"train.py pos": "pos", "train.py --flag": "--flag", "train.py --flag --other 1": "--flag", "train.py --aa 1 --aa 2": "--aa", "python3 -m pkg": "-m", "train.py --aa 1 -xy 2": "-xy", "bash -c x": "bash",
		"/abs/train.py": "/abs", "train.py --x 1": "--x",
	} {
		s, err := scriptOf(strings.Fields(command))
		if got := strings.TrimSpace(strings.ReplaceAll(shownScript(s), "\n", "")); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", command, got, err)
		}
	}
	for text, want := range map[string]string{"3": "3", "03": `"03"`, "0.10": `"0.10"`, "0.1": "0.1", "1e-05": "1e-05", "1e-5": `"1e-5"`, "true": `"true"`, "1.0": "1.0", "": `""`, "-0": `"-0"`, "1e16": `"1e16"`, "1e+16": "1e+16", "😀": `"\ud83d\ude00"`, "NaN": `"NaN"`, "a\tb": `"a\tb"`} {
		if got := encoded(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The toolkit of an estimator starts the ranks once: that is said before, and nothing is
// handed in where it was not seen before.
func TestAnEstimatorWithRestartsIsRefused(t *testing.T) {
	for estimator, want := range map[string]bool{"": false, options.PyTorch: true} {
		m := options.Machines{Estimator: estimator}
		said := slices.ContainsFunc(still(cloud.Spec{Instance: "ml.m5.large", Restarts: 2}, m), func(f cloud.Finding) bool { return f.What == "restarts" && !f.OK })
		if said != want {
			t.Errorf("estimator %q: refused %v", estimator, said)
		}
	}
	if _, err := hyperOf(cloud.Job{Restarts: true, Command: []string{"train.py"}}, ref{}, "s3://b/k"); err == nil || !strings.Contains(err.Error(), "run.restarts") {
		t.Error(err)
	}
	if _, err := hyperOf(cloud.Job{Command: []string{"train.py"}}, ref{}, "s3://b/k"); err != nil {
		t.Error(err)
	}
}

func shownScript(s script) string {
	text := "{" + s.program + " map["
	for i, key := range slices.Sorted(maps.Keys(s.hyper)) {
		if i > 0 {
			text += " "
		}
		text += key + ":" + s.hyper[key]
	}
	return text + "]}"
}

// The call for a job with an image of its Dockerfile names that by its digest, and is as
// that for any other image.
func TestTheRequestNamesABuiltImageByItsDigest(t *testing.T) {
	x := examples["own-image"]
	plain := x.asked(t)
	b := ownimage.Built{Region: "us-west-2", Repository: "team/train", Address: "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/train", Tag: "dlwb-0123",
		Digest: "sha256:" + strings.Repeat("0123456789abcdef", 4)}
	x.image, x.m.Repository = b.Name(), b.Repository
	built := x.asked(t)
	algorithm := built["AlgorithmSpecification"].(map[string]any)
	if got, want := algorithm["TrainingImage"], "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/train@sha256:"+strings.Repeat("0123456789abcdef", 4); got != want {
		t.Errorf("the image is %v, want %s", got, want)
	}
	if algorithm["TrainingImage"] = plain["AlgorithmSpecification"].(map[string]any)["TrainingImage"]; !reflect.DeepEqual(built, plain) {
		t.Errorf("sent is %v, and for an image that exists %v", built, plain)
	}
	c := &check{m: x.m, partition: "aws", account: "123456789012", door: &door{region: "us-west-2"}}
	policy := policyOf(c.pulling(rightsOf(cloud.Spec{Own: &x.m}, "aws", "us-west-2", "b")))
	var doc document
	if err := json.Unmarshal([]byte(policy), &doc); err != nil {
		t.Fatal(err)
	}
	for _, s := range doc.Statement {
		for _, action := range s.Action {
			if strings.HasPrefix(action, "ecr:") && (s.Resource[0] == "*") != (action == ownimage.All) {
				t.Errorf("%s is allowed on %s", action, s.Resource)
			}
		}
	}
}
