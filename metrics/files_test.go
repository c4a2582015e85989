package metrics

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/dlwb/dlwb/metrics/smi"
)

func TestFilesOfMetricsAreRead(t *testing.T) {
	for file, want := range map[string]string{
		"metrics.csv":        "csv\ntrain/loss step 6 [9 2] [59 0.333333]\nlr-Adam step 6 [0 0.001] [50 0.001]\nval/loss step 3 [19 1.05] [59 0.35]\n",
		"trainer_state.json": "trainer_state\nlr step 1 [10 1e-05] [10 1e-05]\nloss step 2 [10 1.5] [20 NaN]\neval/loss step 1 [20 1.2] [20 1.2]\neval/runtime step 1 [20 3] [20 3]\n",
		"log.jsonl":          "jsonl\nloss step 1 [10 1.5] [10 1.5]\nlr step 1 [10 0.001] [10 0.001]\neval/loss step 1 [20 1.2] [20 1.2]\n",
	} {
		d := readFile(t, "testdata/files/"+file)
		if got := string(d.Format) + "\n" + summary(&d.Set); got != want {
			t.Errorf("%s: got\n%swant\n%s", file, got, want)
		}
	}
}

func TestEveryFormOfNvidiaSmiIsRead(t *testing.T) {
	for file, want := range map[string]string{
		"table.txt":  "0|NVIDIA L4|97 11125/23034 52 32/72\n1|NVIDIA L4|- 11125/23034 - -/-\n",
		"old.xml":    "0|NVIDIA L4|3 22/23034 41 25.58/72\n1|NVIDIA L4|- -/23034 - 30/72\nprocess 42 python 100\n",
		"stream.csv": "0|NVIDIA L4|90 11125/23034 57 32.7/-\n1|NVIDIA L4|- 11125/23034 70 -/-\n0|NVIDIA L4|91 11125/23034 57 33/-\ngpu_lost",
		"apps.csv":   "process 5268 python 370\nprocess 5269 python -\n",
		"dmon.txt":   "0||8 -/- 45 32/-\n1||- -/- 46 33/-\n",
	} {
		d := readFile(t, "testdata/smiforms/"+file)
		got := ""
		for _, g := range d.SMI.GPUs {
			got += gpuLine(g) + "\n"
		}
		for _, p := range d.SMI.Apps {
			got += strings.TrimSpace("process "+fmtInt(p.PID)+" "+p.Name+" "+shown(p.Memory)) + "\n"
		}
		if got += string(d.SMI.Error); got != want || d.Format != NvidiaSMI {
			t.Errorf("%s (%s): got\n%swant\n%s", file, d.Format, got, want)
		}
	}
}

func fmtInt(n int) string { return shown(new(float64(n))) }

func TestErrorsOfNvidiaSmiHaveClasses(t *testing.T) {
	for text, want := range map[string]smi.ErrorClass{
		"No devices were found\n": smi.NoDevices,
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n": smi.DriverNotLoaded,
		"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n":                                                        smi.DriverMismatch,
		"Failed to initialize NVML: Unknown Error\n":                                  smi.OtherError,
		"Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n": smi.GPULost,
		"bash: line 1: nvidia-smi: command not found\n":                               smi.NotInstalled,
		"sh: 1: nvidia-smi: not found\n":                                              smi.NotInstalled,
		"Field \"power.draw.instant\" is not a valid field to query.\n":               smi.BadField,
		"Failed to initialize NVML: Insufficient Permissions\n":                       smi.NoPermission,
	} {
		if d, err := Read(strings.NewReader(text), nil, nil); err != nil || d.SMI.Error != want || d.Format != NvidiaSMI {
			t.Errorf("%q: got %q as %s (%v), want %q", text, d.SMI.Error, d.Format, err, want)
		}
	}
}

func TestAPointTakes32Bytes(t *testing.T) {
	if size := unsafe.Sizeof(stored{}); size > 32 {
		t.Errorf("a point takes %d bytes", size)
	}
	var s Series
	for i := range int64(100_000) {
		s.Add(Point{Step: &i, X: AxisStep})
	}
	room := 0
	for _, c := range s.chunks {
		room += cap(c) * 32
	}
	if room > 33*s.Len() {
		t.Errorf("%d points take %d bytes", s.Len(), room)
	}
}

