package workbench

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/trust"
)

// Plan is what a profile will do before it does anything.
type Plan struct {
	Profile      *profiles.Profile `json:"-"`
	trusted      trust.Profile
	tree         *remote.Tree     // of a sync that follows at once: the code, as it was seen for the plan
	Name         string           `json:"profile"`
	Path         string           `json:"path,omitempty"`
	Cluster      string           `json:"cluster"`
	Provider     string           `json:"provider"`
	Nodes        int              `json:"nodes"`
	Engine       string           `json:"engine"`
	EngineWhy    string           `json:"engine_why,omitempty"`
	WorldSize    int              `json:"world_size"`
	Environment  string           `json:"environment"`
	Code         CodePlan         `json:"code"`
	Commands     []event.RankInfo `json:"commands"`
	PricePerHour float64          `json:"price_per_hour"`
	Costs        []cloud.Cost     `json:"costs"`
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
	// Launches are what it may come to, each with its condition; there is one
	// where all is known. Engine ("auto"), WorldSize (0) and Commands (none)
	// above are left open where they differ.
	Launches []Launch `json:"launches"`
	// Open are the names in commands for what is known only at the launch.
	Open []Placeholder `json:"open"`
}

// CodePlan is what would be copied to the nodes at most.
type CodePlan struct {
	Dir      string   `json:"dir"`
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`
	Warnings []string `json:"warnings,omitempty"`
	// Held are files that look like secrets and are not sent; the first
	// thousand.
	Held []remote.HeldFile `json:"held"`
}

// OK reports whether nothing was found that stands in the way.
func (p *Plan) OK() bool {
	for _, f := range p.Findings {
		if !f.OK {
			return false
		}
	}
	return true
}

// Plan reads a profile and works out what it would do. It changes nothing, but
// asks providers and starts programs to find out: of a profile that is not
// trusted there is no plan, and the error is *trust.Untrusted.
func (w *Workbench) Plan(ctx context.Context, path string) (*Plan, error) {
	p, seen, err := w.gate.LoadSeen(ctx, path)
	if err != nil {
		return nil, err
	}
	return w.planWith(ctx, p, planning{preflight: w.preflight, seen: seen})
}

// planning is how a plan is made.
type planning struct {
	preflight func(context.Context, backend, *Plan) cloud.Preflight // asks the provider
	seen      *remote.Survey                                        // what the gate has just seen of the code; may be nil
	atOnce    bool                                                  // the sync follows at once, and reads what is sent
}

// PlanSync is Plan for a sync. Machines that a cluster has already are not
// examined: nothing but code is to come to them.
func (w *Workbench) PlanSync(ctx context.Context, path string) (*Plan, error) {
	p, seen, err := w.gate.LoadSeen(ctx, path)
	if err != nil {
		return nil, err
	}
	if profile := p.Profile(); profile != nil {
		if c, up := w.madeBy(profile.Name, profile); up {
			w.connectAhead(c)
			none := func(context.Context, backend, *Plan) cloud.Preflight { return cloud.Preflight{} }
			return w.planWith(ctx, p, planning{preflight: none, seen: seen, atOnce: true})
		}
	}
	return w.planWith(ctx, p, planning{preflight: w.preflight, seen: seen})
}

// connectAhead begins to connect to the nodes of a cluster.
func (w *Workbench) connectAhead(c store.Cluster) {
	if l, err := w.open(c); err == nil {
		for _, n := range l.nodes {
			w.background(func(context.Context) { _ = n.Connect(l.ctx) }) // whoever needs it is told
		}
	}
}

// madeBy is the cluster of a name, where that is up and idle and was made with
// a profile that is the same to the last byte.
func (w *Workbench) madeBy(cluster string, p *profiles.Profile) (store.Cluster, bool) {
	c, err := w.db.Cluster(cluster)
	return c, err == nil && c.EndedAt == nil && event.Phase(c.Phase) == event.PhaseReady && c.Provider == p.Provider &&
		c.ProfilePath == p.Path && c.ProfileSource == p.Source
}

// planTrusted is the plan of a profile that the gate has let through.
func (w *Workbench) planTrusted(ctx context.Context, t trust.Profile) (*Plan, error) {
	return w.planWith(ctx, t, planning{preflight: w.preflight})
}

// planWith makes a plan.
func (w *Workbench) planWith(ctx context.Context, t trust.Profile, how planning) (*Plan, error) {
	p := t.Profile()
	if p == nil {
		return nil, errNotLetThrough
	}
	provider, err := w.check(p)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Profile: p, trusted: t, Name: p.Name, Path: p.Path, Cluster: p.Name, Provider: p.Provider,
		Nodes: p.Machines.Count, Environment: describeEnvironment(p.Environment),
		Limits: describeLimits(p), Steps: append(provider.steps(), event.StepTrain, event.StepFetch, event.StepDown),
		Results: append([]string{}, p.Results.Paths...), Forward: append([]string{}, p.Forward...),
		NotActedOn: notActedOn(p), Costs: []cloud.Cost{},
	}
	if plan.Secrets, err = w.giveSecrets(p); err != nil {
		return nil, err
	}
	found := how.preflight(ctx, provider, plan)
	tree, err := w.codeOf(ctx, p, how)
	if err != nil {
		return nil, err
	}
	if how.atOnce {
		plan.tree = tree
	}
	plan.Code = CodePlan{Dir: p.CodeDir(), Files: tree.Files, Bytes: tree.Bytes, Warnings: tree.Warnings, Held: heldFiles(tree)}
	plan.Warnings = unsavedWarnings(p)
	return plan, w.planCommands(ctx, plan, found)
}

// codeOf is what of a profile's code would be sent.
func (w *Workbench) codeOf(ctx context.Context, p *profiles.Profile, how planning) (*remote.Tree, error) {
	rules, err := w.sent(p)
	if err != nil {
		return nil, err
	}
	rules.NamesOnly = how.atOnce
	if how.seen.Is(p.CodeDir(), rules.Exclude) {
		return how.seen.Tree(ctx, rules)
	}
	return remote.Scan(ctx, p.CodeDir(), rules)
}

// preflight asks the provider what stands in the way and what it would cost.
func (w *Workbench) preflight(ctx context.Context, provider backend, plan *Plan) cloud.Preflight {
	spec := specOf(plan.Profile)
	if c, err := w.db.Cluster(plan.Cluster); err == nil && c.EndedAt == nil {
		if d, err := w.clusterData(c); err == nil {
			spec.Have = len(d.Cluster.Nodes)
		}
	}
	found := provider.Check(ctx, spec)
	plan.Findings, plan.Offer, plan.PricePerHour = append([]cloud.Finding{}, found.Findings...), found.Offer, found.PricePerHour
	plan.Costs = append(plan.Costs, found.Costs...)
	plan.Most, plan.MostWhy = most(found, plan.Profile.Limits)
	return found
}

// Meet lets the provider of a plan ask what only a person knows, before a screen
// takes the terminal. Most providers have nothing to ask.
func (w *Workbench) Meet(ctx context.Context, plan *Plan) error {
	g, ok := w.providers[plan.Provider].(cloud.Greeter)
	if !ok {
		return nil
	}
	if err := g.Meet(ctx, specOf(plan.Profile)); err != nil {
		return &event.Fault{What: "bring up the cluster", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	return nil
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

// sent says what of the code directory is sent: the project says what is left
// out, and only the user which secrets are not.
func (w *Workbench) sent(p *profiles.Profile) (remote.Rules, error) {
	user, err := w.settings(p.Path)
	if err == nil {
		err = w.inside(p) // a link may be another one than when it was planned
	}
	return remote.Rules{Exclude: w.excluded(p), Send: user.Send, Hold: user.Hold}, err
}

// giveSecrets adds the variables that the user names to those of the profile.
func (w *Workbench) giveSecrets(p *profiles.Profile) ([]string, error) {
	user, err := w.settings(p.Path)
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

func heldFiles(tree *remote.Tree) []remote.HeldFile {
	return append([]remote.HeldFile{}, tree.Held[:min(heldMost, len(tree.Held))]...)
}

// excluded is what of the code directory is not sent.
func (w *Workbench) excluded(p *profiles.Profile) []string { return p.NotSent(w.dir) }

// check holds a profile against what this dlwb can do and what is on the disk.
func (w *Workbench) check(p *profiles.Profile) (backend, error) {
	provider, err := w.backend(p.Provider)
	if err != nil {
		return nil, profiles.Errors{p.Fault("provider", "provider "+p.Provider+" can't be used",
			"this dlwb makes clusters with: "+strings.Join(w.kinds(), ", "), "", "set provider to one of these")}
	}
	if k := p.Environment.Kind; !slices.Contains(EnvironmentKinds, k) {
		return nil, profiles.Errors{p.Fault("environment", "environment "+k+" can't be made",
			"this dlwb sets up: "+strings.Join(EnvironmentKinds, ", "), "", "set environment: system, or {venv: requirements.txt}")}
	}
	if err := w.inside(p); err != nil {
		return provider, err
	}
	return provider, p.CheckFiles()
}

// EnvironmentKinds are the kinds of environments that can be made on nodes.
var EnvironmentKinds = []string{environment.System, environment.Venv}

func (w *Workbench) kinds() []string {
	return slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(w.providers)), maps.Keys(w.jobs))))
}

// Kinds are the names of the providers that this workbench has.
func (w *Workbench) Kinds() []string { return w.kinds() }

func specOf(p *profiles.Profile) cloud.Spec {
	m := p.Machines
	spec := cloud.Spec{
		Name: p.Name, Count: m.Count, Own: p.Own(),
		Regions: m.Regions, Instance: m.Instance,
		Need: cloud.Need{GPU: m.Need.GPU, GPUs: m.Need.GPUs, Memory: m.Need.Memory, MaxPrice: m.Need.MaxPrice},
		Spot: m.Spot, Image: m.Image, Disk: m.Disk,
		Budget: p.Limits.Budget, Lifetime: p.Limits.Lifetime, Idle: p.Limits.Idle,
		Drain: cloud.Drain{S3: p.Results.S3},
	}
	if spec.Drain.S3 != "" {
		for _, path := range p.Results.Paths {
			spec.Drain.Paths = append(spec.Drain.Paths, remoteCode(p.Name)+"/"+beforeRun(path))
		}
		spec.Drain.Paths = append(spec.Drain.Paths, ownDirs(p.Name))
	}
	return spec
}

// environ turns the profile's variables into K=V. Without secrets a secret's
// value is left out, for whatever is shown.
func environ(vars []profiles.Var, secrets bool) []string {
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

func describeEnvironment(e profiles.Environment) string {
	s := e.Kind
	if e.File != "" {
		s += " from " + e.File
	}
	if e.Python != "" {
		s += ", " + e.Python
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
	if l.Stall > 0 {
		s = append(s, "stall: no output for "+units.Duration(l.Stall)+" ends the run")
	}
	return s
}

// traits are what a provider is like.
func traits(provider string) about.Traits { return providers.Named(provider).Traits }

// idleKeys are keys that profiles may have and nothing acts on, with what does
// it instead.
var idleKeys = []struct {
	key, instead string
	leased       bool // machines with a lease act on it
}{
	{"limits.budget", "only dlwb down ends a cluster; a local one costs nothing", true},
	{"limits.lifetime", "only dlwb down ends a cluster", true},
	{"limits.idle", "only dlwb down ends a cluster", true},
	{"results.s3", "results are brought to this machine", true},
}

// notActedOn lists what a profile asks for and does not get: a promise that
// nobody keeps must be told before anybody relies on it.
func notActedOn(p *profiles.Profile) []string {
	s := []string{}
	for _, k := range idleKeys {
		if p.Gives(k.key) && !(k.leased && traits(p.Provider).Leased) {
			s = append(s, k.key+": "+k.instead)
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

// shareOfGPUs is how many of this machine's GPUs each of so many nodes on it
// gets: an even share.
func shareOfGPUs(ctx context.Context, nodes int) int {
	out, _, err := waits.Output(ctx, waits.Wait{On: "nvidia-smi", What: "to count this machine's GPUs", Limit: smiLimit}, nil, "nvidia-smi", "-L")
	if err != nil {
		return 0
	}
	return strings.Count(string(out), "GPU ") / max(nodes, 1)
}

// thisMachine runs a command here, for plans of local clusters.
type thisMachine struct{}

// Exec runs a line with sh.
func (thisMachine) Exec(ctx context.Context, line string) (int, []byte, []byte, error) {
	out, errs, err := waits.Output(ctx, waits.Wait{On: "this machine", What: "to look for Python", Limit: lookLocally}, nil, "sh", "-c", line)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out, errs, nil
	}
	return 0, out, nil, err
}
