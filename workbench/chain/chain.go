// Package chain runs profiles one after the other, each with the results of those
// before it as channels. A step that is done and unchanged is not run again.
package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/inputs"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Step is a profile of a chain.
type Step struct {
	Path    string // absolute
	Profile *profiles.Profile
	After   []int // the steps before it, by their places in the chain
}

// Order reads a profile and all that come before it, in the order in which they are
// run: the profile itself is the last.
func Order(path string) ([]Step, error) {
	o := &ordering{at: map[string]int{}}
	if _, err := o.add(path, nil); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, s := range o.steps {
		if other := names[s.Profile.Name]; other != "" {
			return nil, profiles.Errors{s.Profile.Fault("name", "the name "+s.Profile.Name, "another profile of the chain has it: "+other, "", "give each a name: its cluster and its channel are called by it")}
		}
		names[s.Profile.Name] = s.Path
	}
	return o.steps, nil
}

type ordering struct {
	steps []Step
	at    map[string]int // by path
}

// add puts a profile behind those that come before it. above are the profiles on the
// way to it.
func (o *ordering) add(path string, above []Step) (int, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	if i, is := o.at[real]; is {
		return i, nil
	}
	p, err := profiles.LoadToShow(path)
	if err != nil {
		return 0, err
	}
	s := Step{Path: p.Path, Profile: p}
	for _, name := range p.After {
		next := p.AfterPath(name)
		if round := circle(append(above, s), next); round != "" {
			return 0, profiles.Errors{p.Fault("after", fmt.Sprintf("after %q", name), "it comes after this one itself: "+round, "", "take one of them out")}
		}
		i, err := o.add(next, append(above, s))
		if os.IsNotExist(err) {
			return 0, profiles.Errors{p.Fault("after", fmt.Sprintf("after %q", name), "there is no such profile", "", "paths are relative to this profile")}
		}
		if err != nil {
			return 0, err
		}
		s.After = append(s.After, i)
	}
	o.steps = append(o.steps, s)
	o.at[real] = len(o.steps) - 1
	return len(o.steps) - 1, nil
}

