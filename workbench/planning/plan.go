// Package planning works out what a profile will do, as a value, and puts new
// profiles together. Nothing that exists is changed by it.
package planning

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/inputs"
	"github.com/dlwb/dlwb/workbench/sweep"
	"github.com/dlwb/dlwb/workbench/trust"
)

// Plan is what a profile will do before it does anything.
type Plan struct {
	Profile      *profiles.Profile `json:"-"`
	Trusted      trust.Profile     `json:"-"` // as the gate let it through
	Tree         *transfer.Tree    `json:"-"` // of a sync that follows at once: the code, as it was seen for the plan; else nil
	Name         string            `json:"profile"`
	Path         string            `json:"path,omitempty"`
	Cluster      string            `json:"cluster"`
	Provider     string            `json:"provider"`
	Nodes        int               `json:"nodes"`
	Engine       string            `json:"engine"`
	EngineWhy    string            `json:"engine_why,omitempty"`
	WorldSize    int               `json:"world_size"`
	Environment  string            `json:"environment"`
	Code         Code              `json:"code"`
	Inputs       []inputs.Channel  `json:"-"`    // what comes to the nodes besides the code
	Data         []string          `json:"data"` // the same in words
	State        string            `json:"state,omitempty"`
	Commands     []event.RankInfo  `json:"commands"`
	PricePerHour float64           `json:"price_per_hour"`
	Costs        []cloud.Cost      `json:"costs"`
	// Most is what the cluster can cost at most before its own lease ends it,
	// in US dollars; MostWhy says by which limit.
	Most    float64      `json:"most"`
	MostWhy string       `json:"most_why,omitempty"`
	Offer   *cloud.Offer `json:"offer,omitempty"` // the machine; none where there is no choice
	Limits  []string     `json:"limits"`          // that are acted on
	Results []string     `json:"results"`         // paths
	Forward []string     `json:"forward"`         // opened while the run is watched
	// Secrets are variables of this shell that the run gets by --secret.
	Secrets    []string `json:"secrets"`
	NotActedOn []string `json:"not_acted_on"`
	// Warnings say what stands in the way of nothing and should be known.
	Warnings []string        `json:"warnings,omitempty"`
	Steps    []string        `json:"steps"`
	Findings []cloud.Finding `json:"findings"`
	// Pythons are what the machines have said of theirs; empty: none was asked.
	Pythons Pythons `json:"pythons,omitempty"`
	// Launches are what it may come to, each with its condition; there is one
	// where all is known. Engine ("auto"), WorldSize (0) and Commands (none)
	// above are left open where they differ.
	Launches []Launch `json:"launches"`
	// Open are the names in commands for what is known only at the launch.
	Open []Placeholder `json:"open"`
	// Script is what is handed to a service that takes whole jobs; empty: nothing
	// is. RUN and HOME stand for what is known at the launch.
	Script string `json:"script,omitempty"`
	// Beside: see cloud.Preflight.
	Beside bool `json:"-"`
}

