package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/agentbin"
	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/units"
)

const (
	// minDisk is what has to be free below the home directory.
	minDisk = 1 << 30
	// minFiles is how many files must still fit there.
	minFiles = 2000
	// mostSkew is how far a host's clock may be off without a word.
	mostSkew = 5 * time.Second
)

// report is what was found out about one host.
type report struct {
	machine
	// facts are what the host says of itself; those of one that was not asked
	// have no system.
	facts    hostclaim.Facts
	claim    hostclaim.Claim
	findings []cloud.Finding
	asked    bool // the line of the spec, instead of which Python there is
}

// Check reaches every host, all at once, and looks for what would make a run
// fail there: each has one line, and one more for each thing that is wrong. It
// changes nothing.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	machines, err := p.machines(spec)
	if err != nil {
		return cloud.Preflight{Findings: []cloud.Finding{wrong("hosts", err.Error(), "change machines.hosts in the profile, or the ssh configuration")}}
	}
	calls := p.holding(ctx, spec)
	defer calls.close()
	reports := make([]report, len(machines))
	var all sync.WaitGroup
	for i, m := range machines {
		all.Go(func() { reports[i] = p.examine(ctx, calls, m, spec) })
	}
	all.Wait()
	var out cloud.Preflight
	for i, r := range reports {
		out.Findings = append(out.Findings, r.findings...)
		out.GPUs = append(out.GPUs, r.ownGPUs())
		if r.asked && r.facts.OS != "" {
			out.Answers = append(out.Answers, cloud.Answer{Node: i, Name: r.Entry, Python: r.Option.Python, Modules: r.Modules, Printed: r.facts.Said})
		}
	}
	out.Findings = append(append(out.Findings, twins(reports)...), oneHome(reports)...)
	return out
}

// ownGPUs is how many GPUs of a host the cluster uses.
func (r *report) ownGPUs() int {
	switch {
	case r.Option.GPUs != nil:
		return len(r.Option.GPUs)
	case r.facts.OS == "" || r.facts.Silent:
		return cloud.UnknownGPUs
	}
	return len(r.facts.GPUs)
}

// machines resolves the hosts of a spec.
func (p *Provider) machines(spec cloud.Spec) ([]machine, error) {
	r, err := p.resolver()
	if err != nil {
		return nil, err
	}
	return r.spec(spec)
}

func fine(what, text string) cloud.Finding { return cloud.Finding{OK: true, What: what, Text: text} }

// warning stands in nobody's way.
func warning(what, text, next string) cloud.Finding {
	return cloud.Warning(what, "warning: "+text, next)
}

func wrong(what, text, next string) cloud.Finding {
	return cloud.Finding{What: what, Text: text, Next: next}
}

// examine looks at one host.
func (p *Provider) examine(ctx context.Context, calls *caller, m machine, spec cloud.Spec) report {
	r := report{machine: m}
	c, err := calls.call(ctx, m)
	var problem *Problem
	switch {
	case errors.As(err, &problem) && problem.Fingerprint != "" && p.options.Confirm != nil:
		r.findings = []cloud.Finding{warning(m.Entry, problem.Why+"; you will be asked whether that is right", problem.Next)}
		return r
	case errors.As(err, &problem):
		r.findings = []cloud.Finding{wrong(m.Entry, problem.Why, problem.Next)}
		return r
	case err != nil:
		r.findings = []cloud.Finding{wrong(m.Entry, err.Error(), m.login())}
		return r
	}
	if c.client != nil && strings.Contains(string(c.client.ServerVersion()), "Windows") {
		r.findings = []cloud.Finding{wrong(m.Entry, "it runs Windows; a node needs Linux", "leave it out, or use sshd in its WSL")}
		return r
	}
	asked := time.Now()
	look := hostclaim.Request{Do: hostclaim.Look, Dir: m.Option.Dir, Python: m.Option.Python}
	if spec.Ask != nil {
		look.Line = spec.Ask(m.Option.Python, m.Modules)
	}
	r.asked = look.Line != ""
	answer, err := c.ask(ctx, look, c.bounds.Script)
	if r.facts, r.claim = answer.Facts, answer.Claim; r.facts.OS == "" && err == nil {
		err = errors.New("its answer says nothing")
	}
	r.findings = r.judge(c.took, asked, time.Now(), spec.Name, err)
	return r
}

