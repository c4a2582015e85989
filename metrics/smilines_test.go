package metrics

import (
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
