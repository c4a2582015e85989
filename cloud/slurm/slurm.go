// Package slurm is the provider of jobs on a Slurm cluster. It hands one batch
// script in on the login node, whose home directory the nodes share: srun starts
// dlwb's agent once on each node, and that the ranks. What the ranks print, and
// how they end, lies on the shared disk and is read on the login node; what only
// Slurm knows is asked of squeue, scontrol and sacct, always with a format of our
// own.
package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/slurm/options"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// Options are what a Provider is made of.
type Options struct {
	// Dir keeps where the jobs of each life are.
	Dir string
	// Login finds a login node by its name, as the user's own ssh does.
	Login func(ctx context.Context, entry string) (cloud.Node, error)
	// Logins are names of machines that may be login nodes; nil: none are known.
	Logins func() []string
	// Machine makes a machine of a login node; one without an address is this
	// machine.
	Machine func(cloud.Node) cloud.Machine
}

// Provider hands in jobs. It implements cloud.Landing.
type Provider struct {
	options Options

	mu       sync.Mutex
	machines map[string]*lazy // by the login node's name in profiles
	looks    map[string]*looks
}

// New makes a provider. It reads nothing before it is used.
func New(o Options) *Provider {
	return &Provider{options: o, machines: map[string]*lazy{}, looks: map[string]*looks{}}
}

// Kind is "slurm".
func (*Provider) Kind() string { return options.Provider.Name }

// Known implements cloud.Knower: the user's own names of machines. What only the
// cluster knows, such as its partitions, is not asked for.
func (p *Provider) Known(key string) []string {
	if key != "machines.login" || p.options.Logins == nil {
		return nil
	}
	return p.options.Logins()
}

// The steps of Submit and Await.
const (
	stepSubmit = "submit"
	stepQueue  = "queue"
)

// Steps are those of Submit and Await.
func (*Provider) Steps() []string { return []string{stepSubmit, stepQueue} }

// Shape is what each node gets.
func (*Provider) Shape(spec cloud.Spec) cloud.Shape {
	m := about.Own[options.Machines](spec.Own)
	return cloud.Shape{GPUs: m.GPUs, Cores: m.CPUs, Modules: modulesOf(m)}
}

// modulesOf are the modules of a profile.
func modulesOf(m options.Machines) (names []string) {
	for _, name := range strings.Split(m.Modules, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// lazy is a machine that is reached when it is first needed.
type lazy struct {
	mu   sync.Mutex
	node cloud.Node
	made cloud.Machine
}

// machine gives the machine of a login node; known is what is on record of it.
func (p *Provider) machine(ctx context.Context, login string, known *cloud.Node) (cloud.Machine, cloud.Node, error) {
	p.mu.Lock()
	l := p.machines[login]
	if l == nil {
		l = &lazy{}
		p.machines[login] = l
	}
	p.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil {
		return l.made, l.node, nil
	}
	node := cloud.Node{Name: "this machine"}
	name, own := ownssh.Cut(login)
	var err error
	switch {
	case known != nil:
		node = *known
	case own:
		node = cloud.Node{Name: name, Called: name, Way: cloud.ByOwnSSH}
	case login != "":
		node, err = p.options.Login(ctx, login)
	}
	if err != nil {
		return nil, node, err
	}
	l.node, l.made = node, p.options.Machine(node)
	return l.made, node, nil
}

// record is what is kept of a life.
type record struct {
	Login string     `json:"login"`
	Node  cloud.Node `json:"node"`
	Home  string     `json:"home"`
	Runs  []string   `json:"runs"`
}

func (p *Provider) path(life cloud.Life) string {
	return filepath.Join(p.options.Dir, life.ID+".json")
}

// errNothing says that a life has nothing anywhere.
var errNothing = errors.New("nothing was handed in")

func (p *Provider) read(life cloud.Life) (r record, err error) {
	text, err := os.ReadFile(p.path(life))
	if errors.Is(err, fs.ErrNotExist) {
		return r, errNothing
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read where the jobs of cluster %s are: %w", life.Name, err)
	}
	return r, nil
}

func (p *Provider) write(life cloud.Life, r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.options.Dir, 0o700); err != nil {
		return err
	}
	return wholefile.Write(p.path(life), append(text, '\n'), 0o600)
}

// addRun notes a run before anything of it is handed in.
func (p *Provider) addRun(life cloud.Life, run string) error {
	r, err := p.read(life)
	if err != nil || slices.Contains(r.Runs, run) {
		return err
	}
	r.Runs = append(r.Runs, run)
	return p.write(life, r)
}

// Land reaches the login node of a life and keeps which it is.
func (p *Provider) Land(ctx context.Context, life cloud.Life, spec cloud.Spec) (cloud.Machine, error) {
	own := about.Own[options.Machines](spec.Own)
	before, err := p.read(life)
	switch {
	case err == nil && before.Login != own.Login:
		return nil, fmt.Errorf("cluster %s has its jobs on %q, and %q was asked for: dlwb down %s, then again", life.Name, before.Login, own.Login, life.Name)
	case err == nil:
		return p.At(ctx, life)
	case !errors.Is(err, errNothing):
		return nil, err
	}
	m, node, err := p.machine(ctx, own.Login, nil)
	if err != nil {
		return nil, err
	}
	r, err := m.Run(ctx, `cd && pwd -P`, nil)
	home := strings.TrimSpace(string(r.Out))
	if err == nil && !filepath.IsAbs(home) {
		err = fmt.Errorf("the home directory on %s is not known: %s", node.Name, said(string(r.Err)))
	}
	if err != nil {
		return nil, err
	}
	return m, p.write(life, record{Login: own.Login, Node: node, Home: home})
}

// At reaches the login node of a life again.
func (p *Provider) At(ctx context.Context, life cloud.Life) (cloud.Machine, error) {
	r, err := p.read(life)
	if err != nil {
		return nil, err
	}
	m, _, err := p.machine(ctx, r.Login, &r.Node)
	return m, err
}

// jobDir is what a run has on the shared disk besides what its parts have there.
func jobDir(home, run string) string { return home + "/.dlwb/jobs/" + run }

// partOf is the id of a part of a run.
func partOf(run string, replica int) string { return fmt.Sprintf("%s.n%d", run, replica) }

// nameOf is the name that a run's job has in the queue.
func nameOf(run string) string { return "dlwb-" + run }
