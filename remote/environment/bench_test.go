package environment

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// first is what a script for tables asks for: a dozen packages from the index.
const first = "scikit-learn==1.9.1\npandas\nmatplotlib\n"

// fromIndex has a node reach the index of packages as this machine does, with
// nothing in a cache.
func (l *local) fromIndex() {
	l.limit = 30 * time.Minute
	l.env = append(l.env, "UV_NO_CACHE=1")
	for _, kv := range os.Environ() {
		for _, front := range []string{"PIP_", "UV_", "SSL_", "HTTP", "http", "no_proxy", "NO_PROXY", "REQUESTS_"} {
			if strings.HasPrefix(kv, front) {
				l.env = append(l.env, kv)
			}
		}
	}
}

// BenchmarkFirstEnvironment makes an environment from the index, by uv and by pip in
// turn: `make bench-environments`.
func BenchmarkFirstEnvironment(b *testing.B) {
	uv := realUV(b)
	for _, by := range []string{"pip", "uv"} {
		b.Run(by, func(b *testing.B) {
			b.Logf("uv is %s", uv)
			for range b.N {
				b.StopTimer()
				l := newLocal(b, bare(b))
				if by == "uv" {
					l = withUV(b, bare(b))
				}
				l.fromIndex()
				b.StartTimer()
				l.must(Spec{Kind: Venv, Cluster: "c", Content: first})
			}
		})
	}
}

// BenchmarkUnchangedEnvironment looks at one that did not change, on eight nodes at
// once.
func BenchmarkUnchangedEnvironment(b *testing.B) {
	unchanged(b, func() (*local, Spec) {
		return newLocal(b, bare(b)), Spec{Kind: Venv, Cluster: "c", Content: "--no-index\n"}
	})
}

// unchanged makes eight environments, and looks at all of them at once.
func unchanged(b *testing.B, node func() (*local, Spec)) {
	nodes, specs := make([]*local, 8), make([]Spec, 8)
	for i := range nodes {
		nodes[i], specs[i] = node()
		nodes[i].must(specs[i])
	}
	for b.Loop() {
		var all sync.WaitGroup
		for i, l := range nodes {
			all.Go(func() {
				if r, err := l.prepare(specs[i]); err != nil || !r.Skipped {
					b.Errorf("%v, skipped %v", err, r.Skipped)
				}
			})
		}
		all.Wait()
	}
}

// BenchmarkUnchangedCondaEnvironment is the same with a real conda, mamba or micromamba.
func BenchmarkUnchangedCondaEnvironment(b *testing.B) {
	unchanged(b, func() (*local, Spec) {
		l, channel := withConda(b)
		return l, condaSpec(channel, "python")
	})
}
