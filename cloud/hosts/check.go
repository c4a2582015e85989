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
	said     said
	findings []cloud.Finding
}

// Check reaches every host, all at once, and looks for what would make a run
// fail there: each has one line, and one more for each thing that is wrong. It
// changes nothing.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	machines, err := p.machines(spec)
	if err != nil {
		return cloud.Preflight{Findings: []cloud.Finding{wrong("hosts", err.Error(), "change machines.hosts in the profile, or the ssh configuration")}}
	}
	calls := newCaller()
	defer calls.close()
	reports := make([]report, len(machines))
	var all sync.WaitGroup
	for i, m := range machines {
		all.Go(func() { reports[i] = p.examine(ctx, calls, m, spec.Name) })
	}
	all.Wait()
	var out cloud.Preflight
	for _, r := range reports {
		out.Findings = append(out.Findings, r.findings...)
		out.GPUs = append(out.GPUs, r.ownGPUs())
	}
	out.Findings = append(out.Findings, twins(reports)...)
	return out
}

// ownGPUs is how many GPUs of a host the cluster uses.
func (r *report) ownGPUs() int {
	switch {
	case r.Option.GPUs != nil:
		return len(r.Option.GPUs)
	case r.said.one("gpus") == "":
		return cloud.UnknownGPUs
	}
	return int(r.said.number("gpus"))
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
func (p *Provider) examine(ctx context.Context, calls *caller, m machine, cluster string) report {
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
	if strings.Contains(string(c.client.ServerVersion()), "Windows") {
		r.findings = []cloud.Finding{wrong(m.Entry, "it runs Windows; a node needs Linux or macOS", "leave it out, or use sshd in its WSL")}
		return r
	}
	asked := time.Now()
	r.said, err = c.run(ctx, "look", map[string]string{"dir": m.Option.Dir, "interpreter": m.Option.Python}, c.bounds.Script)
	r.findings = r.judge(c.took, asked, time.Now(), cluster, err)
	return r
}

// judge says what an answer means. asked and answered enclose the time of the
// host's own clock.
func (r *report) judge(took time.Duration, asked, answered time.Time, cluster string, err error) []cloud.Finding {
	s, what := r.said, r.Entry
	if s.one("os") == "" {
		return []cloud.Finding{wrong(what, "it lets us in, and the shell there does not answer: "+err.Error(), r.login()+" sh -c true")}
	}
	if os := s.one("os"); os != "Linux" && os != "Darwin" {
		return []cloud.Finding{wrong(what, "it runs "+os+"; a node needs Linux or macOS", "leave it out")}
	}
	found := []cloud.Finding{fine(what, r.summary(took))}
	if f, full := r.room(); full {
		found[0] = f
	}
	if home := s.one("read_only"); home != "" {
		found[0] = wrong(what, home+" can't be written there", r.login()+" ls -ld "+home)
	}
	if dir := s.one("no_dir"); dir != "" {
		found[0] = wrong(what, dir+", where the profile wants its code, is no directory there", r.login()+" mkdir -p "+dir+", or change dir")
	}
	if text := r.ignoredText(); text != "" {
		found = append(found, warning(what, text, "if what it sets matters, give it in a Host of its own"))
	}
	if f, held := r.held(cluster); held {
		found = append(found, f)
	}
	if python := s.one("no_python"); python != "" {
		found = append(found, wrong(what, python+", which the profile gives as its Python, does not run there", "change python for this host; "+r.login()+" "+python+" -V"))
	} else if s.one("python") == "" {
		found = append(found, warning(what, "no python3 was found there", "install it, or set environment.python"))
	}
	return append(found, append(r.clock(asked, answered), r.gpus()...)...)
}

// room tells of a disk that is full: where the home directory lies, or where the
// profile wants the code.
func (r *report) room() (cloud.Finding, bool) {
	for _, at := range [][2]string{{"free", r.said.one("home")}, {"dir_free", r.Option.Dir}} {
		free, files := r.said.number(at[0])<<10, r.said.number(at[0]+"_files")
		if r.said.one(at[0]) != "" && free < minDisk {
			return wrong(r.Entry, fmt.Sprintf("its disk is full: %s are free in %s, and a run needs %s at least", units.Bytes(free), at[1], units.Bytes(minDisk)),
				r.login()+" df -h "+dfPlace(at[0], at[1])), true
		}
		if r.said.one(at[0]+"_files") != "" && files < minFiles {
			return wrong(r.Entry, fmt.Sprintf("its disk is full: only %d more files fit in %s (it has no inodes left)", files, at[1]),
				r.login()+" df -i "+dfPlace(at[0], at[1])), true
		}
	}
	return cloud.Finding{}, false
}

func dfPlace(key, dir string) string {
	if key == "free" {
		return "."
	}
	return dir
}

// ignoredText says which conditions of the ssh configuration were passed over;
// empty when there are none.
func (m machine) ignoredText() string {
	if len(m.Ignored) == 0 {
		return ""
	}
	return "the ssh configuration has conditions that dlwb does not evaluate, and what stands under them is not used: " + strings.Join(m.Ignored, ", ")
}

// summary is the line of a host that can be used.
func (r *report) summary(took time.Duration) string {
	s := r.said
	parts := []string{fmt.Sprintf("reachable in %s as %s", units.Duration(took), s.one("user")), map[string]string{"Linux": "Linux", "Darwin": "macOS"}[s.one("os")]}
	if len(r.Jumps) > 0 {
		parts[0] += " through " + r.Jumps[len(r.Jumps)-1].Alias
	}
	if python := s.one("python"); python != "" {
		parts = append(parts, "Python "+python)
	}
	if s.one("free") != "" {
		parts = append(parts, units.Bytes(s.number("free")<<10)+" free")
	}
	switch n := s.number("gpus"); {
	case s.one("gpus") == "":
		parts = append(parts, "GPUs unknown")
	case n == 0:
		parts = append(parts, "no GPU")
	case r.Option.GPUs != nil:
		parts = append(parts, fmt.Sprintf("%d of %d × %s", len(r.Option.GPUs), n, s.one("gpu")))
	default:
		parts = append(parts, fmt.Sprintf("%d × %s", n, s.one("gpu")))
	}
	return strings.Join(parts, ", ")
}

// held tells of another cluster that has the host.
func (r *report) held(cluster string) (cloud.Finding, bool) {
	holder := r.said.one("held_cluster")
	if holder == "" || holder == cluster && r.said.one("held_owner") == owner() {
		return cloud.Finding{}, false
	}
	return wrong(r.Entry, holderText(r.said), "dlwb down "+holder+" gives it back, where "+r.said.one("held_owner")+" runs it"), true
}

// holderText says who has a host, from what its lock says.
func holderText(s said) string {
	text := "cluster " + s.one("held_cluster") + " of " + s.one("held_owner") + " has it"
	if since := s.number("held_since"); since > 0 {
		text += " since " + time.Unix(since, 0).Format("2006-01-02 15:04")
	}
	return text
}

func (r *report) clock(asked, answered time.Time) []cloud.Finding {
	there := time.Unix(r.said.number("now"), 0)
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

// gpus tells of GPUs that do not answer, and of other people on them.
func (r *report) gpus() []cloud.Finding {
	if r.said.one("gpus") == "" {
		return []cloud.Finding{wrong(r.Entry, "nvidia-smi there does not answer, so its GPUs can't be used", r.login()+" nvidia-smi")}
	}
	if f, missing := r.missingGPUs(); missing {
		return []cloud.Finding{f}
	}
	var others []string
	for _, line := range r.said["gpu_user"] {
		f := append(strings.Fields(line), "-")
		if len(f) >= 4 && f[1] != r.said.one("user") && r.uses(f[3]) {
			mib, _ := strconv.ParseInt(f[2], 10, 64)
			others = append(others, fmt.Sprintf("%s (pid %s, %s)", f[1], f[0], units.Binary(mib<<20)))
		}
	}
	if len(others) == 0 {
		return nil
	}
	return []cloud.Finding{warning(r.Entry, "others work on its GPUs: "+strings.Join(others, ", "), r.login()+" nvidia-smi")}
}

// missingGPUs tells of GPUs that the profile names and the host does not have.
func (r *report) missingGPUs() (cloud.Finding, bool) {
	has := strings.Fields(r.said.one("gpu_numbers"))
	var missing []string
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
func (r *report) uses(number string) bool {
	n, err := strconv.Atoi(number)
	return err != nil || r.Option.GPUs == nil || slices.Contains(r.Option.GPUs, n)
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
	if r.addr() == b.addr() && r.User == b.User && slices.EqualFunc(r.Jumps, b.Jumps, func(x, y machine) bool { return x.addr() == y.addr() }) {
		return wrong(both, "they are the same host, "+r.addr(), "leave one of the two out"), true
	}
	id := func(r report, keys ...string) string {
		var parts []string
		for _, k := range keys {
			parts = append(parts, r.said.one(k))
		}
		return strings.Join(parts, "\n")
	}
	sameHome := r.said.one("inode") != "" && id(*r, "disk", "inode", "home") == id(b, "disk", "inode", "home")
	sameMachine := r.said.one("machine") != "" && r.said.one("machine") == b.said.one("machine")
	switch {
	case sameHome && sameMachine:
		return wrong(both, "they are two names of one machine ("+lastWord(r.said.one("machine"))+")", "leave one of the two out"), true
	case sameHome && strings.Contains(r.said.one("disk"), ":"):
		return wrong(both, "they share one home directory ("+r.said.one("disk")+"), and each node needs its own", "leave one of the two out, or log in as users with different homes"), true
	case sameMachine:
		return warning(both, "they are the same machine ("+lastWord(r.said.one("machine"))+") with two homes, and share its GPUs", ""), true
	}
	return cloud.Finding{}, false
}

func lastWord(text string) string { return text[strings.LastIndexByte(text, ' ')+1:] }

// itoa is short for what stands in many sentences.
var itoa = strconv.Itoa
