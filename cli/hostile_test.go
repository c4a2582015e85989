//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/internal/hostile"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

// Every event there is, with hostile text in all that it says.
func TestEveryEventIsPrintedAsText(t *testing.T) {
	g := hostile.New(1)
	for _, row := range event.Bodies {
		for range 20 {
			body := hostile.Spoil(row.Body, func() string { return g.Text(8) + "\nforged " + takeover })
			for _, asJSON := range []bool{false, true} {
				var out, errs bytes.Buffer
				a := newApp(strings.NewReader(""), &out, &errs)
				a.json = asJSON
				p := a.printer(&workbench.Workbench{})
				if err := p.one(event.Event{Cluster: takeover, Run: takeover, Body: body}); err != nil {
					t.Fatal(err)
				}
				clean(t, body.EventName(), out.String()+errs.String(), false)
			}
		}
	}
}

// What a rank printed keeps its colours and nothing else, and stays in its line.
func TestEveryLineOfARankIsText(t *testing.T) {
	g := hostile.New(2)
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	for range 2000 {
		p := a.printer(&workbench.Workbench{})
		a.json = g.IntN(4) == 0
		p.json = a.json
		raw := strings.ReplaceAll(g.Text(20), "\n", " ") + "\x1b[31mred\x1b[2J"
		if err := p.line(event.Event{}, 0, []byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	text := out.String()
	clean(t, "log lines", text, true)
	if lines := strings.Count(text, "\n"); lines != 2000 || !strings.Contains(text, "\x1b[31mred") {
		t.Errorf("%d lines of 2000", lines)
	}
}

// hostileScript prints what an attacker would, writes results with names and
// series of theirs, calls itself by another name, and ends with a code.
const hostileScript = `
import json, os, sys, time
evil = open("noise.bin", "rb").read()
os.makedirs("outputs", exist_ok=True)
name = "ck" + %q
for n in (name, name.replace("\n", " ") + ".pt", "\u202e\u009b31m.bin"):
    open(os.path.join("outputs", n.replace("/", "_")), "w").write("x")
with open("outputs/metrics.jsonl", "w") as f:
    for i in range(1, 6):
        f.write(json.dumps({"step": i, "loss": 1 / i, "acc" + name: i}) + "\n")
out = sys.stdout.buffer
for i in range(1, 6):
    out.write(b"step %%d loss: %%.4f val\xc2\x9b31m_acc\xe2\x80\xae: 0.%%d\n" %% (i, 1 / i, i))
    out.write(evil + b"\n")
    out.flush()
    time.sleep(0.02)
sys.stderr.buffer.write(evil + b"\nTraceback (most recent call last):\nRuntimeError: " + name.encode() + b"\n")
sys.exit(int(sys.argv[-1]))
`

// hostileBed is a project and nodes that lie in everything that they can say.
type hostileBed struct {
	*bed
	runs []string // of which one succeeded and one failed
}

func newHostileBed(t *testing.T) *hostileBed {
	b := &hostileBed{bed: newBed(t)}
	g := hostile.New(3)
	said := takeover + g.Text(200)
	shims := filepath.Join(b.home, "shims")
	for _, name := range []string{"hostname", "nvidia-smi", "lscpu", "nproc"} {
		b.program(filepath.Join(shims, name), "cat <<'END-OF-TEXT'\nLinux"+takeover+"\n0, GPU"+takeover+", 1, 2, 3, 4, 5, 6\nEND-OF-TEXT\n")
	}
	// The agent is for a system and a processor: a host that lies about these gets none,
	// see TestAHostThatLiesIsShownAsText.
	b.program(filepath.Join(shims, "uname"), "case $1 in -s | -m) PATH=/usr/bin:/bin exec uname \"$1\" ;; esac\ncat <<'END-OF-TEXT'\nLinux"+takeover+"\nEND-OF-TEXT\n")
	b.program(filepath.Join(shims, "python3"), liar(t))
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Response><Errors><Error><Code>Evil\u009b</Code><Message>no\u202e \u009d0;title\nforged line</Message></Error></Errors></Response>")
	}))
	t.Cleanup(aws.Close)
	b.env = append(b.env, "PATH="+shims+":"+os.Getenv("PATH"), "DLWB_LOG="+filepath.Join(b.home, "log"), "DLWB_TEST_HOSTILE=1",
		"AWS_ENDPOINT_URL="+aws.URL, "AWS_ACCESS_KEY_ID=AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY=s", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_REGION=us-east-1", "AWS_MAX_ATTEMPTS=1")
	b.write("noise.bin", said)
	b.write("train.py", fmt.Sprintf(hostileScript, takeover))
	b.write("id_rsa"+takeover, "no key") // held back, and said so
	b.write("data"+takeover+".txt", "x")
	b.write("requirements.txt", "torch"+takeover+"\n--index-url http://x\u009b/\u202e\n")
	b.write("train.log", "step 1 loss: 1\n"+said+"\nstep 2 loss: 2\n")
	b.write("smi.csv", "0, GPU"+strings.ReplaceAll(takeover, "\n", " ")+", 1, 2, 3, 4, 5, 6\n")
	b.profileOf("dlwb.yaml", 0, "")
	b.profileOf("fails.yaml", 3, "")
	b.profileOf("venv.yaml", 0, "environment: {venv: requirements.txt}\n")
	b.write("broken.yaml", "name: bed # \u202e\x1b]0;x\x07\nrun: {command: a, evil\u009b31m: \"\\e[2J\\nforged\"}\n")
	b.write("refused.yaml", "name: bed\nrun: {command: \"a \\e[2J\\u009b evil\", \"k\\nforged\": \"\\e]0;x\"}\nevil: \"\\u202e\"\n")
	if err := os.Mkdir(filepath.Join(b.dir, "empty"+takeover), 0o755); err != nil {
		t.Fatal(err)
	}
	b.git("init", "-q", "-b", "br\u009b31m\u202e")
	b.git("config", "remote.origin.url", "https://u:p@evil/\x1b]0;x\x07\u009b\u202e")
	b.git("add", "train.py", "dlwb.yaml")
	b.git("commit", "-qm", "a message"+takeover)
	b.write("dirty"+takeover, "x")
	return b
}

