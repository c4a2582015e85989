package environment

import (
	"testing"

	"github.com/dlwb/dlwb/internal/podrig"
)

// BenchmarkUnchangedImage looks at an image that did not change, on eight nodes at once:
// `make bench-environments`.
func BenchmarkUnchangedImage(b *testing.B) {
	unchanged(b, func() (*local, Spec) {
		return withPodman(b), Spec{Kind: Docker, Cluster: "c", File: podrig.PythonImage}
	})
}