func steps(s *Series) string {
	var b strings.Builder
	for _, p := range s.XY(s.Axis()) {
		b.WriteString(shown(&p[0]) + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestSageMakersDefinitionsAreTaken(t *testing.T) {
	u, err := ParseUserMetric(`train:loss: Loss: ([0-9.]+);`)
	if err != nil || u.Name != "train:loss" || u.Regex != `Loss: ([0-9.]+);` {
		t.Errorf("got %+v (%v)", u, err)
	}
	for _, bad := range []string{"", "x", "x: ", ": (y)", "x: no group", "x: ("} {
		if _, err := ParseUserMetric(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	r := NewReader([]UserMetric{{"mine", `at (?P<step>\d+) got (?P<value>\S+)`}})
	if got := told(r.Feed([]byte("at 7 got 0.5\nat 8 got x\n"), time.Time{})); got != "mine=0.5@7" {
		t.Errorf("named groups gave %s", got)
	}
}

// addSeeds adds the files of a folder of testdata.
func addSeeds(f *testing.F, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds at %s (%v)", pattern, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// sound reports what no series may have.
func sound(t *testing.T, set *Set) {
	for _, s := range set.Series {
		if s.Name == "" || s.Len() == 0 || len(s.XY(s.Axis())) != s.Len() {
			t.Fatalf("series %q with %d points", s.Name, s.Len())
		}
	}
}

func FuzzReadFile(f *testing.F) {
	addSeeds(f, "testdata/files/*")
	addSeeds(f, "testdata/smiforms/*")
	addSeeds(f, "testdata/files/*.tfevents")
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := Read(bytes.NewReader(b), nil, nil); err == nil {
			sound(t, &d.Set)
		}
	})
}

func FuzzReadSMI(f *testing.F) {
	addSeeds(f, "testdata/smi/*")
	addSeeds(f, "testdata/smiforms/*")
	for _, c := range smiAnswers {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := smi.Read(b)
		if ok != (len(a.GPUs) > 0 || len(a.Apps) > 0 || a.Error != smi.NoError) {
			t.Fatal("it says that it read what it did not")
		}
		for _, g := range a.GPUs {
			for _, v := range []*float64{g.Util, g.MemUsed, g.MemTotal, g.Temp, g.Power, g.PowerLimit} {
				if v != nil && !(*v >= 0 && *v <= 1e9) {
					t.Fatalf("a reading of %v", *v)
				}
			}
		}
	})
}

func FuzzCSV(f *testing.F) {
	addSeeds(f, "testdata/files/*.csv")
	f.Add([]byte("#{\"t\": 1}\nr,l,t\n1,2,3\n\"a\n,,"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var set Set
		if ReadCSV(bytes.NewReader(b), set.Add) == nil {
			sound(t, &set)
		}
	})
}

func FuzzJSON(f *testing.F) {
	addSeeds(f, "testdata/files/*.json*")
	f.Add([]byte(`{'a': tensor(1.5, device='x'), "b": [1], 'c': {"d": 'nan'}, "e": [{"x": 1}, 2]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var set Set
		if ReadJSONLines(bytes.NewReader(b), set.Add) == nil {
			sound(t, &set)
		}
		_, _ = ReadTrainerState(bytes.NewReader(b), set.Add)
	})
}

func FuzzUserMetric(f *testing.F) {
	f.Add(`val/acc: top-1 (\d+\.\d+)`, "top-1 0.5\n")
	f.Add(`x: (?P<step>\d+)(?P<value>.*)`, "1 2 nan")
	f.Fuzz(func(t *testing.T, text, line string) {
		u, err := ParseUserMetric(text)
		if err != nil {
			return
		}
		r := NewReader([]UserMetric{u})
		r.Feed([]byte(line), time.Time{})
		r.End(time.Time{})
	})
}

func TestARunOfWandbHasItsSteps(t *testing.T) {
	d := readFile(t, "wandb/testdata/offline.wandb")
	want := "train/loss step 20 [0 2] [22 0.1]\ntrain/acc step 20 [0 0] [22 0.95]\nlr step 20 [0 0.001] [22 0.0001350851717672993]\nval/loss step 4 [5 0.3] [23 0.075]\nbad step 4 [5 4] [23 19]\n"
	if got := summary(&d.Set); d.Format != WandB || got != want {
		t.Errorf("as %s: got\n%swant\n%s", d.Format, got, want)
	}
}
