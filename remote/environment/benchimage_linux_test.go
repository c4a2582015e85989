package environment

import (
	"sync"
	"testing"

	"github.com/dlwb/dlwb/internal/podrig"
)

// BenchmarkUnchangedImage looks at an image that did not change, on eight nodes at once:
// `make bench-environments`.
func BenchmarkUnchangedImage(b *testing.B) {
	spec := Spec{Kind: Docker, Cluster: "c", File: podrig.PythonImage}
	nodes := make([]*local, 8)
	for i := range nodes {
		nodes[i] = withPodman(b)
		nodes[i].must(spec)
	}
	for b.Loop() {
		var all sync.WaitGroup
		for _, l := range nodes {
			all.Go(func() {
				if r, err := l.prepare(spec); err != nil || !r.Skipped {
					b.Errorf("%v, skipped %v", err, r.Skipped)
				}
			})
		}
		all.Wait()
	}
}
