package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/workbench/event"
)

// say runs a command line in this process, with a home of its own.
func say(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	code = a.run(context.Background(), args)
	return code, out.String(), errs.String()
}

func freshHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state of things")
	t.Setenv("DLWB_HOME", dir)
	t.Chdir(t.TempDir())
	return dir
}

// objects holds the promise of --json: every line of standard output is one
// JSON object, and standard error has none of it.
func objects(t *testing.T, stdout string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(stdout) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q is no JSON object: %v", line, err)
		}
		all = append(all, o)
	}
	return all
}

// Every command, with nothing there and in every way of calling it wrong,
// answers --json with objects only.
func TestEveryCommandAnswersJSONWithObjectsOnly(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		has  string // a key of the one object; "error" for the event
	}{
		{"", 0, "clusters"}, {"ls", 0, "clusters"}, {"runs", 0, "runs"}, {"doctor", 0, "findings"}, {"events", 0, "events"},
		{"help", 0, "usage"}, {"help plan", 0, "usage"}, {"--help", 0, "usage"}, {"exec --help", 0, "flags"}, {"help profile", 0, "text"}, {"help settings", 0, "text"},
		{"help commands", 0, "text"}, {"--version", 0, "version"}, {"init x", 2, "error"}, {"init .", 2, "error"}, {"plan", 2, "error"},
		{"plan no.yaml", 2, "error"}, {"up", 2, "error"}, {"run", 2, "error"}, {"sync", 2, "error"}, {"run a b", 2, "error"},
		{"attach", 1, "error"}, {"attach x", 1, "error"}, {"logs", 1, "error"}, {"logs x --rank 9", 1, "error"}, {"logs --raw", 2, "error"},
		{"stop", 1, "error"}, {"pull", 1, "error"}, {"down", 1, "error"}, {"down x", 1, "error"}, {"forward", 2, "error"},
		{"forward x jupyter", 1, "error"}, {"exec x", 2, "error"}, {"ssh x", 2, "error"}, {"completion bash", 2, "error"},
		{"demo x", 2, "error"}, {"atach", 2, "error"}, {"help atach", 2, "error"}, {"plan --jsn", 2, "error"}, {"--nonsense", 2, "error"},
		{"sweep --again --show", 2, "error"}, {"rm --older-than 0d", 2, "error"}, {"runs --filter x<", 2, "error"}, {"runs --limit -1", 2, "error"}, {"runs --limit x", 2, "error"}, {"runs --filter verdict=suceeded", 2, "error"},
		{"offers --provider ecc2", 2, "error"}, {"offers --limit -1", 2, "error"}, {"forward x jupyterr", 2, "error"}, {"forward x 99999", 2, "error"},
		{"demo --theme pink", 2, "error"}, {"demo --glyphs utf", 2, "error"}, {"down --read-only", 2, "error"}, {"forward x 99 --port 1e5", 2, "error"},
	} {
		t.Run("dlwb "+c.args, func(t *testing.T) {
			freshHome(t)
			code, stdout, stderr := say(t, append(strings.Fields(c.args), "--json")...)
			all := objects(t, stdout)
			if code != c.code || len(all) != 1 || stderr != "" {
				t.Fatalf("exit code %d, want %d\n%s%s", code, c.code, stdout, stderr)
			}
			if c.has != "error" {
				if _, ok := all[0][c.has]; !ok || all[0]["event"] != nil {
					t.Errorf("no %q in %s", c.has, stdout)
				}
				return
			}
			failure, _ := all[0]["failure"].(map[string]any)
			if all[0]["event"] != "error" || all[0]["exit_code"] != float64(c.code) || all[0]["text"] == "" || all[0]["time"] == nil || failure["why"] == "" {
				t.Errorf("got %s", stdout)
			}
		})
	}
}

// What a person gets for a mistake is one line, or one and what to do next.
func TestMistakesAreAnsweredWithTheNearestWord(t *testing.T) {
	for args, want := range map[string]string{
		"atach": "did you mean attach?", "Plan": "did you mean plan?", "list": "did you mean ls?", "train": "did you mean run?",
		"--jsn": "did you mean --json?", "plan --plian": "did you mean --plain?", "logs --folow": "did you mean --follow?",
		"run --dwon": "did you mean --down?", "logs -x": "dlwb logs has no flag -x", "help atach": "did you mean attach?",
		"zzzzzz": "dlwb --help lists them", "forward": "usage: dlwb forward CLUSTER [[nodeN:]jupyter|tensorboard|PORT[/http]]...",
		"ls here": `ls got ["here"]; usage: dlwb ls`, "demo --theme pink": "auto, dark, light", "demo --glyphs utf": "auto, unicode, ascii", "plan train.py": "is a script",
		"exec bed --node all": `--node takes whole numbers with commas between them, not "all"`, "offers --max-price cheap": `--max-price takes a number, not "cheap"`,
		"sweep --again --show": "--again and --show exclude each other", "offers --provider aws": "did you mean ec2?",
		"ls --json=maybe": `--json takes true or false, or stands alone, not "maybe"`,
	} {
		freshHome(t)
		code, stdout, stderr := say(t, strings.Fields(args)...)
		if code != ExitUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("dlwb %s: exit code %d, %q, want one line with %q", args, code, stdout+stderr, want)
		}
	}
}