// judge says what an answer means. asked and answered enclose the time of the
// host's own clock.
func (r *report) judge(took time.Duration, asked, answered time.Time, cluster string, err error) []cloud.Finding {
	f, what := r.facts, r.Entry
	if f.OS == "" {
		return []cloud.Finding{r.unfit(err)}
	}
	found := []cloud.Finding{fine(what, r.summary(took))}
	if f, full := r.room(); full {
		found[0] = f
	}
	if text := r.ignoredText(); text != "" {
		found = append(found, warning(what, text, "if what it sets matters, give it in a Host of its own"))
	}
	if text := r.unheededText(); text != "" {
		found = append(found, warning(what, text, "if that matters, "+ownssh.Prefix+r.Alias+" in machines.hosts leaves all to your own ssh"))
	}
	if f, held := r.held(cluster); held {
		found = append(found, f)
	}
	switch {
	case r.asked: // whoever asked knows what the answer means
	case f.NoPython:
		found = append(found, wrong(what, r.Option.Python+", which the profile gives as its Python, does not run there", "change python for this host; "+r.login()+" "+r.Option.Python+" -V"))
	case f.Python == "":
		found = append(found, warning(what, "no python3 was found there", "install it, or set environment.python"))
	}
	return append(found, append(r.clock(asked, answered), r.gpus(cluster)...)...)
}

// unfit says why a host that lets us in told nothing of itself.
func (r *report) unfit(err error) cloud.Finding {
	why, next := unfitText(r.machine, err)
	if why == "" {
		why, next = "it lets us in, and the shell there does not answer: "+err.Error(), r.login()+" true"
	}
	return wrong(r.Entry, why, next)
}

// unfitText says why no program of dlwb's can run on a machine; empty: that is
// not what went wrong.
func unfitText(m machine, err error) (why, next string) {
	var missing *agentbin.MissingError
	var noPlace *noPlaceError
	switch {
	case errors.As(err, &missing) && missing.Supported():
		return missing.Error(), "make build"
	case errors.As(err, &missing):
		return fmt.Sprintf("it runs %s on %s; a node needs Linux on x86-64 or arm64", strings.Replace(missing.OS, "linux", "Linux", 1), missing.Arch), "leave it out"
	case errors.As(err, &noPlace) && noPlace.limit != "":
		return noPlace.Error(), "have that limit raised for logins of programs, or name another host: " + m.login() + " ulimit -a"
	case errors.As(err, &noPlace):
		return noPlace.Error(), "free some space in one of them, or have one mounted without noexec: " + m.login() + " df -h /tmp"
	}
	return "", ""
}

// room tells of a place that can't be written or is full: the home directory, or
// where the profile wants the code.
func (r *report) room() (cloud.Finding, bool) {
	for _, at := range []struct {
		hostclaim.Room
		dir, df string
		given   bool
	}{{r.facts.HomeRoom, r.facts.Home, ".", true}, {r.facts.DirRoom, r.Option.Dir, r.Option.Dir, r.Option.Dir != ""}} {
		switch {
		case !at.given:
		case at.Problem == hostclaim.NoDirectory && at.df == at.dir:
			return wrong(r.Entry, at.dir+", where the profile wants its code, is no directory there", r.login()+" mkdir -p "+at.dir+", or change dir"), true
		case at.Problem != "":
			return wrong(r.Entry, at.dir+" "+at.Problem, r.login()+" ls -ld "+at.dir), true
		case at.Known && at.Bytes < minDisk:
			return wrong(r.Entry, fmt.Sprintf("its disk is full: %s are free in %s, and a run needs %s at least", units.Bytes(at.Bytes), at.dir, units.Bytes(minDisk)),
				r.login()+" df -h "+at.df), true
		case at.Known && at.Files >= 0 && at.Files < minFiles:
			return wrong(r.Entry, fmt.Sprintf("its disk is full: only %d more files fit in %s (it has no inodes left)", at.Files, at.dir),
				r.login()+" df -i "+at.df), true
		}
	}
	return cloud.Finding{}, false
}

