//go:build unix

package sagemaker

import (
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/fakesagemaker"
)

// What a job has cost is final when SageMaker can bill nothing more for it: neither the
// job nor machines that stay for another.
func TestWhatAJobHasCostIsToldWhenNothingIsAddedToIt(t *testing.T) {
	f, p, life := account(t)
	bill := func(run string, final bool, costs bool) {
		t.Helper()
		usd, is, err := p.Billed(t.Context(), life, run)
		want := 0.0
		if costs {
			want = f.Billed(nameOf(run)) / 3600 * 0.115
		}
		if err != nil || is != final || math.Abs(usd-want) > 1e-12 || costs && usd == 0 {
			t.Errorf("%s: %v (final %v), %v; want %v (%v)", run, usd, is, err, want, final)
		}
	}
	bill("never", true, false)

	f.Quota = 0
	full := new(cloud.NoRoom)
	if _, err := p.Submit(t.Context(), life, jobThat(t, "refused", "", options.Machines{}), noStep, quiet); !errors.As(err, &full) || !strings.Contains(err.Error(), "with current utilization of 0") {
		t.Errorf("a quota without room: %v", err)
	}
	f.Quota = 8
	bill("refused", true, false)

	made, err := p.Submit(t.Context(), life, jobThat(t, "runs", "import time\ntime.sleep(60)\n", options.Machines{}), noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), life, made.Ref, noStep, quiet); err != nil {
		t.Fatal(err)
	}
	bill("runs", false, false)
	f.StopElsewhere("runs")
	comesTo(t, f, "runs", "Stopped")
	bill("runs", true, true)

	if made, err = p.Submit(t.Context(), life, jobThat(t, "warm", "print(1)\n", options.Machines{KeepAlive: "30m"}), noStep, quiet); err != nil || made.Stay != 30*time.Minute {
		t.Fatalf("%+v, %v", made, err)
	}
	comesTo(t, f, "warm", "Completed")
	bill("warm", false, false)
	if _, err := p.Submit(t.Context(), life, jobThat(t, "takes", "print(1)\n", options.Machines{KeepAlive: "30m"}), noStep, quiet); err != nil {
		t.Fatal(err)
	}
	bill("warm", true, true)

	r, err := p.Down(t.Context(), life, quiet)
	sum := 0.0
	for _, name := range f.Jobs() {
		sum += f.Billed(name) / 3600 * 0.115
	}
	if err != nil || !r.Proven() || math.Abs(r.Cost-sum) > 1e-12 {
		t.Errorf("%v; the receipt has %v, and %v is billed", err, r.Cost, sum)
	}
	bill("takes", true, true)
}

func comesTo(t *testing.T, f *fakesagemaker.Fake, name, status string) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); f.Status(name) != status; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s is %s", name, f.Status(name))
		}
	}
}

// A fault of a quota that SageMaker may have carried out all the same is no word for
// room: the job may be there.
func TestAQuotaOfWhichNothingIsCertainIsNoWordForRoom(t *testing.T) {
	f, p, life := account(t)
	f.Answer(func(call string, _ int) *fakesagemaker.Error {
		if call == "CreateTrainingJob" {
			return &fakesagemaker.Error{Status: 500, Code: "ResourceLimitExceeded", Says: "quota"}
		}
		return nil
	})
	_, err := p.Submit(t.Context(), life, jobThat(t, "r", "", options.Machines{}), noStep, quiet)
	if full := new(cloud.NoRoom); err == nil || errors.As(err, &full) {
		t.Errorf("%v", err)
	}
	if usd, final, err := p.Billed(t.Context(), life, "r"); final || usd != 0 || err != nil {
		t.Errorf("%v (final %v), %v", usd, final, err)
	}
}

// The trials of a sweep would go on from each other's checkpoints.
func TestATrialHasAPlaceOfItsOwnForItsCheckpoints(t *testing.T) {
	for trial, want := range map[bool]string{false: "s3://ml-lab/ckpt/", true: "s3://ml-lab/ckpt/run-7"} {
		j := cloud.Job{Run: "run-7", Trial: trial, Replicas: 1, Spec: cloud.Spec{Own: &options.Machines{Checkpoints: "s3://ml-lab/ckpt/"}}}
		in, err := requestOf(j, ref{Name: "run-7", Bucket: "b", Output: "s3://b/o"}, settings{limit: time.Hour})
		if err != nil || *in.CheckpointConfig.S3Uri != want {
			t.Errorf("trial %v: %v, %v", trial, in.CheckpointConfig, err)
		}
	}
}

// A job that takes its time to end keeps no other from being ended: each costs until it
// is.
func TestAllJobsAreAskedToEndBeforeOneIsWaitedFor(t *testing.T) {
	f, p, life := account(t)
	program := "import signal, time\ndef slowly(*_):\n    time.sleep(1)\n    raise SystemExit(0)\nsignal.signal(signal.SIGTERM, slowly)\nprint('ready', flush=True)\ntime.sleep(600)\n"
	for _, run := range []string{"r-1", "r-2", "r-3"} {
		made, err := p.Submit(t.Context(), life, jobThat(t, run, program, options.Machines{}), noStep, quiet)
		if err == nil {
			err = p.Await(t.Context(), life, made.Ref, noStep, quiet)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var early atomic.Int32
	f.Answer(func(call string, _ int) *fakesagemaker.Error {
		if call == "StopTrainingJob" && f.Status("r-1") != "Stopped" {
			early.Add(1)
		}
		return nil
	})
	if r, err := p.Down(t.Context(), life, quiet); err != nil || !r.Proven() {
		t.Errorf("%v, %+v", err, r)
	}
	if n := early.Load(); n != 3 {
		t.Errorf("%d of three jobs were asked to end before the first had", n)
	}
}
