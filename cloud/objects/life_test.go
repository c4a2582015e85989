package objects

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// What a life of a cluster has saved is not replaced by another one, nor by who names
// none; the same life goes on.
func TestASetOfAnotherLifeIsNotReplaced(t *testing.T) {
	address, _ := server(t)
	b := open(t, address)
	if _, err := b.Save(t.Context(), "run/results", write(t, 1), map[string]string{Life: "1f0c"}); err != nil {
		t.Fatal(err)
	}
	for _, life := range []string{"77aa", ""} {
		_, err := b.Save(t.Context(), "run/results", write(t, 2), map[string]string{Life: life})
		var p *awsapi.Problem
		if !errors.Is(err, ErrAnother) || !errors.As(err, &p) || !strings.Contains(p.Cause, address+"/run/results") || !strings.Contains(p.Cause, "1f0c") || p.Next == "" {
			t.Errorf("%q: %v", life, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "back")
	if _, err := b.Load(t.Context(), "run/results", dir); err != nil || is(dir, 1) != nil {
		t.Error(err, is(dir, 1))
	}
	if _, err := b.Save(t.Context(), "run/results", write(t, 3), map[string]string{Life: "1f0c"}); err != nil {
		t.Error(err)
	}
}
