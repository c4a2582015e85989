package atnode

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transport"
)

// Station is a machine that a job provider works through.
type Station struct{ Node *remote.Node }

// NewStation makes a machine for a job provider of a node; one without an address is
// this machine. It does no I/O.
func NewStation(n cloud.Node) cloud.Machine {
	if n.Way == cloud.ByOwnSSH {
		return &Station{remote.OpenOver(n.Name, transport.SSH(ownssh.At(n.Called, "")))}
	}
	if n.Addr == "" {
		return &Station{remote.OpenOver(n.Name, transport.Local())}
	}
	return &Station{remote.Open(Target(n, ""))}
}

// Run runs a line there.
func (s *Station) Run(ctx context.Context, line string, input []byte) (cloud.Said, error) {
	c := remote.Cmd{Line: line}
	if input != nil {
		c.Stdin = strings.NewReader(string(input))
	}
	r, err := s.Node.Exec(ctx, c)
	return cloud.Said{Code: r.ExitCode, Out: r.Stdout, Err: r.Stderr}, err
}

// agentLine copies the agent that runs the line, and prints where it is.
const agentLine = `a=$(readlink "/proc/$PPID/exe") && mkdir -p %[1]s && cd %[1]s && b="$(pwd)/$(basename "$a")" && { [ -x "$b" ] || { cp "$a" "$b.$$" && mv -f "$b.$$" "$b"; }; } && printf %%s "$b"`

// Agent copies the agent.
func (s *Station) Agent(ctx context.Context, dir string) (string, error) {
	if err := s.Node.Install(ctx); err != nil {
		return "", err
	}
	r, err := s.Node.Exec(ctx, remote.Cmd{Line: fmt.Sprintf(agentLine, shellword.Quote(dir))})
	if err == nil && (r.ExitCode != 0 || !path.IsAbs(string(r.Stdout))) {
		err = fmt.Errorf("copy dlwb's agent to %s: %s", dir, strings.TrimSpace(string(r.Stderr)))
	}
	return string(r.Stdout), err
}

// Hold prepares a part.
func (s *Station) Hold(ctx context.Context, p cloud.Part) error {
	l := remote.Launch{RunID: p.ID, Dir: p.Dir, Results: p.Results, Env: p.Env, Grace: p.Grace, LogMost: p.LogMost, Beside: p.Others, Led: p.Led, Leads: p.Leads, Restarts: p.Restarts}
	for _, proc := range p.Procs {
		started := remote.Proc{Name: proc.Name, Ranks: proc.Ranks, Env: proc.Env, Argv: proc.Argv, Again: proc.Again, Log: proc.Log, Helper: proc.Helper}
		if a := proc.After; a != nil {
			started.After = &remote.Ready{What: a.What, Argv: a.Argv, Limit: a.Limit}
		}
		l.Procs = append(l.Procs, started)
	}
	for _, f := range p.Files {
		l.Files = append(l.Files, remote.File{Name: f.Name, Text: f.Text})
	}
	return s.Node.PrepareAs(ctx, p.Node, l)
}

// Records are those of a part.
func (s *Station) Records(part string) cloud.Records { return records{Run{Node: s.Node, ID: part}} }

// Reach tells whether the machine can be reached.
func (s *Station) Reach(ctx context.Context, news func(connected bool, why string)) {
	Run{Node: s.Node}.Reach(ctx, news)
}

// records are what a part of a run leaves on the disk of a station.
type records struct{ Run }

// Told follows the file of statuses.
func (r records) Told(ctx context.Context, sink func(job.Status) error) error {
	var part []byte
	return r.Node.Follow(ctx, ".dlwb/runs/"+r.ID+"/status", 0, func(_ int64, p []byte) error {
		part = append(part, p...)
		for {
			line, rest, whole := strings.Cut(string(part), "\n")
			if !whole {
				return nil
			}
			part = []byte(rest)
			if s, ok := remote.ParseStatus(line); ok {
				if err := sink(jobStatus(s)); err != nil {
					return err
				}
			}
		}
	})
}

// Look reads the records.
func (r records) Look(ctx context.Context) (job.State, error) {
	s, err := r.Node.RunState(ctx, r.ID)
	state := jobState(s)
	// Another machine wrote them: what its boot and its processes are now is unknown here.
	state.Rebooted, state.Why = false, ""
	return state, err
}

// jobStatus is a status of a run on a node.
func jobStatus(s remote.Status) job.Status {
	return job.Status{Time: s.Time, Uptime: s.Uptime, Kind: job.Kind(s.Kind), Rank: s.Rank, PID: s.PID, Code: s.Code, Signal: s.Signal, Why: s.Why}
}

// Target is what a provider says of a node, as the dialer takes it.
func Target(n cloud.Node, keyFile string) remote.Target {
	t := remote.Target{
		Name: n.Name, Addr: n.Addr, User: n.User, HostKey: n.HostKey, NextHostKey: n.NextHostKey,
		KeyFile: keyFile, Keys: n.Keys, Called: n.Called,
	}
	if n.Way == cloud.ByOwnSSH {
		t.Own = ownssh.At(n.Called, "")
	}
	if n.HomeOf != "" {
		t.Shelf = n.Name
	}
	for _, j := range n.Jumps {
		t.Jumps = append(t.Jumps, remote.Jump{Name: j.Name, Addr: j.Addr, User: j.User, HostKey: j.HostKey, Keys: j.Keys})
	}
	return t
}

// Leave ends the connections to a cluster's machines that are kept between commands.
func Leave(c cloud.Cluster) {
	var targets []remote.Target
	for _, n := range c.Nodes {
		targets = append(targets, Target(n, c.KeyFile))
	}
	remote.Leave(targets)
}
