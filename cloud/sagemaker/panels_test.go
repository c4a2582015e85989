//go:build unix

package sagemaker

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/fakesagemaker"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/vitals"
)

// samplesOf are what a replica tells of its machine, as a node's is read, until there
// are so many.
func samplesOf(t *testing.T, p *Provider, life cloud.Life, ref string, replica, want int) (all []metrics.Sample) {
	t.Helper()
	pause := metricPause
	metricPause = 20 * time.Millisecond
	defer func() { metricPause = pause }()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	reader := vitals.NewReader()
	err := p.Open(life, ref)[replica].(job.Teller).Telemetry(ctx, job.NewPace(), func(frame []byte) {
		s, is := reader.Frame(frame)
		if !is {
			t.Errorf("no frame: %q", frame)
		}
		if all = append(all, s); len(all) == want {
			cancel()
		}
	})
	if len(all) < want {
		t.Fatalf("%d samples: %v", len(all), err)
	}
	return all
}

func near(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) < 0.01*want+0.01 }

// What CloudWatch has of a host is shown as a node's telemetry is: percents of all cores
// and bytes, and of several GPUs the mean, which is said to be one.
func TestAHostsPanelIsWhatCloudWatchHasOfIt(t *testing.T) {
	f, p, life := account(t)
	use := map[string]float64{metricCPU: 2400, metricMemory: 25, metricGPU: 200, metricGPUMem: 40, metricDisk: 10}
	f.Use = func(host, metric string) (float64, bool) { v := use[metric]; return v, host == "r-panel/algo-1" }
	j := jobThat(t, "r-panel", "import time\ntime.sleep(600)\n", options.Machines{})
	j.Spec.Instance = "ml.g5.12xlarge"
	made, err := p.Submit(t.Context(), life, j, noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if l := job.LackOf(made.Lacks, job.Telemetry); l != nil {
		t.Errorf("it is said to have none: %s", l)
	}
	if err := p.Await(t.Context(), life, made.Ref, noStep, quiet); err != nil {
		t.Fatal(err)
	}
	s := samplesOf(t, p, life, made.Ref, 0, 2)[1]
	if s.Every != 60 || s.Cores != 48 || !near(s.CPU, 50) || !near(s.MemTotal, 192<<30) || !near(s.MemUsed, 48<<30) || !near(s.DiskTotal, 30<<30) || !near(s.DiskUsed, 3<<30) {
		t.Errorf("%+v", s)
	}
	if len(s.GPUs) != 1 || s.GPUs[0].Name != "mean of 4 × A10G" || !near(s.GPUs[0].Util, 50) || !near(s.GPUs[0].MemUsed, *s.GPUs[0].MemTotal/10) || s.GPUs[0].Temp != nil {
		t.Errorf("%+v", s.GPUs)
	}
	if _, err := p.Down(t.Context(), life, quiet); err != nil {
		t.Error(err)
	}
}

// The panel of a job that failed before it began, or that SageMaker has forgotten, ends:
// AWS is asked nothing more.
func TestThePanelOfAJobThatNeverBeganEnds(t *testing.T) {
	f, p, life := account(t)
	f.NeverBegins = "CapacityError: Unable to provision requested ML compute capacity."
	made, err := p.Submit(t.Context(), life, jobThat(t, "r-never", "print(1)\n", options.Machines{}), noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	never := new(cloud.NeverBegan)
	if err := p.Await(t.Context(), life, made.Ref, noStep, quiet); !errors.As(err, &never) || !strings.Contains(err.Error(), "CapacityError") {
		t.Errorf("Await says %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := p.Open(life, made.Ref)[0].(job.Teller).Telemetry(ctx, job.NewPace(), func([]byte) {}); err != nil {
		t.Errorf("the panel goes on: %v", err)
	}
	if _, err := p.Down(t.Context(), life, quiet); err != nil {
		t.Error(err)
	}
}

// Who may not ask CloudWatch is told so where the panel would be, with the right that
// is missing, and the job runs.
func TestWithoutTheRightToCloudWatchThePanelSaysSo(t *testing.T) {
	f, p, life := account(t)
	f.Answer(func(call string, _ int) *fakesagemaker.Error {
		if call == "GetMetricData" {
			return &fakesagemaker.Error{Status: 403, Code: "AccessDenied", Says: "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: cloudwatch:GetMetricData"}
		}
		return nil
	})
	made, err := p.Submit(t.Context(), life, jobThat(t, "r-blind", "print(1)\n", options.Machines{}), noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	l := job.LackOf(made.Lacks, job.Telemetry)
	if l == nil || !strings.Contains(l.String(), "cloudwatch:GetMetricData") || !strings.Contains(l.Why, "not to be had from CloudWatch") {
		t.Errorf("%v", l)
	}
	if _, err := p.Down(t.Context(), life, quiet); err != nil {
		t.Error(err)
	}
}