// circle is the way from a profile back to itself, in words; empty where there is
// none.
func circle(above []Step, next string) string {
	for i, s := range above {
		if !sameFile(s.Path, next) {
			continue
		}
		var names []string
		for _, s := range above[i:] {
			names = append(names, filepath.Base(s.Path))
		}
		return strings.Join(append(names, filepath.Base(s.Path)), " after ")
	}
	return ""
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// Owner is what a chain needs of whoever runs its steps.
type Owner struct {
	// Plan makes the plan of a profile; one that is not trusted has none.
	Plan func(ctx context.Context, path string) (*planning.Plan, error)
	// Sent says what of a profile's code is sent.
	Sent func(*profiles.Profile) (transfer.Rules, error)
	// Done finds a run with a key that ended well and whose results are here.
	Done func(key string) (run string, done bool)
	// Do runs a plan; the run is put on record with the key.
	Do func(ctx context.Context, plan *planning.Plan, key string) (run string, ended *event.RunEnded, err error)
	// Results says where those of a run are.
	Results func(run string) (event.RunResults, error)
	// Tell tells how far the chain is.
	Tell func(event.ChainStep)
}

// Failed is the end of a chain by a step that failed.
type Failed struct {
	*event.Fault
	Code int // of the run
}

// Unwrap gives the fault.
func (f *Failed) Unwrap() error { return f.Fault }

// Run runs what is to be run of a chain. With force every step is run.
func Run(ctx context.Context, o Owner, path string, force bool) error {
	steps, err := Order(path)
	if err != nil {
		return err
	}
	if len(steps) > 1 {
		if err := o.prepare(ctx, steps, force); err != nil {
			return err
		}
	}
	runs := make([]string, len(steps))
	for i := range steps {
		if runs[i], err = o.step(ctx, steps, i, runs, force); err != nil {
			return err
		}
	}
	return nil
}

// prepare plans every step before the first is run: what stands in the way of the
// last one is to be known before the others take their time and money. Each is
// planned again at its turn: hours may lie between.
func (o Owner) prepare(ctx context.Context, steps []Step, force bool) error {
	runs := make([]string, len(steps)) // of those that are done; empty: it is to be run
	for i, s := range steps {
		plan, err := o.Plan(ctx, s.Path)
		if err != nil {
			return err
		}
		if !force && s.known(runs) {
			_, run, done, err := o.find(ctx, plan, steps, i, runs)
			if err != nil {
				return err
			}
			if done {
				runs[i] = run
				continue
			}
		}
		if f := plan.Refusal(); f != nil {
			f.What += fmt.Sprintf(" for %s, step %d of %d of the chain, none of which was begun", s.Profile.Name, i+1, len(steps))
			return f
		}
	}
	return nil
}

// known reports whether all steps before one are done.
func (s Step) known(runs []string) bool {
	return !slices.ContainsFunc(s.After, func(before int) bool { return runs[before] == "" })
}

// find gives a plan the results of the steps before it, and finds a run that was
// made of the same.
func (o Owner) find(ctx context.Context, plan *planning.Plan, steps []Step, i int, runs []string) (key, run string, done bool, err error) {
	for _, before := range steps[i].After {
		c, err := o.channel(steps[before].Profile.Name, runs[before])
		if err != nil {
			return "", "", false, err
		}
		plan.Give(c)
	}
	if key, err = o.key(ctx, plan, steps[i], runs); err != nil {
		return "", "", false, err
	}
	run, done = o.Done(key)
	return key, run, done, nil
}

// step runs one step, or finds that it is done.
func (o Owner) step(ctx context.Context, steps []Step, i int, runs []string, force bool) (string, error) {
	s := steps[i]
	plan, err := o.Plan(ctx, s.Path)
	if err != nil {
		return "", err
	}
	key, run, done, err := o.find(ctx, plan, steps, i, runs)
	if err != nil {
		return "", err
	}
	told := event.ChainStep{Profile: s.Profile.Name, Path: s.Path, Step: i + 1, Steps: len(steps)}
	if done && !force {
		told.State, told.Run, told.Why = event.ChainSkipped, run, "profile, code and inputs are as they were"
		o.Tell(told)
		return run, nil
	}
	told.State = event.ChainRuns
	o.Tell(told)
	run, ended, err := o.Do(ctx, plan, key)
	if err != nil {
		return "", err
	}
	told.Run, told.State = run, event.ChainDone
	if ended == nil || ended.ExitCode != 0 {
		f := &Failed{Fault: &event.Fault{What: "go on with the chain behind " + s.Profile.Name, Node: -1, Why: "it did not run to its end", Next: "mend it, then dlwb chain again: what is done is not done twice"}, Code: 1}
		if ended != nil {
			f.Why, f.Code = fmt.Sprintf("run %s %s: %s", run, ended.Verdict, ended.Cause), ended.ExitCode
		}
		told.State, told.Why = event.ChainFailed, f.Why
		o.Tell(told)
		return "", f
	}
	o.Tell(told)
	return run, nil
}

// channel is the results of a run as an input of the next.
func (o Owner) channel(name, run string) (inputs.Channel, error) {
	r, err := o.Results(run)
	if err != nil {
		return inputs.Channel{}, err
	}
	if r.Files == 0 {
		return inputs.Channel{}, &event.Fault{What: "take the results of run " + run + " as the channel " + name, Node: -1, Why: "it has none",
			Next: "have it write to DLWB_RESULTS, or name results.paths"}
	}
	return inputs.Channel{Channel: profiles.Channel{Name: name, From: "run " + run}, Path: r.Dir}, nil
}

// key is made of all that decides what a step comes to.
func (o Owner) key(ctx context.Context, plan *planning.Plan, s Step, runs []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "dlwb chain 1\n%q\n%+v\n", s.Profile.Source, plan.Profile.Run.Env)
	rules, err := o.Sent(plan.Profile)
	if err != nil {
		return "", err
	}
	tree, err := transfer.Scan(ctx, plan.Code.Dir, rules)
	if err != nil {
		return "", err
	}
	for _, file := range tree.Paths() {
		if err := sum(h, plan.Code.Dir, file); err != nil {
			return "", err
		}
	}
	own, err := inputs.Identity(ctx, inputs.Of(plan.Profile))
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "inputs %s\n", own)
	for _, before := range s.After {
		fmt.Fprintf(h, "after %q\n", runs[before])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sum adds a file of the code.
func sum(h io.Writer, dir, file string) error {
	f, err := plainfile.Open(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	own := sha256.New()
	if _, err := io.Copy(own, f); err != nil {
		return err
	}
	fmt.Fprintf(h, "%q %x\n", file, own.Sum(nil))
	return nil
}
