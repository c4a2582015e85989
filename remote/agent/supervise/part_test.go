//go:build linux

package supervise_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

// part is one of the parts of a job whose machines share a disk.
type part struct {
	*box
	id   string
	said bytes.Buffer
	c    *exec.Cmd
}

// hold prepares a part and starts nothing.
func (b *box) hold(id string, procs []wire.LaunchProc, change func(*wire.LaunchRequest)) *part {
	b.T.Helper()
	b.launch(procs, func(l *wire.LaunchRequest) {
		l.RunID, l.Node, l.Hold = id, "node"+id[len(id)-1:], true
		change(l)
	})
	return &part{box: b, id: id}
}

// begin is what a scheduler starts on a node.
func (p *part) begin(life string) {
	p.T.Helper()
	p.c = p.command(p.self, "part", p.run().Dir, life, "a,b,c", "29500")
	p.c.Stdout, p.c.Stderr = &p.said, &p.said
	must(p.T, p.c.Start())
}

// code is how a part ended for its scheduler.
func (p *part) code() int {
	p.T.Helper()
	if err := p.c.Wait(); err != nil && p.c.ProcessState == nil {
		p.T.Fatal(err)
	}
	return p.c.ProcessState.ExitCode()
}

func (p *part) run() runs.Run { return runs.At(filepath.Join(p.Home, ".dlwb/runs", p.id)) }

func (p *part) read(name string) string {
	text, _ := os.ReadFile(p.run().Path(name))
	return string(text)
}

func (p *part) await(name, text string, times int) {
	p.T.Helper()
	runbox.Within(p.T, runbox.Patience, text+" in "+name+" of "+p.id, func() bool { return strings.Count(p.read(name), text) >= times })
}

// rankOf is a rank that runs a program of sh.
func rankOf(number, program string) []wire.LaunchProc {
	return []wire.LaunchProc{{Name: "rank-" + number, Log: "rank-" + number + ".log", Env: bytesOf("RANK=" + number),
		Argv: bytesOf("sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/r1", "sh", "-c", program)}}
}

// A part of servers, and one whose rank waits for work for ever, are ended once all has
// ended well where the run is led: no failure for whoever has started them. In a later
// life they do not go by what was said in an earlier one.
func TestAPartOfAJobIsEndedByTheOneThatLeads(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	lead := b.hold("r1.n0", rankOf("0", `echo trains; until [ -e go ]; do sleep 0.05; done`), func(l *wire.LaunchRequest) {
		l.Leads, l.Beside = true, []string{"r1.n1", "r1.n2"}
	})
	led := func(l *wire.LaunchRequest) { l.Led = true }
	serves := b.hold("r1.n1", []wire.LaunchProc{helper(serving)}, led)
	waits := b.hold("r1.n2", rankOf("1", "echo up; "+forever), led)
	for i, life := range []string{"0", "1"} {
		serves.begin(life)
		waits.begin(life)
		serves.await("agent.log", "up", i+1)
		waits.await("rank-1.log", "up", i+1)
		lead.begin(life)
		lead.await("rank-0.log", "trains", i+1)
		for _, p := range []*part{serves, waits} {
			if n := strings.Count(p.read("status"), "stopping"); n != i {
				t.Fatalf("life %s: %s was ended %d times before the run had:\n%s", life, p.id, n, p.read("status"))
			}
		}
		must(t, os.WriteFile(filepath.Join(b.Home, "go"), nil, 0o600))
		for _, p := range []*part{lead, serves, waits} {
			if code := p.code(); code != 0 {
				t.Errorf("life %s: %s ended with code %d, and says %s\n%s", life, p.id, code, p.said.String(), p.read("status"))
			}
		}
		for _, p := range []*part{serves, waits} {
			if !strings.Contains(p.read("status"), "stopping "+job.RunOver+"the run has ended on node0") {
				t.Errorf("life %s: why %s was ended:\n%s", life, p.id, p.read("status"))
			}
		}
		if end := waits.read("exit"); !strings.HasPrefix(end, "143 TERM ") {
			t.Errorf("life %s: the record of the rank that waited: %q", life, end)
		}
		must(t, os.Remove(filepath.Join(b.Home, "go")))
	}
}