// Code is what would be copied to the nodes at most.
type Code struct {
	Dir      string   `json:"dir"`
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`
	Warnings []string `json:"warnings,omitempty"`
	// Held are files that look like secrets and are not sent; the first
	// thousand.
	Held []transfer.HeldFile `json:"held"`
}

// OK reports whether nothing was found that stands in the way.
func (p *Plan) OK() bool { return p.Refusal() == nil }

// Refusal is the first thing that stands in the way; nil where nothing does.
func (p *Plan) Refusal() *event.Fault {
	for _, f := range p.Findings {
		if !f.OK {
			return &event.Fault{What: "check " + f.What, Node: -1, Why: f.Text, Next: f.Next}
		}
	}
	return nil
}

// ErrNotLetThrough says that a plan was made by other means than the gate's.
var ErrNotLetThrough = errors.New("the plan's profile was not let through by the gate of trust")

// Plan reads a profile and works out what it would do. It changes nothing, but
// asks providers and starts programs to find out: of a profile that is not
// trusted there is no plan, and the error is *trust.Untrusted.
func (m *Maker) Plan(ctx context.Context, path string) (*Plan, error) {
	p, seen, err := m.owner.Gate.LoadSeen(ctx, path)
	if err != nil {
		return nil, err
	}
	return m.planWith(ctx, p, how{seen: seen})
}

// how is what differs from one making of a plan to another.
type how struct {
	seen       *transfer.Survey // what the gate has just seen of the code; may be nil
	unexamined bool             // the provider is not asked
	atOnce     bool             // the sync follows at once, and reads what is sent
}

// PlanSync is Plan for a sync. Machines that a cluster has already are not
// examined: nothing but code is to come to them.
func (m *Maker) PlanSync(ctx context.Context, path string) (*Plan, error) {
	p, seen, err := m.owner.Gate.LoadSeen(ctx, path)
	if err != nil {
		return nil, err
	}
	if profile := p.Profile(); profile != nil && m.owner.Ready(profile) {
		return m.planWith(ctx, p, how{seen: seen, unexamined: true, atOnce: true})
	}
	return m.planWith(ctx, p, how{seen: seen})
}

// trusted is the plan of a profile that the gate has let through.
func (m *Maker) trusted(ctx context.Context, t trust.Profile) (*Plan, error) {
	return m.planWith(ctx, t, how{})
}

// planWith makes a plan.
func (m *Maker) planWith(ctx context.Context, t trust.Profile, by how) (*Plan, error) {
	p := t.Profile()
	if p == nil {
		return nil, ErrNotLetThrough
	}
	err := m.check(p)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Profile: p, Trusted: t, Name: p.Name, Path: p.Path, Cluster: p.Name, Provider: p.Provider,
		Nodes: Nodes(p), Environment: describeEnvironment(p),
		Limits: describeLimits(p), Steps: stepsWith(m.owner.Steps(p.Provider), p),
		Results: broughtHome(p), Forward: append([]string{}, p.Forward...),
		NotActedOn: notActedOn(p), Costs: []cloud.Cost{}, State: p.StateDir(),
	}
	plan.Give(inputs.Of(p)...)
	if traits(p.Provider).Sealed {
		plan.Forward = []string{}
	}
	if plan.Secrets, err = m.giveSecrets(p); err != nil {
		return nil, err
	}
	tree, err := m.codeOf(ctx, p, by)
	if err != nil {
		return nil, err
	}
	var found cloud.Preflight
	if !by.unexamined {
		found = m.preflight(ctx, plan, tree)
	}
	if plan.Beside = found.Beside; plan.Beside {
		plan.Nodes = p.Nodes()
	}
	if by.atOnce {
		plan.Tree = tree
	}
	plan.Code = Code{Dir: p.CodeDir(), Files: tree.Files, Bytes: tree.Bytes, Warnings: tree.Warnings, Held: HeldFiles(tree)}
	plan.Warnings = slices.Concat(unsavedWarnings(p), unexpandedWarnings(p), flowWarnings(p), pythonWarnings(p))
	if _, madeBy := m.owner.Up(plan.Cluster); madeBy != "" {
		plan.Warnings = append(plan.Warnings, SharedWith(madeBy, p)...)
	}
	return plan, m.planCommands(ctx, plan, found)
}

// codeOf is what of a profile's code would be sent.
func (m *Maker) codeOf(ctx context.Context, p *profiles.Profile, by how) (*transfer.Tree, error) {
	rules, err := m.Sent(p)
	if err != nil {
		return nil, err
	}
	rules.NamesOnly = by.atOnce
	if by.seen.Is(p.CodeDir(), rules.Exclude) {
		return by.seen.Tree(ctx, rules)
	}
	return transfer.Scan(ctx, p.CodeDir(), rules)
}

// preflight asks the provider what stands in the way and what it would cost.
func (m *Maker) preflight(ctx context.Context, plan *Plan, tree *transfer.Tree) cloud.Preflight {
	spec := Spec(plan.Profile)
	spec.Code = func(ctx context.Context) (cloud.Code, error) {
		_, err := tree.Read(ctx) // what looks like a secret by its content is none of it
		return cloud.Code{Dir: plan.Profile.CodeDir(), Paths: tree.Paths(), Links: tree.Links(), Empty: tree.Empty()}, err
	}
	spec.Have, _ = m.owner.Up(plan.Cluster)
	spec.Ask = asking(plan.Profile)
	found := m.owner.Check(ctx, plan.Provider, spec)
	plan.Findings, plan.Offer, plan.PricePerHour = append([]cloud.Finding{}, found.Findings...), found.Offer, found.PricePerHour
	plan.Pythons = heard(plan.Profile, found.Answers)
	plan.Findings = append(plan.Findings, plan.Pythons.findings()...)
	if slices.Contains(plan.Steps, event.StepData) {
		plan.Findings = append(plan.Findings, inputs.Look(ctx, plan.Inputs)...)
	}
	plan.Costs = append(plan.Costs, found.Costs...)
	plan.Most, plan.MostWhy = most(found, plan.Profile.Limits)
	plan.Script = found.Script
	return found
}

// most is what a cluster can cost at most: what its lifetime costs at the
// highest price, or its budget, whichever is reached first.
func most(p cloud.Preflight, l profiles.Limits) (float64, string) {
	perHour := max(p.MostPerHour, p.PricePerHour)
	if perHour == 0 {
		return 0, ""
	}
	b := cloud.LatestEnd(l.Budget, l.Lifetime, perHour)
	if b.Limit == "" {
		return 0, ""
	}
	return b.Cost, fmt.Sprintf("limits.%s: the machines shut themselves down after %s, at %s", b.Limit, units.Duration(b.After), units.PerHour(perHour))
}

// Sent says what of the code directory is sent: the project says what is left
// out, and only the user which secrets are not.
func (m *Maker) Sent(p *profiles.Profile) (transfer.Rules, error) {
	user, err := m.owner.Settings(p.Path)
	if err == nil {
		err = m.inside(p) // a link may be another one than when it was planned
	}
	return transfer.Rules{Exclude: m.excluded(p), Send: user.Send, Hold: user.Hold, Rooms: rooms(p)}, err
}

// giveSecrets adds the variables that the user names to those of the profile.
func (m *Maker) giveSecrets(p *profiles.Profile) ([]string, error) {
	user, err := m.owner.Settings(p.Path)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, name := range user.Secrets {
		v, err := profiles.GivenSecret(name)
		if err != nil {
			return nil, err
		}
		p.Run.Env = append(slices.DeleteFunc(slices.Clone(p.Run.Env), func(old profiles.Var) bool { return old.Name == name }), v)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// heldMost bounds the list of files that are held back, where it is shown.
const heldMost = 1000

// HeldFiles are the files of a tree that look like secrets, the first thousand.
func HeldFiles(tree *transfer.Tree) []transfer.HeldFile {
	return append([]transfer.HeldFile{}, tree.Held[:min(heldMost, len(tree.Held))]...)
}

// excluded is what of the code directory is not sent.
func (m *Maker) excluded(p *profiles.Profile) []string { return p.NotSent(m.owner.Dir) }

// check holds a profile against what this dlwb can do and what is on the disk.
func (m *Maker) check(p *profiles.Profile) error {
	if !slices.Contains(m.owner.Kinds(), p.Provider) {
		return profiles.Errors{p.Fault("provider", "provider "+p.Provider+" can't be used",
			"this dlwb makes clusters with: "+strings.Join(m.owner.Kinds(), ", "), "", "set provider to one of these")}
	}
	if k := p.Environment.Kind; !slices.Contains(EnvironmentKinds, k) {
		return profiles.Errors{p.Fault("environment", "environment "+k+" can't be made",
			"this dlwb sets up: "+strings.Join(EnvironmentKinds, ", "), "", "set environment: system, or {venv: requirements.txt}")}
	}
	if err := m.inside(p); err != nil {
		return err
	}
	if err := m.inputsInside(p); err != nil {
		return err
	}
	return p.CheckFiles()
}

// EnvironmentKinds are the kinds of environments that can be made on nodes.
var EnvironmentKinds = environment.Kinds

// Spec is what a profile asks of its provider.
func Spec(p *profiles.Profile) cloud.Spec {
	m := p.Machines
	spec := cloud.Spec{
		Name: p.Name, Count: m.Count, Engine: engineAsked(p), Restarts: p.Run.Restarts, HasEnv: len(p.Run.Env) > 0, Own: p.Own(),
		Regions: m.Regions, Instance: m.Instance,
		Need: cloud.Need{GPU: m.Need.GPU, GPUs: m.Need.GPUs, Memory: m.Need.Memory, MaxPrice: m.Need.MaxPrice},
		Spot: m.Spot, Image: m.Image, Disk: m.Disk,
		Budget: p.Limits.Budget, Lifetime: p.Limits.Lifetime, LifetimeAsked: p.Gives("limits.lifetime"), Idle: p.Limits.Idle, Grace: p.Run.Grace,
		Drain: cloud.Drain{S3: p.Results.S3},
	}
	if p.Sweep.Given() {
		spec.Trials = len(sweep.Trials(p.Sweep))
		spec.AtOnce = min(sweep.AtOnce(p.Sweep, traits(p.Provider).InTurn), spec.Trials)
	}
	for _, m := range p.Metrics {
		spec.Metrics = append(spec.Metrics, [2]string{m.Name, m.Regex})
	}
	if spec.Drain.S3 != "" {
		for _, path := range p.Results.Paths {
			spec.Drain.Paths = append(spec.Drain.Paths, RemoteCode(p.Name)+"/"+beforeRun(path))
		}
		spec.Drain.Paths = append(spec.Drain.Paths, ownDirs(p.Name))
	}
	return spec
}

// Environ turns the profile's variables into K=V. Without secrets a secret's
// value is left out, for whatever is shown.
func Environ(vars []profiles.Var, secrets bool) []string {
	var env []string
	for _, v := range vars {
		if v.Secret && !secrets {
			env = append(env, v.Name+"=…")
			continue
		}
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

func describeEnvironment(p *profiles.Profile) string {
	e := p.Environment
	if traits(p.Provider).Sealed {
		return strings.TrimSuffix("that of the image, "+e.Python, ", ")
	}
	s := e.Kind
	if e.File != "" {
		s += " from " + e.File
	}
	if e.Python != "" && environment.IsVersion(e.Python) {
		s += ", Python " + e.Python
	} else if e.Python != "" {
		s += ", " + e.Python
	}
	if len(e.Before) > 0 {
		s += "; before it: " + strings.Join(e.Before, "; ")
	}
	if len(e.After) > 0 {
		s += "; after it: " + strings.Join(e.After, "; ")
	}
	if e.Optional {
		s += "; optional: without it, what is there"
	}
	return s
}

// describeLimits lists the limits that something acts on.
func describeLimits(p *profiles.Profile) []string {
	s, l := []string{}, p.Limits
	if traits(p.Provider).Leased {
		s = append(s, "lifetime: "+units.Duration(l.Lifetime)+" after their start the machines shut themselves down",
			"idle: so they do after "+units.Duration(l.Idle)+" without a run, a login or work on a GPU")
		if l.Budget > 0 {
			s = append(s, "budget: so they do when "+units.USD(l.Budget)+" may be spent")
		}
	}
	if traits(p.Provider).Deadline {
		s = append(s, "lifetime: "+units.Duration(l.Lifetime)+" after its start the run is ended"+sooner(p.Provider))
	}
	if traits(p.Provider).Budgeted && l.Budget > 0 {
		s = append(s, "budget: so it is when "+units.USD(l.Budget)+" may be spent")
	}
	if traits(p.Provider).Budgeted && p.Sweep.Given() {
		s = append(s, "dlwb sweep: these are for all trials together")
	}
	if l.Lost > 0 && p.Nodes() > 1 {
		s = append(s, "lost: a node that is not heard of for "+units.Duration(l.Lost)+", while others are, ends the run")
	}
	if l.Stall > 0 {
		s = append(s, "stall: no output for "+units.Duration(l.Stall)+" ends the run")
	}
	return s
}

// sooner is said where a queue has limits of its own.
func sooner(provider string) string {
	if t := traits(provider); t.RanksOnly && !t.Sealed {
		return ", or before that by the limit of its queue"
	}
	return ""
}

// traits are what a provider is like.
func traits(provider string) about.Traits { return providers.Named(provider).Traits }

// idleKeys are keys that profiles may have and nothing acts on, with what does
// it instead.
var idleKeys = []struct {
	key, instead string
	acts         func(about.Traits) bool // which providers act on it
}{
	{"limits.budget", "only dlwb down ends a cluster; a local one costs nothing", func(t about.Traits) bool { return t.Leased || t.Budgeted }},
	{"limits.lifetime", "only dlwb down ends a cluster", func(t about.Traits) bool { return t.Leased || t.Deadline }},
	{"limits.idle", "only dlwb down ends a cluster", leased},
	{"results.s3", unsealed, func(t about.Traits) bool { return homeward(t) || t.KeptInS3 }},
	{"results.paths", unsealed, homeward},
	{"results.checkpoints", "they come home with results.paths at most; a volume keeps what is written to it", open},
	{"data", "nothing brings inputs there: the image or a volume has to have them", open},
	{"state", unsealed, open},
	{"environment.venv", ofImage, open},
	{"environment.conda", ofImage, open},
	{"environment.docker", ofImage, open},
	{"environment.before", ofImage, open},
	{"environment.after", ofImage, open},
	{"environment.mounts", ofImage, open},
	{"results.to", unsealed, func(t about.Traits) bool { return homeward(t) || t.KeptInS3 }},
	{"forward", "ports of the job are not reached from here", open},
}

const (
	ofImage  = "Python and its packages are those of machines.image"
	unsealed = "nothing is brought home from there; a volume keeps what is written to it"
)

func leased(t about.Traits) bool { return t.Leased }

func open(t about.Traits) bool { return !t.Sealed }

func homeward(t about.Traits) bool { return !t.Sealed || t.Kept }

// notActedOn lists what a profile asks for and does not get: a promise that
// nobody keeps must be told before anybody relies on it.
func notActedOn(p *profiles.Profile) []string {
	s := []string{}
	for _, k := range idleKeys {
		t, instead := traits(p.Provider), k.instead
		if t.RanksOnly && strings.HasPrefix(k.key, "limits.") {
			instead = "a job ends when its command does, or by the limits of its queue"
		}
		if p.Gives(k.key) && !k.acts(t) {
			s = append(s, k.key+": "+instead)
		}
	}
	return s
}

const (
	// smiLimit bounds nvidia-smi, which hangs with a driver that is wedged.
	smiLimit = 10 * time.Second
	// lookLocally bounds the look for Python on this machine.
	lookLocally = 30 * time.Second
)

// ShareOfGPUs is how many of this machine's GPUs each of so many nodes on it
// gets: an even share.
func ShareOfGPUs(ctx context.Context, nodes int) int {
	out, _, err := waits.Output(ctx, waits.Wait{On: "nvidia-smi", What: "to count this machine's GPUs", Limit: smiLimit}, nil, "nvidia-smi", "-L")
	if err != nil {
		return 0
	}
	return strings.Count(string(out), "GPU ") / max(nodes, 1)
}

// ThisMachine runs a command here, for plans of local clusters.
type ThisMachine struct{}

// Exec runs a line with sh.
func (ThisMachine) Exec(ctx context.Context, line string) (int, []byte, []byte, error) {
	out, errs, err := waits.Output(ctx, waits.Wait{On: "this machine", What: "to look for Python", Limit: lookLocally}, nil, "sh", "-c", line)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out, errs, nil
	}
	return 0, out, nil, err
}
