package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// written writes a file for a test and returns its path.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const trained = "step 1/10 loss: 0.5 top 7\nstep 2/10 loss: nan top 8\nval_loss: 0.25\n"

func TestMetricsOfAFileAreToldInJSON(t *testing.T) {
	freshHome(t)
	code, stdout, stderr := say(t, "metrics", written(t, "train.log", trained), "--json")
	want := `{"format":"log","series":[{"name":"loss","split":"","axis":"step","every":1,"points":[[1,0.5],[2,"nan"]]},` +
		`{"name":"val/loss","split":"val","axis":"step","every":1,"points":[[2,0.25]]}],"progress":{"epoch":0,"epochs":0,"step":2,"steps":10},` +
		`"gpus":[],"apps":[],"error_class":null,"faults":[]}`
	if code != 0 || strings.TrimSpace(stdout) != want {
		t.Errorf("exit code %d\n got %s\nwant %s\n%s", code, stdout, want, stderr)
	}
}

func TestMetricsOfAnAnswerOfNvidiaSmi(t *testing.T) {
	freshHome(t)
	_, stdout, _ := say(t, "metrics", written(t, "smi.txt", "No devices were found\n"), "--json")
	if !strings.Contains(stdout, `"gpus":[],"apps":[],"error_class":"no_devices"`) {
		t.Errorf("got %s", stdout)
	}
}

func TestMetricsForPeople(t *testing.T) {
	freshHome(t)
	path := written(t, "train.log", trained)
	for args, want := range map[string]string{
		"":                          "val/loss  1       step 2–2  0.25",
		"--why":                     "words and numbers: val/loss=0.25\n    val_loss: 0.25\n",
		"--metric=mine: top (\\d+)": "mine 2 step 1–2 7",
	} {
		command := []string{"metrics", path}
		if args != "" {
			command = append(command, args)
		}
		code, stdout, stderr := say(t, command...)
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q: exit code %d, no %q in\n%s%s", args, code, want, stdout, stderr)
		}
	}
}

func TestMistakesOfMetricsAreUsage(t *testing.T) {
	freshHome(t)
	path := written(t, "train.log", trained)
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"metrics"}, 2}, {[]string{"metrics", path, "--metric", "x"}, 2}, {[]string{"metrics", path, "--metric", "x: ("}, 2}, {[]string{"metrics", path + ".no"}, 1}} {
		if code, stdout, _ := say(t, c.args...); code != c.code {
			t.Errorf("%q: exit code %d, want %d\n%s", c.args, code, c.code, stdout)
		}
	}
}

func TestMetricsOfAFolderAreReadFileByFile(t *testing.T) {
	freshHome(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"train.log":                      trained,
		"metrics.csv":                    "step,loss\n1,0.5\n2,0.25\n",
		"mlruns/0/0a1b/metrics/val_loss": "1700000000000 0.75 1\n1700000001000 0.5 2\n",
		"mlruns/0/0a1b/params/lr":        "0.001",
		"board/run-1-tag-val_acc.csv":    "Wall time,Step,Value\n1700000000.5,1,0.25\n1700000001.5,2,0.375\n",
		"rows.json":                      `[{"step": 1, "top1": 0.5}, {"step": 2, "top1": 0.75}]`,
		"model.pt":                       "PK\x03\x04\x00\x00loss: 0.5\n",
		"train.py":                       "loss: 0.5\nval_loss = 0\n",
		"old.log.xz":                     "\xfd7zXZ\x00",
		"empty.log":                      "",
		".git/objects/train.log":         trained,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := say(t, "metrics", dir, "--json")
	var got struct {
		Format string
		Series []struct {
			Name    string
			Points  [][2]any
			Sources []struct{ Source, Format string }
		}
		Unread []struct{ File, Why string }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || got.Format != "files" {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	var lines []string
	for _, s := range got.Series {
		rel, _ := filepath.Rel(dir, s.Sources[0].Source)
		lines = append(lines, fmt.Sprintf("%s %s of %s: %v", s.Name, s.Sources[0].Format, filepath.ToSlash(rel), s.Points))
	}
	for _, u := range got.Unread {
		rel, _ := filepath.Rel(dir, u.File)
		lines = append(lines, filepath.ToSlash(rel)+": "+u.Why)
	}
	slices.Sort(lines)
	if got, want := strings.Join(lines, "\n"), strings.TrimSpace(`
empty.log: it is empty
loss csv of metrics.csv: [[1 0.5] [2 0.25]]
loss log of train.log: [[1 0.5] [2 nan]]
mlruns/0/0a1b/params/lr: no format of metrics, nor by its name the output of a training
model.pt: it is binary, and no event file
old.log.xz: it is compressed by xz, which is not read
top1 json of rows.json: [[1 0.5] [2 0.75]]
train.py: no format of metrics, nor by its name the output of a training
val/acc csv of board/run-1-tag-val_acc.csv: [[1 0.25] [2 0.375]]
val/loss log of train.log: [[2 0.25]]
val/loss mlflow of mlruns/0/0a1b/metrics/val_loss: [[1 0.75] [2 0.5]]`); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	code, stdout, _ = say(t, "metrics", filepath.Join(dir, "train.log"), filepath.Join(dir, "metrics.csv"))
	if code != 0 || strings.Count(stdout, "metrics.csv") != 1 || strings.Count(stdout, "train.log") != 2 {
		t.Errorf("two files: exit code %d\n%s", code, stdout)
	}
	if code, _, _ = say(t, "metrics", dir, filepath.Join(dir, "absent")); code != 1 {
		t.Errorf("a file that is not there: exit code %d", code)
	}
}

// The cells of a table stand below each other, also of what others named.
func TestTheCellsOfSeriesStandBelowEachOther(t *testing.T) {
	b := newBed(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "a.log")
	if err := os.WriteFile(log, []byte("epoch 1 loss 0.5 accuracy 0.1\nepoch 2 loss 0.4 accuracy 0.3\nepoch 3 loss 0.2 accuracy 0.6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{log, dir} {
		r := b.run("metrics", path)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		if len(lines) != 3 || r.code != 0 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		at := strings.Index(lines[0], "POINTS")
		for _, line := range lines[1:] {
			if len(line) <= at || line[at] != '3' || line[at-1] != ' ' {
				t.Errorf("the points do not stand below their name:\n%s", r.stdout)
			}
		}
	}
}