func (b *hostileBed) program(path, script string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := testprogram.Write(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *hostileBed) profileOf(name string, code int, more string) {
	b.t.Helper()
	text := fmt.Sprintf("name: bed # ab\u200dc\nprovider: local\nrun:\n  engine: plain\n  command: train.py --tag evil %d\n"+
		"results: {paths: [outputs/]}\nforward: [jupyter]\n%s", code, more)
	b.write(name, text)
}

// told is what a command wrote, on both streams.
func (b *hostileBed) told(args ...string) string {
	b.t.Helper()
	r := b.run(args...)
	return r.stdout + "\n" + r.stderr
}

// interrupted runs a command that goes on until it is told to end, or has ended.
func (b *hostileBed) interrupted(after string, args ...string) string {
	b.t.Helper()
	c := b.command(args...)
	said := &screenText{}
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	for limit := time.Now().Add(60 * time.Second); !strings.Contains(said.String(), after) && time.Now().Before(limit); {
		select {
		case <-ended:
			return said.String()
		case <-time.After(10 * time.Millisecond):
		}
	}
	_ = c.Process.Signal(syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		_ = c.Process.Kill()
		b.t.Errorf("dlwb %v does not end", args)
	}
	return said.String()
}

// hostileCase is a command line. Some end only when they are interrupted, after
// a word; of some the standard output is documented to be exact; some take long,
// and are run without --json only.
type hostileCase struct {
	args  string // words; EVIL stands for the takeover, RUN and FAILED for runs
	until string
	exact bool
	long  bool
}

// hostileCases are ways of calling every command, in the order in which they
// make sense. A command that is not here fails the test below.
var hostileCases = []struct {
	command string
	ways    []hostileCase
}{
	{"import", []hostileCase{{args: "import EVIL"}, {args: "import dlwb.yaml"}, {args: "import --force no/EVIL"}}},
	{"init", []hostileCase{{args: "init emptyEVIL"}, {args: "init ."}, {args: "init no/EVIL"}}},
	{"plan", []hostileCase{{args: "plan"}, {args: "plan venv.yaml"}, {args: "plan broken.yaml"}, {args: "plan refused.yaml"}, {args: "plan EVIL"}, {args: "plan fails.yaml", long: true}}},
	{"trust", []hostileCase{{args: "trust"}, {args: "trust --list"}, {args: "trust --revoke EVIL"}, {args: "trust refused.yaml"}, {args: "trust --hash EVIL"}}},
	{"doctor", []hostileCase{{args: "doctor"}}},
	{"up", []hostileCase{{args: "up venv.yaml", long: true}, {args: "up"}, {args: "up broken.yaml"}}},
	{"sync", []hostileCase{{args: "sync --dry-run"}, {args: "sync"}, {args: "sync --watch", until: "sync"}}},
	{"sweep", []hostileCase{{args: "sweep"}, {args: "sweep --show"}, {args: "sweep EVIL"}}},
	{"chain", []hostileCase{{args: "chain"}, {args: "chain EVIL"}, {args: "chain broken.yaml"}}},
	{"run", []hostileCase{{args: "run"}, {args: "run fails.yaml"}, {args: "run broken.yaml"}}},
	{"dlwb", []hostileCase{{args: ""}, {args: "--plain"}, {args: "--version"}, {args: "EVIL"}, {args: "--EVIL"}, {args: "-h"}}},
	{"logs", []hostileCase{{args: "logs"}, {args: "logs FAILED --rank all"}, {args: "logs -f RUN"}, {args: "logs --rank EVIL"}, {args: "logs --raw", exact: true}}},
	{"ls", []hostileCase{{args: "ls"}, {args: "ls EVIL"}}},
	{"note", []hostileCase{{args: "note RUN EVIL"}, {args: "note RUN"}}},
	{"star", []hostileCase{{args: "star RUN"}, {args: "star EVIL"}}},
	{"runs", []hostileCase{{args: "runs"}, {args: "runs --filter EVIL"}, {args: "runs --sort EVIL"}}},
	{"attach", []hostileCase{{args: "attach"}, {args: "attach --plain bed"}, {args: "attach EVIL"}}},
	{"ssh", []hostileCase{
		{args: "ssh bed --config"}, {args: "ssh --include"}, {args: "ssh --include --yes"}, {args: "ssh EVIL"},
		{args: "ssh bed 0 -- cat dlwb/bed/code/noise.bin", exact: true},
	}},
	{"exec", []hostileCase{{args: "exec bed -- cat dlwb/bed/code/noise.bin"}, {args: "exec bed -- sh -c EVIL"}, {args: "exec bed -- printf EVIL"}, {args: "exec EVIL -- a"}}},
	{"forward", []hostileCase{{args: "forward bed 9", until: "9"}, {args: "forward bed EVIL"}, {args: "forward bed jupyter", until: "http"}}},
	{"pull", []hostileCase{{args: "pull"}, {args: "pull FAILED"}, {args: "pull EVIL"}}},
	{"stop", []hostileCase{{args: "stop RUN"}, {args: "stop bed --machines"}, {args: "stop EVIL"}}},
	{"start", []hostileCase{{args: "start bed"}, {args: "start EVIL"}}},
	{"doctor", []hostileCase{{args: "doctor bed"}, {args: "doctor EVIL"}}},
	{"extend", []hostileCase{{args: "extend bed 1h"}, {args: "extend bed --by EVIL"}}},
	{"metrics", []hostileCase{
		{args: "metrics train.log --why"}, {args: "metrics smi.csv"}, {args: "metrics noise.bin --why"}, {args: "metrics RUN --why"}, {args: "metrics FAILED"},
		{args: "metrics /EVIL"}, {args: "metrics train.log --metric EVIL"},
	}},
	{"compare", []hostileCase{{args: "compare RUN FAILED"}, {args: "compare RUN EVIL"}}},
	{"export", []hostileCase{
		{args: "export RUN"}, {args: "export RUN --format jsonl"}, {args: "export RUN --format parquet", exact: true}, {args: "export RUN -o EVIL.csv"},
		{args: "export RUN --format EVIL"},
	}},
	{"runbook", []hostileCase{{args: "runbook RUN"}, {args: "runbook FAILED -o page.md"}}},
	{"rerun", []hostileCase{{args: "rerun RUN --plan"}, {args: "rerun RUN"}, {args: "rerun EVIL"}}},
	{"offers", []hostileCase{{args: "offers", long: true}, {args: "offers EVIL"}}},
	{"gc", []hostileCase{{args: "gc"}, {args: "gc EVIL"}}},
	{"events", []hostileCase{{args: "events"}}},
	{"help", []hostileCase{{args: "help"}, {args: "help plan"}, {args: "help profile"}, {args: "help commands"}, {args: "help EVIL"}}},
	{"settings", []hostileCase{{args: "settings --help"}, {args: "help settings"}}},
	{"keys", []hostileCase{{args: "keys --help"}, {args: "help keys"}}},
	{"profile", []hostileCase{{args: "profile --help"}}},
	{"commands", []hostileCase{{args: "commands --help"}}},
	{"completion", []hostileCase{{args: "completion bash"}, {args: "completion zsh"}, {args: "completion fish"}, {args: "completion powershell"}, {args: "completion EVIL"}}},
	{"__complete", []hostileCase{{args: "__complete logs EVIL"}, {args: "__complete attach "}, {args: "__complete EVIL"}, {args: "__complete plan --EVIL"}}},
	{"down", []hostileCase{{args: "down EVIL"}, {args: "down --yes bed"}, {args: "down --all"}, {args: "run --down fails.yaml", long: true}}},
	{"rm", []hostileCase{{args: "rm EVIL"}, {args: "rm --yes FAILED"}, {args: "rm --yes RUN"}}},
	{"keeper", []hostileCase{{args: "keeper"}, {args: "keeper EVIL"}}},
	{"compact", []hostileCase{{args: "compact"}, {args: "compact EVIL"}}},
	{"demo", []hostileCase{{args: "demo", until: "plan"}}},
}

func TestEveryCommandWritesTextOfAHostileProjectAndNode(t *testing.T) {
	sample.Leave(t)
	b := newHostileBed(t)
	b.everyCommandHasACase()
	wrote := 0
	for _, c := range hostileCases {
		for _, way := range c.ways {
			for _, flags := range [][]string{nil, {"--json"}} {
				if !way.long || flags == nil {
					wrote += b.holds(way, flags)
				}
				if c.command == "run" {
					b.learnRuns()
				}
			}
		}
	}
	if len(b.runs) < 2 || wrote < 10_000 {
		t.Errorf("%d runs, %d bytes of output with hostile text: the bed is none", len(b.runs), wrote)
	}
	for _, name := range []string{"log", "project/page.md"} {
		text, err := os.ReadFile(filepath.Join(b.home, name))
		if err != nil {
			t.Fatal(err)
		}
		clean(t, name, string(text), false)
	}
}

// holds runs a command line and judges what it wrote. It returns how much that
// was, where something of the hostile text is in it.
func (b *hostileBed) holds(way hostileCase, flags []string) int {
	b.t.Helper()
	var args []string
	for _, word := range strings.Split(way.args, " ") {
		if word == "" && way.args == "" {
			continue
		}
		for from, to := range map[string]string{"EVIL": takeover, "RUN": b.runOf(0), "FAILED": b.runOf(1)} {
			word = strings.ReplaceAll(word, from, to)
		}
		args = append(args, word)
	}
	at := len(args)
	if i := slices.Index(args, "--"); i >= 0 {
		at = i
	}
	if len(args) > 0 && args[0] == "__complete" {
		at = 1
	}
	args = slices.Insert(args, at, flags...)
	text := ""
	switch {
	case way.until != "":
		text = b.interrupted(way.until, args...)
	case way.exact:
		r := b.run(args...)
		text = r.stderr
	default:
		text = b.told(args...)
	}
	// Of what ranks printed, colours are kept.
	clean(b.t, fmt.Sprintf("dlwb %q", args), text, flags == nil)
	if !strings.Contains(text, "evil") {
		return 0
	}
	return len(text)
}

// learnRuns notes the runs that there are, the oldest first.
func (b *hostileBed) learnRuns() {
	if len(b.runs) >= 2 {
		return
	}
	var table struct{ Runs []struct{ ID string } }
	b.answer(&table, "runs")
	b.runs = nil
	for _, r := range slices.Backward(table.Runs) {
		b.runs = append(b.runs, r.ID)
	}
}

func (b *hostileBed) runOf(i int) string {
	if i < len(b.runs) {
		return b.runs[i]
	}
	return "none"
}

// everyCommandHasACase holds the cases against the command tree.
func (b *hostileBed) everyCommandHasACase() {
	b.t.Helper()
	known := map[string]bool{}
	for _, c := range hostileCases {
		known[c.command] = true
	}
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "dlwb ")
		name, _, _ = strings.Cut(name, " ") // completion bash is completion
		if !known[name] {
			b.t.Errorf("dlwb %s is driven by no case of hostileCases", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look((&app{}).root())
}

// A machine that lies about its system when it is looked at, as the check of a
// plan does, in what it answers to a command, and in its greeting.
func TestAHostThatLiesIsShownAsText(t *testing.T) {
	b := &hostileBed{bed: newBed(t)}
	shims, banner := filepath.Join(b.home, "shims"), b.write("banner", takeover)
	b.program(filepath.Join(shims, "uname"), "cat <<'END'\n"+takeover+"\nEND\n")
	b.program(filepath.Join(shims, "python3"), "cat >&2 <<'END'\n"+takeover+"\nEND\nexit 1\n")
	s := sshdtest.Start(t, sshdtest.PathFirst(shims), sshdtest.Config("Banner "+banner))
	host, port, _ := net.SplitHostPort(s.Addr)
	for name, text := range map[string]string{
		"config":      fmt.Sprintf("Host gpu1\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n", host, port, s.User, s.KeyFile),
		"known_hosts": fmt.Sprintf("[%s]:%s %s\n", host, port, s.HostKey),
	} {
		path := filepath.Join(b.home, ".ssh", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b.write("train.py", "print(1)\n")
	b.write("dlwb.yaml", "name: bed\nprovider: hosts\nmachines: {hosts: [gpu1]}\nrun: {engine: plain, command: train.py}\n")
	seen := 0
	for _, args := range []string{"plan", "up", "run", "exec bed -- cat banner", "ls", "down --yes bed"} {
		for _, flags := range [][]string{nil, {"--json"}} {
			seen += b.holds(hostileCase{args: args}, flags)
		}
	}
	if seen == 0 {
		t.Error("nothing of what the host says was shown")
	}
}
