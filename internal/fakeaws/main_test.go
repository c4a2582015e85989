package fakeaws

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// answered collects which actions the SDK has understood an answer of.
var answered struct {
	sync.Mutex
	actions map[string]bool
}

func TestMain(m *testing.M) {
	answered.actions = map[string]bool{}
	code := m.Run()
	// With -run only some are tested.
	if all := !slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.run") }); all && code == 0 {
		for service, known := range actions {
			for action := range known {
				if !answered.actions[service+" "+action] {
					fmt.Printf("no test has had an answer of %s %s\n", service, action)
					code = 1
				}
			}
		}
	}
	os.Exit(code)
}

// rig is a fake and the SDK that talks to it.
type rig struct {
	*Server
	t   *testing.T
	api *awsapi.API
	ec2 *ec2.Client // of the first region
}

func start(t *testing.T, o Options) *rig {
	t.Helper()
	s := New(o)
	for _, v := range s.Env() {
		k, v, _ := strings.Cut(v, "=")
		t.Setenv(k, v)
	}
	api, err := awsapi.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		answered.Lock()
		defer answered.Unlock()
		for _, c := range s.Calls() {
			if c.Outcome == "ok" {
				answered.actions[c.Service+" "+c.Action] = true
			}
		}
	})
	return &rig{s, t, api, api.EC2(s.opt.Regions[0].Name)}
}

// must unwraps an answer of the SDK.
func must[T any](out T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// code is AWS's code of an error; empty for none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (r *rig) refuses(want string, err error) {
	r.t.Helper()
	if got := code(err); got != want {
		r.t.Fatalf("got %q (%v), want %q", got, err, want)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// image is the newest Ubuntu Deep Learning base image.
func (r *rig) image() string { return r.regions[0].images[0].ID }

// order of n c5.large, changed as wanted.
func (r *rig) order(n int32, change ...func(*ec2.RunInstancesInput)) *ec2.RunInstancesInput {
	in := &ec2.RunInstancesInput{MinCount: &n, MaxCount: &n, ImageId: aws.String(r.image()), InstanceType: "c5.large",
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate}
	for _, f := range change {
		f(in)
	}
	return in
}

func (r *rig) run(in *ec2.RunInstancesInput) (*ec2.RunInstancesOutput, error) {
	return r.ec2.RunInstances(context.Background(), in, awsapi.Once)
}

// launch runs instances and gives their ids.
func (r *rig) launch(n int32, change ...func(*ec2.RunInstancesInput)) []string {
	r.t.Helper()
	out := must(r.run(r.order(n, change...)))(r.t)
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, *i.InstanceId)
	}
	return ids
}

func (r *rig) describe(ids ...string) []types.Instance {
	r.t.Helper()
	out := must(r.ec2.DescribeInstances(r.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: ids}))(r.t)
	var all []types.Instance
	for _, res := range out.Reservations {
		all = append(all, res.Instances...)
	}
	return all
}

func (r *rig) states(ids ...string) string {
	r.t.Helper()
	var out []string
	for _, i := range r.describe(ids...) {
		out = append(out, string(i.State.Name))
	}
	return strings.Join(out, " ")
}

// until waits for a condition in real time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s has not happened", what)
		}
	}
}

func tagged(kind types.ResourceType, kv ...string) types.TagSpecification {
	out := types.TagSpecification{ResourceType: kind}
	for i := 0; i < len(kv); i += 2 {
		out.Tags = append(out.Tags, types.Tag{Key: &kv[i], Value: &kv[i+1]})
	}
	return out
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}
