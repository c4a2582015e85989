package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/metrics/smi"
)

// shown writes a value that may be missing.
func shown(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func gpuLine(g GPU) string {
	return fmt.Sprintf("%d|%s|%s %s/%s %s %s/%s", g.Index, g.Name, shown(g.Util), shown(g.MemUsed), shown(g.MemTotal), shown(g.Temp), shown(g.Power), shown(g.PowerLimit))
}

func TestNvidiaSmiAnswersAreReadCellByCell(t *testing.T) {
	for line, want := range map[string]string{
		"0, NVIDIA A100-SXM4-80GB, 97, 15230, 81920, 61, 288.31, 400.00":                  "0|NVIDIA A100-SXM4-80GB|97 15230/81920 61 288.31/400",
		"1, GeForce GT 730, [Not Supported], 211, 2002, 38, [Not Supported], [N/A]\r":     "1|GeForce GT 730|- 211/2002 38 -/-",
		"2, NVIDIA GB10, 5, [N/A], [N/A], 40, 4.50, [N/A]":                                "2|NVIDIA GB10|5 -/- 40 4.5/-",
		"3, Tesla K80, [Unknown Error], [Unknown Error], 11441, ERR!, [GPU is lost], N/A": "3|Tesla K80|- -/11441 - -/-",
		"4, old, 64 %, 6021 MiB, 11441 MiB, 71, 129.40 W":                                 "4|old|64 6021/11441 71 129.4/-",
		"[Unknown Error], lost, [Unknown Error], [N/A], [N/A], [N/A], [N/A], [N/A]":       "-1|lost|- -/- - -/-",
		"5, strange, -1, nan, inf, 1e300, , 0x10":                                         "5|strange|- -/- - -/-",
		"No devices were found": "",
		"NVIDIA-SMI has failed because it couldn't communicate, with the driver, really": "",
		"Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error":      "",
		"index, name, utilization.gpu [%], memory.used [MiB]":                            "",
		"":                        "",
		"-1, x, 1, 2, 3, 4, 5, 6": "",
	} {
		g, ok := smi.Parse(line)
		got := ""
		if ok {
			got = gpuLine(g)
		}
		if got != want {
			t.Errorf("%q\n got %q\nwant %q", line, got, want)
		}
	}
}

func TestRealAnswersOfNvidiaSmi(t *testing.T) {
	want := map[string]string{
		"gtx-notsupported.query.csv": "0|GeForce GT 730|- 211/2002 38 -/-\n1|Tesla K80|64 6021/11441 71 129.4/-\n",
		"noheader-nounits.query.csv": "0|Tesla V100-SXM2-16GB|97 15230/16160 61 288.31/-\n1|Tesla V100-SXM2-16GB|96 15230/16160 59 279.02/-\n" +
			"2|Tesla V100-SXM2-16GB|0 3/16160 36 41.77/-\n3|Tesla V100-SXM2-16GB|0 3/16160 35 42.1/-\n",
	}
	files, err := filepath.Glob("testdata/smi/*")
	if err != nil || len(files) < len(want)+5 {
		t.Fatalf("testdata/smi holds %v (%v)", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for line := range strings.Lines(string(b)) {
			if g, ok := smi.Parse(line); ok {
				got += gpuLine(g) + "\n"
			}
		}
		if got != want[filepath.Base(file)] {
			t.Errorf("%s: got\n%swant\n%s", file, got, want[filepath.Base(file)])
		}
	}
}

// sample feeds frames to a parser and writes what the last one gave.
func sample(t *testing.T, frames ...string) string {
	t.Helper()
	p := NewTelemetry()
	var s Sample
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

func FuzzParseSMI(f *testing.F) {
	files, err := filepath.Glob("testdata/smi/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds in testdata/smi (%v)", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			f.Add(line)
		}
	}
	f.Add("3, Tesla K80, [Unknown Error], [Unknown Error], 11441, ERR!, [GPU is lost], N/A")
	f.Add("[Unknown Error], lost, 1e999, -0, +5, 0x1p4, 1_0, infinity")
	f.Fuzz(func(t *testing.T, line string) {
		g, ok := smi.Parse(line)
		if !ok {
			return
		}
		if g.Index < -1 {
			t.Fatalf("index %d", g.Index)
		}
		for _, v := range []*float64{g.Util, g.MemUsed, g.MemTotal, g.Temp, g.Power, g.PowerLimit} {
			if v != nil && !(*v >= 0 && *v <= 1e9) {
				t.Fatalf("a cell of %v", *v)
			}
		}
	})
}

func FuzzTelemetry(f *testing.F) {
	f.Add([]byte(firstFrame), []byte("frame 102.00\ncores 2\ncpu 1100 4200\nnet 7000 1000\nsmi 0, A100, 97, 10, 20, 60, 300.5, 400\nsmiage 0\nsim\nend\n"))
	f.Add([]byte("frame 1e300\ncores 1e300\ncpu 1e18 1e18\nmem 1e18 1e18"), []byte("frame 1.000000001\nnet 1e999 1\n"))
	f.Add([]byte("frame\nsmi\nsmierr\n\r\n"), []byte(""))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		p := NewTelemetry()
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
