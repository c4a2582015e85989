package sagemaker

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud/sagemaker/options"
)

// sdk3Image is the image of all examples of the SDK's third version.
const sdk3Image = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.8.0-gpu-py312"

// examples3 are examples of the documents of the official SDK 3.x as a profile has them.
// Its ModelTrainer starts a script of its own in any image, and has no hyperparameters
// for it: dlwb does so without machines.estimator. What the SDK sends is in
// testdata/sdk3, written by internal/tools/sagemaker_sdk3.py.
var examples3 = map[string]example{
	"script-mode":      {life: 12 * time.Hour, m: options.Machines{Hyper: map[string]string{"epochs": "3", "lr": "0.001", "name": `a "b" ä`}}},
	"spot-checkpoints": examples["spot-checkpoints"],
	"channels":         examples["channels"],
	"torchrun":         {count: 2, instance: "ml.g5.12xlarge", engine: "torchrun"},
	"mpi":              {count: 2, engine: "mpi"},
	"around": {instance: "ml.m5.large", disk: 100 << 30, metrics: [][2]string{{"loss", "loss ([0-9.]+)"}}, env: map[string]string{"A": "b"},
		m: options.Machines{KMSKey: "alias/k", KeepAlive: "30m", Tags: map[string]string{"project": "charlm"}, Encrypted: true, Isolated: true, Retries: 2, InputMode: options.FastFile,
			Subnet: "subnet-1", Groups: []string{"sg-1"}, Channels: []string{"train=s3://ml-lab/train,file"}}},
}

// bare3 takes out what each side has for itself, which is how the container is started
// and by which channels that comes, and words that say what holds without them.
func bare3(all map[string]any) map[string]any {
	all = without(all)
	spec, _ := all["AlgorithmSpecification"].(map[string]any)
	delete(spec, "ContainerEntrypoint")
	delete(spec, "ContainerArguments")
	if out, is := all["OutputDataConfig"].(map[string]any); is && out["CompressionType"] == "GZIP" {
		delete(out, "CompressionType")
	}
	if hyper, is := all["HyperParameters"].(map[string]any); is && len(hyper) == 0 {
		delete(all, "HyperParameters")
	}
	channels, _ := all["InputDataConfig"].([]any)
	channels = slices.DeleteFunc(channels, func(c any) bool {
		name, _ := c.(map[string]any)["ChannelName"].(string)
		return slices.Contains([]string{"code", "sm_drivers", channelName}, name)
	})
	for _, c := range channels {
		if one := c.(map[string]any); one["InputMode"] == spec["TrainingInputMode"] {
			delete(one, "InputMode")
		}
	}
	if all["InputDataConfig"] = channels; len(channels) == 0 {
		delete(all, "InputDataConfig")
	}
	return all
}

// Of each of the documented examples dlwb asks for the same job as the SDK's third
// version, but for what runs in the container.
func TestTheJobIsThatOfTheOfficialSDK3(t *testing.T) {
	files, err := filepath.Glob("testdata/sdk3/*.json")
	if err != nil || len(files) != len(examples3) {
		t.Fatalf("there are %d calls of the SDK for %d examples: %v", len(files), len(examples3), err)
	}
	for _, name := range slices.Sorted(maps.Keys(examples3)) {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata/sdk3", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			x := examples3[name]
			x.image, x.m.Estimator = sdk3Image, "-"
			want, got := bare3(decoded(t, text)), bare3(x.asked(t))
			if !reflect.DeepEqual(got, want) {
				a, _ := json.MarshalIndent(got, "", "  ")
				b, _ := json.MarshalIndent(want, "", "  ")
				t.Errorf("sent is\n%s\nand by the SDK\n%s", a, b)
			}
		})
	}
}