// Only a good end is told: of a failure the scheduler hears.
func TestAPartThatLeadsAndFailsTellsNobodyThatAllIsWell(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	lead := b.hold("r1.n0", append(rankOf("0", "exit 7"), helper(serving)), func(l *wire.LaunchRequest) { l.Leads, l.Beside = true, []string{"r1.n1"} })
	other := b.hold("r1.n1", []wire.LaunchProc{helper(serving)}, func(l *wire.LaunchRequest) { l.Led = true })
	lead.begin("0")
	if code := lead.code(); code != 7 {
		t.Errorf("code %d: %s", code, lead.said.String())
	}
	if told, _ := filepath.Glob(other.run().Path("told-*")); len(told) > 0 {
		t.Errorf("it has told %q", told)
	}
}

// A part whose server is lost has failed, also where the run is led.
func TestAPartThatIsLedAndLosesItsServerHasFailed(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := b.hold("r1.n1", []wire.LaunchProc{helper("exit 0")}, func(l *wire.LaunchRequest) { l.Led = true })
	p.begin("0")
	if code := p.code(); code != 1 {
		t.Errorf("code %d: %s", code, p.said.String())
	}
}

// Where the machines of a job are is known when it begins, and whoever waits for one of
// them is told, too.
func TestWhatAPartWaitsForHasTheNamesOfItsMachines(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := rankOf("0", "echo trains")
	procs[0].After = &wire.LaunchReady{What: "a server", Limit: 30, Argv: bytesOf("sh", "-c", `echo "$1"; [ "$1" = b:29502 ] || exit 3`, "sh", job.HostOf(1)+":"+job.Port+"+2")}
	p := b.hold("r1.n0", procs, func(*wire.LaunchRequest) {})
	p.begin("0")
	if code := p.code(); code != 0 || p.read("rank-0.log") != "trains\n" {
		t.Errorf("code %d, log %q", code, p.read("rank-0.log"))
	}
}

// MPI's daemon is started where the launcher of another part wants it, by the disk that
// they share. What an earlier life has left there is not taken for it.
func TestAPartBecomesTheDaemonThatAnotherOneWants(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	bin := filepath.Join(b.Home, "bin")
	must(t, errors.Join(os.Mkdir(bin, 0o755), testprogram.Write(filepath.Join(bin, "orted"), []byte("#!/bin/sh\necho daemon \"$@\"\n"), 0o755)))
	b.env = append(b.env, "PATH="+bin+":"+os.Getenv("PATH"))
	asks := b.hold("r1.n0", launcher(`exec "$DLWB_AGENT" join "$DLWB_RUN_DIR" dlwb-node2 "set x ; orted of life $(ls -d "$DLWB_RUN_DIR"/life-* | wc -l)"`),
		func(l *wire.LaunchRequest) { l.Beside = []string{"r1.n1", "r1.n2"} })
	is := b.hold("r1.n2", launcher(`exec "$DLWB_AGENT" joined "$DLWB_RUN_DIR"`), func(*wire.LaunchRequest) {})
	for _, life := range []string{"0", "1"} {
		asks.begin(life) // first: what lies there is of the life before
		is.begin(life)
		for _, p := range []*part{asks, is} {
			if code := p.code(); code != 0 {
				t.Errorf("life %s: %s ended with code %d: %s\n%s", life, p.id, code, p.said.String(), p.read("agent.log"))
			}
		}
		// As if this life had been ended while it waited.
		must(t, errors.Join(is.run().Write("join.waits", []byte(life)), is.run().Write("join", []byte("orted of long ago"))))
	}
	if said := is.read("agent.log"); said != "daemon of life 1\ndaemon of life 2\n" {
		t.Errorf("the daemons said %q, and who asked %q", said, asks.read("agent.log"))
	}
}