// ignoredText says which conditions of the ssh configuration were passed over;
// empty when there are none.
func (m machine) ignoredText() string {
	if len(m.Ignored) == 0 {
		return ""
	}
	return "the ssh configuration has conditions that dlwb does not evaluate, and what stands under them, or comes of them, is not used: " + strings.Join(m.Ignored, ", ")
}

// summary is the line of a host that can be used.
func (r *report) summary(took time.Duration) string {
	f := r.facts
	parts := []string{fmt.Sprintf("reachable in %s as %s", units.Duration(took), f.User), systemName(f.OS)}
	switch {
	case len(r.Jumps) > 0:
		parts[0] += " through " + r.Jumps[len(r.Jumps)-1].Alias
	case r.Own:
		parts[0] += " by your own ssh"
	case r.Command != "":
		parts[0] += " by " + commandName
	}
	if f.Python != "" {
		parts = append(parts, "Python "+f.Python)
	}
	if f.HomeRoom.Known {
		parts = append(parts, units.Bytes(f.HomeRoom.Bytes)+" free")
	}
	switch n := len(f.GPUs); {
	case f.Silent:
		parts = append(parts, "GPUs unknown")
	case n == 0:
		parts = append(parts, "no GPU")
	case r.Option.GPUs != nil:
		parts = append(parts, fmt.Sprintf("%d of %d × %s", len(r.Option.GPUs), n, f.GPUs[0].Name))
	default:
		parts = append(parts, fmt.Sprintf("%d × %s", n, f.GPUs[0].Name))
	}
	return strings.Join(parts, ", ")
}

// systemName is the system of a host, with the processor where that is not the
// usual one.
func systemName(system string) string {
	name, processor, _ := strings.Cut(system, "/")
	name = strings.Replace(name, "linux", "Linux", 1)
	if processor != "" && processor != "amd64" {
		name += " on " + processor
	}
	return name
}

// held tells of another cluster that has the host.
func (r *report) held(cluster string) (cloud.Finding, bool) {
	c := r.claim
	if !c.Held() || c.Cluster == cluster && c.Owner == owner() {
		return cloud.Finding{}, false
	}
	return wrong(r.Entry, c.String(), "dlwb down "+c.Cluster+" gives it back, where "+c.Owner+" runs it"), true
}

func (r *report) clock(asked, answered time.Time) []cloud.Finding {
	there := time.Unix(r.facts.Now, 0)
	off := time.Duration(0)
	if d := asked.Sub(there); d > mostSkew+time.Second {
		off = -d
	} else if d := there.Sub(answered); d > mostSkew {
		off = d
	}
	if off == 0 {
		return nil
	}
	side := "ahead of"
	if off < 0 {
		side, off = "behind", -off
	}
	return []cloud.Finding{warning(r.Entry, fmt.Sprintf("its clock is %s %s this machine's", units.Clock(off), side), "set the time there: timedatectl set-ntp true")}
}

