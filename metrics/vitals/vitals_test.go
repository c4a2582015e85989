package vitals

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dlwb/dlwb/metrics"
)

// shown writes a value that may be missing.
func shown(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func gpuLine(g metrics.GPU) string {
	return fmt.Sprintf("%d|%s|%s %s/%s %s %s/%s", g.Index, g.Name, shown(g.Util), shown(g.MemUsed), shown(g.MemTotal), shown(g.Temp), shown(g.Power), shown(g.PowerLimit))
}

// sample feeds frames to a parser and writes what the last one gave.
func sample(t *testing.T, frames ...string) string {
	t.Helper()
	p := NewReader()
	var s metrics.Sample
	ok := false
	for _, f := range frames {
		s, ok = p.Frame([]byte(f))
	}
	if !ok {
		return "none"
	}
	got := fmt.Sprintf("t=%v cores=%d cpu=%s mem=%s/%s net=%s/%s disk=%s/%s", s.Uptime, s.Cores, shown(s.CPU), shown(s.MemUsed), shown(s.MemTotal), shown(s.NetRx), shown(s.NetTx), shown(s.DiskUsed), shown(s.DiskTotal))
	for _, g := range s.GPUs {
		got += " gpu=" + gpuLine(g)
	}
	if s.GPUError != "" {
		got += " error=" + s.GPUError
	}
	if s.Simulated {
		got += " simulated"
	}
	return got
}

const firstFrame = "frame 100.00\ncores 2\ncpu 1000 4000\nmem 2 4\nnet 5000 600\ndisk 10 20\nsmierr no GPU\nend\n"

func TestFramesBecomeSamples(t *testing.T) {
	for name, c := range map[string]struct {
		frames []string
		want   string
	}{
		"the first has no rates": {[]string{firstFrame}, "t=100 cores=2 cpu=- mem=2048/4096 net=-/- disk=10240/20480 error=no GPU"},
		"the second has": {[]string{firstFrame, "frame 102.00\ncores 2\ncpu 1100 4200\nnet 7000 1000\nsmierr no GPU\nend\n"},
			"t=102 cores=2 cpu=50 mem=-/- net=1000/200 disk=-/- error=no GPU"},
		"a restarted counter says nothing": {[]string{firstFrame, "frame 102.00\ncpu 10 40\nnet 70 900\nend\n"},
			"t=102 cores=0 cpu=- mem=-/- net=-/- disk=-/-"},
		"nor does a restarted node": {[]string{firstFrame, "frame 3.00\ncpu 1100 4200\nnet 7000 1000\nend\n"},
			"t=3 cores=0 cpu=- mem=-/- net=-/- disk=-/-"},
		"and counts on from there": {[]string{firstFrame, "frame 3.00\ncpu 10 40\nnet 70 900\nend\n", "frame 4.00\ncpu 20 60\nnet 80 910\nend\n"},
			"t=4 cores=0 cpu=50 mem=-/- net=10/10 disk=-/-"},
		"the same frame twice":    {[]string{firstFrame, firstFrame}, "t=100 cores=2 cpu=- mem=2048/4096 net=-/- disk=10240/20480 error=no GPU"},
		"a missing line between":  {[]string{firstFrame, "frame 101.00\nend\n", firstFrame}, "t=100 cores=2 cpu=- mem=2048/4096 net=-/- disk=10240/20480 error=no GPU"},
		"no uptime, no frame":     {[]string{"cores 2\ncpu 1 2\nend\n"}, "none"},
		"nothing":                 {[]string{""}, "none"},
		"numbers no node counted": {[]string{"frame 1\ncores -2\ncpu nan 4\nmem 3\nnet inf 1\ndisk x y\nsmiage soon\n"}, "t=1 cores=0 cpu=- mem=-/- net=-/- disk=-/-"},
		"GPUs": {[]string{"frame 1.00\nsmi 0, A100, 97, 10, 20, 60, 300.5, 400\nsmi [N/A], A100, [N/A], 10, 20, [N/A], [N/A], [N/A]\nsmiage 0\nsim\nend\n"},
			"t=1 cores=0 cpu=- mem=-/- net=-/- disk=-/- gpu=0|A100|97 10/20 60 300.5/400 gpu=1|A100|- 10/20 - -/- simulated"},
		"an error beside answers": {[]string{"frame 1.00\nsmi 0, A100, 97, 10, 20, 60, 300.5, 400\nsmierr Unable to determine the device handle\nsmiage 1\nend\n"},
			"t=1 cores=0 cpu=- mem=-/- net=-/- disk=-/- gpu=0|A100|97 10/20 60 300.5/400 error=Unable to determine the device handle"},
		"an error among answers": {[]string{"frame 1.00\nsmi No devices were found\nend\n"}, "t=1 cores=0 cpu=- mem=-/- net=-/- disk=-/- error=No devices were found"},
		"an answer that is too old": {[]string{"frame 1.00\nsmi 0, A100, 97, 10, 20, 60, 300.5, 400\nsmiage 6\nend\n"},
			"t=1 cores=0 cpu=- mem=-/- net=-/- disk=-/- error=nvidia-smi does not answer"},
		"there never was an answer": {[]string{"frame 1.00\nsmiage 9\nend\n"}, "t=1 cores=0 cpu=- mem=-/- net=-/- disk=-/- error=nvidia-smi does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sample(t, c.frames...); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func FuzzTelemetry(f *testing.F) {
	f.Add([]byte(firstFrame), []byte("frame 102.00\ncores 2\ncpu 1100 4200\nnet 7000 1000\nsmi 0, A100, 97, 10, 20, 60, 300.5, 400\nsmiage 0\nsim\nend\n"))
	f.Add([]byte("frame 1e300\ncores 1e300\ncpu 1e18 1e18\nmem 1e18 1e18"), []byte("frame 1.000000001\nnet 1e999 1\n"))
	f.Add([]byte("frame\nsmi\nsmierr\n\r\n"), []byte(""))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		p := NewReader()
		for _, text := range [][]byte{first, second, first} {
			s, ok := p.Frame(text)
			if !ok {
				continue
			}
			if s.CPU != nil && !(*s.CPU >= 0 && *s.CPU <= 100) || s.Cores < 0 || s.NetRx != nil && !(*s.NetRx >= 0 && *s.NetTx >= 0) {
				t.Fatalf("%+v", s)
			}
			if _, err := json.Marshal(s); err != nil {
				t.Fatalf("a sample that JSON can't say: %v", err)
			}
		}
	})
}