func TestAProfileThatIsNotThereIsAnsweredWithOneThatIs(t *testing.T) {
	freshHome(t)
	if err := os.WriteFile("dlwb.yml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"plan"}, {"plan", "dlbw.yaml"}, {"plan", "."}} {
		if _, _, stderr := say(t, args...); !strings.Contains(stderr, "did you mean dlwb.yml?") {
			t.Errorf("%v: %q", args, stderr)
		}
	}
}

// Nothing that only looks may act, whatever else is said.
func TestOnlyWhatLooksTakesReadOnly(t *testing.T) {
	for _, c := range (&app{}).root().Commands() {
		if c.Flags().Lookup("read-only") != nil && c.Name() != "attach" {
			t.Errorf("dlwb %s has --read-only, and changes something", c.Name())
		}
	}
}

// doctor is asked when something is wrong: it answers also without a store.
func TestTheDoctorFindsABrokenStore(t *testing.T) {
	dir := freshHome(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dlwb.sqlite"), []byte(strings.Repeat("no store ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := say(t, "doctor")
	if code != ExitFailed || !strings.Contains(stdout, "✗ state") || stderr != "" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// A plan changes nothing: beyond dlwb's own empty store no file is there, and
// none in the project has changed.
func TestAPlanChangesNothing(t *testing.T) {
	state := freshHome(t)
	if err := os.WriteFile("train.py", []byte("print(1)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := say(t, "init", "--json"); code != 0 || stderr != "" || len(objects(t, stdout)) != 1 {
		t.Fatalf("init: exit code %d\n%s%s", code, stdout, stderr)
	}
	before, had := tree(t, "."), tree(t, state) // init has kept that its profile is trusted
	code, stdout, stderr := say(t, "plan", "--json")
	if all := objects(t, stdout); code != 0 || stderr != "" || len(all) != 1 || all[0]["world_size"] != 1.0 {
		t.Fatalf("plan: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := say(t, "plan"); code != 0 || stderr != "" {
		t.Fatalf("plan: exit code %d, %s", code, stderr)
	}
	if after := tree(t, "."); !slices.Equal(before, after) {
		t.Errorf("the project was %q, and is %q", before, after)
	}
	for _, path := range tree(t, state) { // what this machine's Pythons said is kept, as the store is
		if base := filepath.Base(path); !strings.HasPrefix(base, "dlwb.sqlite") && !strings.HasPrefix(base, "pythons ") && base != "runs" && base != "locks" && !slices.Contains(had, path) {
			t.Errorf("%s was made", path)
		}
	}
	if code, stdout, stderr := say(t, "init"); code != ExitUsage || !strings.Contains(stderr, "--force replaces it") {
		t.Errorf("a second init: exit code %d, %s%s", code, stdout, stderr)
	}
}

// tree lists what is below a directory, with times and sizes of the files.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		switch {
		case err != nil || path == dir:
		case info.IsDir():
			all = append(all, path)
		default:
			all = append(all, fmt.Sprintf("%s %d", path, info.Size()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A line that does not end is printed in pieces, and no byte of it is lost.
func TestALineWithoutEndIsPrintedWhole(t *testing.T) {
	for _, unit := range []string{"x", "é", "字", "😀"} {
		text := "ab" + strings.Repeat(unit, 3*maxPart/len(unit))
		var out bytes.Buffer
		p := &printer{w: &out, json: true, rank: allRanks, logs: map[logKey]*logLines{}}
		p.readLog = func(_ string, _ int, off int64, b []byte) (int, error) { return copy(b, text[off:]), nil }
		e := event.Event{Run: "r"}
		if err := p.log(e, event.LogGrew{Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if err := p.endLogs(e); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, o := range objects(t, out.String()) {
			got += o["line"].(string)
		}
		if got != text {
			t.Errorf("%s: %d bytes were printed, want %d", unit, len(got), len(text))
		}
	}
}

// A profile may lie elsewhere, behind a link, as dotfiles do: what writes one leaves
// the link, and the mode of the file.
func TestAProfileIsWrittenThroughItsLink(t *testing.T) {
	for _, args := range [][]string{{"init", "--force"}, {"import", "compose.yaml", "--force"}} {
		freshHome(t)
		for name, text := range map[string]string{"train.py": "print(1)\n", "far.yaml": "old", "compose.yaml": "services:\n  train:\n    image: pytorch/pytorch\n    command: python train.py\n"} {
			if err := errors.Join(os.WriteFile(name, []byte(text), 0o640), os.Chmod(name, 0o640)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("far.yaml", "dlwb.yaml"); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := say(t, args...)
		if code != 0 {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		link, linkErr := os.Lstat("dlwb.yaml")
		file, fileErr := os.Stat("far.yaml")
		text, _ := os.ReadFile("far.yaml")
		if linkErr != nil || fileErr != nil || link.Mode()&os.ModeSymlink == 0 || file.Mode().Perm() != 0o640 || !strings.Contains(string(text), "train.py") {
			t.Errorf("%v: %v, %v, %v, %v\n%s", args, link, linkErr, file, fileErr, text)
		}
	}
}
