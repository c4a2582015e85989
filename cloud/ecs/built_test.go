//go:build unix

package ecs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ecs/options"
	"github.com/dlwb/dlwb/internal/fakeecs"
)

// An image that is built for one kind of processor is not built for machines of another.
func TestNoImageIsBuiltForMachinesOfAnotherKind(t *testing.T) {
	fake := fakeecs.New(filepath.Join(t.TempDir(), "aws"))
	t.Cleanup(fake.Close)
	for _, pair := range fake.Env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	spec := cloud.Spec{Count: 1, Regions: []string{fakeecs.Region}, Instance: "g5g.xlarge", Image: "./Dockerfile", Own: &options.Machines{Repository: "team/train"}}
	built, err := New().build(t.Context(), cloud.Job{Spec: spec}, func(string, string) { t.Error("a step begins") }, cloud.Untold)
	if err == nil || built != nil || !strings.Contains(err.Error(), "is built for linux/amd64, and g5g.xlarge has arm64 processors") {
		t.Errorf("%+v, %v", built, err)
	}
	if built, err = New().build(t.Context(), cloud.Job{Spec: cloud.Spec{Image: "rayproject/ray:2.40.0"}}, nil, nil); built != nil || err != nil {
		t.Errorf("of an image that exists: %+v, %v", built, err)
	}
}
