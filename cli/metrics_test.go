package cli

import (
	"os"
	"path/filepath"
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
