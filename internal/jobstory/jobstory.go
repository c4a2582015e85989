// Package jobstory is what tests of providers that take whole jobs have in common: a
// project in which dlwb is run as a user runs it, and the events that it prints.
package jobstory

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Project is a directory with a profile and code, beside a home and a state of its own.
type Project struct {
	T       *testing.T
	Program string
	Dir     string
	Env     []string // besides that of the test
}

// Script is train.py of a new project: 40 steps, of which rank 0 tells the loss, with
// a pause of so many seconds, its argument, behind each.
const Script = `import os, sys, time
rank = int(os.environ["RANK"])
for step in range(1, 41):
    if rank == 0:
        print(f"step {step}/40 loss {4 / step:.4f}", flush=True)
    time.sleep(float(sys.argv[1]))
print("rank", rank, "is through", flush=True)
`

// New makes a project of a program, in whose environment are env and a home of its own.
func New(t *testing.T, program string, env ...string) *Project {
	t.Helper()
	dir := t.TempDir()
	p := &Project{T: t, Program: program, Dir: filepath.Join(dir, "p"),
		Env: append([]string{"HOME=" + dir, "DLWB_HOME=" + filepath.Join(dir, "state"), "XDG_STATE_HOME="}, env...)}
	if err := os.Mkdir(p.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p.Write("train.py", Script)
	return p
}

// Write writes a file of the project.
func (p *Project) Write(name, text string) {
	p.T.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o644); err != nil {
		p.T.Fatal(err)
	}
}

var shownHash = regexp.MustCompile(`--hash ([0-9a-f]+)`)

// Trust trusts profiles as a user does: by the hash that dlwb shows.
func (p *Project) Trust(files ...string) {
	p.T.Helper()
	for _, file := range files {
		out, _ := p.Try("plan", file)
		hash := shownHash.FindStringSubmatch(out)
		if hash == nil {
			p.T.Fatalf("no hash is shown in\n%s", out)
		}
		p.Must("trust", "--hash", hash[1], file)
	}
}

// Command is dlwb with arguments, in the project.
func (p *Project) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.Program, args...)
	cmd.Dir, cmd.Env = p.Dir, append(os.Environ(), p.Env...)
	return cmd
}

// Try runs dlwb and gives all that it prints.
func (p *Project) Try(args ...string) (string, error) {
	out, err := p.Command(args...).CombinedOutput()
	return string(out), err
}

// Must is Try for what has to succeed.
func (p *Project) Must(args ...string) string {
	p.T.Helper()
	out, err := p.Try(args...)
	if err != nil {
		p.T.Fatalf("dlwb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Logs are the stored logs, by the names of their files.
func (p *Project) Logs() map[string]string {
	all := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(p.Dir, "../state/runs/*/*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// Await waits until something is so.
func (p *Project) Await(what string, is func() bool) {
	p.T.Helper()
	for limit := time.Now().Add(90 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			p.T.Fatalf("%s: not in time; the logs are %q", what, p.Logs())
		}
	}
}

// Said are the events that a command printed by --json.
func Said(t *testing.T, out string) (events []map[string]any) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// Story are the names of events, without those that say how far something is and the
// steps that a provider has for itself.
func Story(events []map[string]any) (names []string) {
	for _, e := range events {
		name, _ := e["event"].(string)
		if slices.Contains([]string{"step_progress", "sample", "log_line", "point", "progress", "node", "notice"}, name) {
			continue
		}
		if step, is := e["step"].(string); is {
			if !slices.Contains([]string{"train", "fetch", "down"}, step) {
				continue
			}
			name += " " + step
		}
		names = append(names, name)
	}
	return names
}

// EventOf is the first event of a name.
func EventOf(t *testing.T, events []map[string]any, name string) map[string]any {
	t.Helper()
	for _, e := range events {
		if e["event"] == name {
			return e
		}
	}
	t.Fatalf("there is no event %s", name)
	return nil
}