// gpus tells of GPUs that do not answer, and of who works on them already: what
// runs there takes memory and time from a run, whoever started it.
func (r *report) gpus(cluster string) []cloud.Finding {
	if r.facts.Silent {
		return []cloud.Finding{wrong(r.Entry, "nvidia-smi there does not answer, so its GPUs can't be used", r.login()+" nvidia-smi")}
	}
	if f, missing := r.missingGPUs(); missing {
		return []cloud.Finding{f}
	}
	var others, own []string
	for _, u := range r.facts.Users {
		switch {
		case !r.uses(u.Number):
		case u.User == r.facts.User:
			own = append(own, fmt.Sprintf("pid %d (%s)", u.PID, units.Binary(u.MiB<<20)))
		default:
			others = append(others, fmt.Sprintf("%s (pid %d, %s)", u.User, u.PID, units.Binary(u.MiB<<20)))
		}
	}
	look := r.login() + " nvidia-smi"
	var found []cloud.Finding
	if len(others) > 0 {
		found = append(found, warning(r.Entry, "others work on its GPUs: "+strings.Join(others, ", "), look))
	}
	if len(own) > 0 {
		text := "processes of your own user " + r.facts.User + " work on its GPUs: " + strings.Join(own, ", ")
		if r.claim.Held() && r.claim.Cluster == cluster {
			text += "; a run of this cluster may be among them"
		}
		found = append(found, warning(r.Entry, text, look))
	}
	return found
}

// missingGPUs tells of GPUs that the profile names and the host does not have.
func (r *report) missingGPUs() (cloud.Finding, bool) {
	var has, missing []string
	for _, g := range r.facts.GPUs {
		has = append(has, itoa(g.Number))
	}
	for _, n := range r.Option.GPUs {
		if !slices.Contains(has, itoa(n)) {
			missing = append(missing, itoa(n))
		}
	}
	if missing == nil {
		return cloud.Finding{}, false
	}
	what := "it has no GPU"
	if len(has) > 0 {
		what = "its GPUs are " + strings.Join(has, ", ")
	}
	return wrong(r.Entry, "the profile names GPU "+strings.Join(missing, ", ")+", and "+what, "change gpus for this host; "+r.login()+" nvidia-smi -L"), true
}

// uses reports whether a run would use the GPU of a number; it may where the
// number is not known.
func (r *report) uses(number int) bool {
	return number < 0 || r.Option.GPUs == nil || slices.Contains(r.Option.GPUs, number)
}

// twins finds hosts that are one: the same address twice, two names of one
// machine, or one home directory on several.
func twins(reports []report) []cloud.Finding {
	var found []cloud.Finding
	for i, a := range reports {
		for _, b := range reports[:i] {
			if f, is := a.twin(b); is {
				found = append(found, f)
			}
		}
	}
	return found
}

func (r *report) twin(b report) (cloud.Finding, bool) {
	both := b.Entry + " and " + r.Entry
	if r.User == b.User && r.sameWay(b.machine) {
		return wrong(both, "they are the same host, "+r.addr(), "leave one of the two out"), true
	}
	f, g := r.facts, b.facts
	sameHome := f.Inode != 0 && f.Disk == g.Disk && f.Inode == g.Inode && f.Home == g.Home
	sameMachine := f.Machine != "" && f.Machine == g.Machine
	switch {
	case sameHome && sameMachine:
		return wrong(both, "they are two names of one machine ("+f.Name+")", "leave one of the two out"), true
	case sameMachine:
		return warning(both, "they are the same machine ("+f.Name+") with two homes, and share its GPUs", ""), true
	}
	return cloud.Finding{}, false
}

// oneHome tells which hosts seem to have one home directory on the network: that is no
// fault. Whether they have they find out by trying, when they are taken.
func oneHome(reports []report) (found []cloud.Finding) {
	type home struct {
		disk, path string
		inode      uint64
	}
	groups, order := map[home][]string{}, []home{}
	for _, r := range reports {
		at := home{r.facts.Disk, r.facts.Home, r.facts.Inode}
		if !strings.Contains(at.disk, ":") {
			continue
		}
		if groups[at] = append(groups[at], r.Entry); len(groups[at]) == 2 {
			order = append(order, at)
		}
	}
	for _, at := range order {
		found = append(found, fine(someNames(groups[at]), "they seem to share one home directory ("+at.disk+"): code and environment come there once"))
	}
	return found
}

// itoa is short for what stands in many sentences.
var itoa = strconv.Itoa
