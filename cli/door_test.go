package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cli/diary"
	"github.com/dlwb/dlwb/internal/hostile"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/internal/trusttest"
)

// takeover is what an attacker would have a terminal do: a title, the clipboard,
// a cleared screen, an 8-bit sequence, text in the wrong direction, a new line.
const takeover = "\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x1b\\\x1b[2J\u009b31m\u202eevil\nforged line\r\x7f\x9b"

// clean holds text against the grammar of what dlwb prints.
func clean(t *testing.T, who, text string, colours bool) {
	t.Helper()
	if fault := hostile.Fault(text, colours); fault != "" {
		t.Errorf("%s: %s", who, fault)
	}
	if fault := hostile.Forged(text, "forged"); fault != "" {
		t.Errorf("%s: %s", who, fault)
	}
}

// shim puts a program in front of the PATH.
func shim(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := testprogram.Write(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// liar is a python3 that lies about itself when it is asked who it is, and is the
// real one for everything else.
func liar(t *testing.T) string {
	t.Helper()
	real, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	about, err := json.Marshal(map[string]any{"exe": real, "version": "3.11.2" + takeover, "torch": "", "venv": true, "packages": map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("case $1,$3 in -c,want | -c,path)\nprintf 'dlwb\\tpython\\t%%s\\t%%s\\t' \"$3\" \"$4\"\ncat <<'END'\n%s\nEND\nexit 0 ;;\nesac\nexec %s \"$@\"\n", about, real)
}

// project writes a profile of a local cluster into the present directory, and
// trusts it.
func project(t *testing.T, profile string) {
	t.Helper()
	for name, text := range map[string]string{"train.py": "", "dlwb.yaml": profile} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trusttest.Trust(os.Getenv("DLWB_HOME"), ".")
}

func TestAPlanShowsAFileNameAsText(t *testing.T) {
	freshHome(t)
	project(t, "run: {command: train.py}\n")
	large, err := os.Create("model" + strings.ReplaceAll(takeover, "/", "") + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(large.Truncate(150e6), large.Close()); err != nil { // it has no blocks
		t.Fatal(err)
	}
	code, stdout, stderr := say(t, "plan")
	if code != 0 || !strings.Contains(stdout, "is large") {
		t.Fatalf("exit code %d\n%q%q", code, stdout, stderr)
	}
	clean(t, "plan", stdout+stderr, false)
	_, stdout, _ = say(t, "plan", "--json")
	clean(t, "plan --json", stdout, false)
	if warnings := fmt.Sprint(objects(t, stdout)[0]["code"]); !strings.Contains(warnings, "\u202e") {
		t.Errorf("the value is another one: %q", warnings)
	}
}

func TestAPlanShowsWhatANodeSaysOfItselfAsText(t *testing.T) {
	freshHome(t)
	project(t, "run: {command: train.py}\n")
	shim(t, "python3", liar(t))
	code, stdout, stderr := say(t, "plan")
	if code != 0 || !strings.Contains(stdout, "3.11.2") {
		t.Fatalf("exit code %d\n%q%q", code, stdout, stderr)
	}
	clean(t, "plan", stdout+stderr, false)
}

func TestAnErrorIsTextAndBeginsOneLine(t *testing.T) {
	freshHome(t)
	for _, args := range [][]string{{"plan", takeover}, {"attach", takeover}, {takeover}, {"logs", "--rank", takeover}, {"--" + takeover}, {"help", takeover}} {
		_, stdout, stderr := say(t, args...)
		if stderr == "" {
			t.Errorf("%q: nothing is said", args)
		}
		clean(t, args[0], stdout+stderr, false)
		_, stdout, stderr = say(t, append(args, "--json")...)
		clean(t, args[0]+" --json", stdout+stderr, false)
	}
}

func TestAPanicIsReportedAsText(t *testing.T) {
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	if code := a.guarded(func() int { panic(errors.New(takeover)) }); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(errs.String(), "evil") || !strings.Contains(errs.String(), "door_test.go") {
		t.Errorf("it says %q", errs.String())
	}
	if fault := hostile.Fault(out.String()+errs.String(), false); fault != "" {
		t.Error(fault)
	}
}

func TestWhatALibraryWritesToStderrIsText(t *testing.T) {
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	release := a.adopt()
	fmt.Fprint(os.Stderr, takeover)
	release()
	if !strings.Contains(errs.String(), "evil") || hostile.Fault(errs.String(), false) != "" {
		t.Errorf("it says %q", errs.String())
	}
}

func TestTheLogOfDlwbIsText(t *testing.T) {
	freshHome(t)
	t.Setenv("DLWB_LOG", filepath.Join(t.TempDir(), "log"))
	before := slog.Default()
	defer slog.SetDefault(before)
	log, err := diary.Open()
	if err != nil {
		t.Fatal(err)
	}
	slog.Debug("said", "text", takeover+"\ufe0f")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(os.Getenv("DLWB_LOG"))
	if err != nil || !bytes.Contains(text, []byte("evil")) {
		t.Fatalf("%q (%v)", text, err)
	}
	clean(t, "the log", string(text), false)
}
