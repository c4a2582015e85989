package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/slurm/options"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/units"
)

// checkLimit bounds a check.
const checkLimit = 20 * time.Second

// cluster is what is asked of a Slurm before a job is handed in.
type cluster struct {
	partitions []partition
	machines   []machine
	config     map[string]string
	accounts   [][]string // account, partition, QOS with commas between them; nil: there is no accounting
	qos        map[string]time.Duration
	disk       string // the kind of file system of the home directory
	host       string // the machine that was asked
	asked      map[string]answer
}

// Check looks for what would make the job fail, or wait for ever, and changes
// nothing.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	own := about.Own[options.Machines](spec.Own)
	out := cloud.Preflight{GPUs: slices.Repeat([]int{own.GPUs}, max(spec.Count, 0))}
	out.Script = orderOf(cloud.Job{Run: "RUN", Replicas: spec.Count, Spec: spec}, "LIFE", "HOME", "HOME/.dlwb/jobs/RUN/agent").script()
	m, _, err := p.machine(ctx, own.Login, nil)
	if err != nil {
		out.Findings = []cloud.Finding{bad("login node", err.Error(), "ssh "+own.Login+" true; where that asks for a second factor, machines.login: ssh:"+own.Login)}
		return out
	}
	c, problem := survey(ctx, m)
	if problem != nil {
		out.Findings = []cloud.Finding{*problem}
		return out
	}
	checked := orderOf(cloud.Job{Run: "check", Replicas: spec.Count, Spec: spec}, "check", "/tmp", "")
	if part, is := partitionOf(c.partitions, own.Partition); is {
		checked = checked.endless(spec, part)
		out.Script = orderOf(cloud.Job{Run: "RUN", Replicas: spec.Count, Spec: spec}, "LIFE", "HOME", "HOME/.dlwb/jobs/RUN/agent").endless(spec, part).script()
	}
	out.Findings = c.judge(spec, own)
	if !slices.ContainsFunc(out.Findings, func(f cloud.Finding) bool { return !f.OK }) {
		out.Findings = append(out.Findings, c.home(ctx, m, checked), c.expected(ctx, m, checked))
		if spec.Image != "" {
			out.Findings = append(out.Findings, c.image(ctx, m, spec.Image))
		}
	}
	return out
}

func good(what, text string) cloud.Finding { return cloud.Finding{OK: true, What: what, Text: text} }

func bad(what, text, next string) cloud.Finding {
	return cloud.Finding{What: what, Text: text, Next: next}
}

// survey asks a Slurm for what it has.
func survey(ctx context.Context, m cloud.Machine) (*cluster, *cloud.Finding) {
	problem := func(f cloud.Finding) (*cluster, *cloud.Finding) { return nil, &f }
	all, err := ask(ctx, m, question{"commands", `for c in sbatch squeue scontrol scancel sinfo srun; do command -v $c >/dev/null || echo $c; done`},
		question{"partitions", partitionsLine}, question{"nodes", nodesLine}, question{"config", configLine}, question{"accounts", accountsLine},
		question{"qos", qosLine}, question{"disk", `cd && stat -f -c %T .; uname -n`})
	if err != nil {
		return problem(bad("login node", "it can't be asked: "+err.Error(), "does a shell there answer? ssh to it, and run sinfo; one that is reached as ssh:… needs a connection that your own ssh keeps open (docs/slurm.md)"))
	}
	if missing := all["commands"].lines(); len(missing) > 0 {
		return problem(bad("slurm", "there is no "+strings.Join(missing, ", ")+" on the PATH of a login there: this is no machine on which jobs of Slurm are handed in",
			"set machines.login to the login node of the cluster; if Slurm is a module there, load it in the login's startup file"))
	}
	if err := all["partitions"].failed(); err != nil {
		return problem(bad("slurm", "its controller does not answer: "+err.Error(), "scontrol ping; ask those who run the cluster"))
	}
	c := &cluster{partitions: partitionsOf(all["partitions"]), machines: machinesOf(all["nodes"]), config: settings(all["config"]), qos: map[string]time.Duration{}, asked: all}
	if storage := c.config["AccountingStorageType"]; !strings.HasSuffix(storage, "none") && storage != "(null)" && all["accounts"].code == 0 {
		c.accounts = [][]string{}
		for _, line := range all["accounts"].lines() {
			if f := strings.Split(line, "|"); len(f) >= 3 {
				c.accounts = append(c.accounts, f[:3])
			}
		}
		for _, line := range all["qos"].lines() {
			name, wall, _ := strings.Cut(line, "|")
			c.qos[name], _ = limitOf(wall)
		}
	}
	if lines := all["disk"].lines(); len(lines) == 2 {
		c.disk, c.host = lines[0], lines[1]
	}
	return c, nil
}

// judge looks for what of a spec this cluster can't do.
func (c *cluster) judge(spec cloud.Spec, own options.Machines) []cloud.Finding {
	part, found := c.partition(own.Partition)
	if !found.OK {
		return []cloud.Finding{found}
	}
	all := []cloud.Finding{found, c.time(spec, own, part), c.gpus(spec, own, part)}
	if own.Account != "" || own.QOS != "" {
		all = append(all, c.account(own, part)...)
	}
	if part.maxNodes > 0 && spec.Count > part.maxNodes {
		all = append(all, bad("nodes", fmt.Sprintf("%d nodes are asked for, and a job in partition %s has %d at most", spec.Count, part.name, part.maxNodes), "lower machines.count"))
	}
	if spec.Count < part.minNodes {
		all = append(all, bad("nodes", fmt.Sprintf("%d nodes are asked for, and a job in partition %s has %d at least: Slurm would take the job and never begin it", spec.Count, part.name, part.minNodes), "raise machines.count, or choose another partition"))
	}
	return all
}

// partition finds the partition of a profile.
func (c *cluster) partition(name string) (partition, cloud.Finding) {
	var names []string
	for _, p := range c.partitions {
		names = append(names, p.name)
	}
	if p, is := partitionOf(c.partitions, name); is {
		if !p.up {
			return p, bad("partition", "partition "+p.name+" is not up", "sinfo shows the others: "+strings.Join(names, ", "))
		}
		return p, good("partition", c.describe(p))
	}
	if name == "" {
		return partition{}, bad("partition", "the cluster has no default partition", "set machines.partition to one of "+strings.Join(names, ", "))
	}
	return partition{}, bad("partition", fmt.Sprintf("there is no partition %q%s", name, meant(name, names)), "set machines.partition to one of "+strings.Join(names, ", "))
}

// partitionOf is the partition of a name; of none, the default one.
func partitionOf(all []partition, name string) (partition, bool) {
	i := slices.IndexFunc(all, func(p partition) bool { return p.name == name || name == "" && p.isDefault })
	if i < 0 {
		return partition{}, false
	}
	return all[i], true
}

func meant(word string, words []string) string {
	if near := nearword.Nearest(word, words); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
}

// describe is a partition in a line: its nodes, its GPUs, its limit.
func (c *cluster) describe(p partition) string {
	able, gpus, free := 0, 0, 0
	for _, m := range c.in(p) {
		if m.able() {
			able++
		}
		gpus, free = gpus+m.has(""), free+m.free("")
	}
	text := fmt.Sprintf("%s: %d of %s up", p.name, able, units.Count(len(c.in(p)), "node"))
	if gpus > 0 {
		text += fmt.Sprintf(", %d of %s free", free, units.Count(gpus, "GPU"))
	}
	if p.most > 0 {
		text += ", at most " + units.Duration(p.most)
	}
	return text
}

func (c *cluster) in(p partition) (all []machine) {
	for _, m := range c.machines {
		if m.partition == p.name {
			all = append(all, m)
		}
	}
	return all
}

// time holds the time limit against that of the partition and of the QOS: Slurm
// itself takes such a job, and lets it wait for ever.
func (c *cluster) time(spec cloud.Spec, own options.Machines, p partition) cloud.Finding {
	wanted, key, err := timeOf(spec)
	if err != nil {
		return bad("time", "machines.time: "+err.Error(), "write it as 4h30m, or as sbatch has it")
	}
	switch {
	case p.most > 0 && wanted > p.most:
		return bad("time", fmt.Sprintf("%s is %s, and partition %s gives %s at most: Slurm would take the job and never begin it",
			key, units.Duration(wanted), p.name, units.Duration(p.most)), "lower it, or choose another partition")
	case own.QOS != "" && c.qos[own.QOS] > 0 && wanted > c.qos[own.QOS]:
		return bad("time", fmt.Sprintf("%s is %s, and the QOS %s gives %s at most: Slurm would take the job and never begin it",
			key, units.Duration(wanted), own.QOS, units.Duration(c.qos[own.QOS])), "lower it, or choose another QOS")
	case wanted > 0:
		return good("time", "Slurm ends the job after "+units.Duration(wanted)+", as "+key+" has it")
	case p.usual > 0:
		return good("time", "neither machines.time nor limits.lifetime is given: Slurm ends the job after "+units.Duration(p.usual)+", as partition "+p.name+" has it")
	case p.most > 0:
		return good("time", "Slurm ends the job after "+units.Duration(p.most)+", the limit of partition "+p.name)
	}
	if spec.Lifetime == 0 {
		return cloud.Warning("time", "warning: nothing ends the job by itself: partition "+p.name+" has no limit", "set machines.time")
	}
	return good("time", "Slurm ends the job after "+units.Duration(spec.Lifetime)+", the lifetime that every profile has: partition "+p.name+" has no limit of its own")
}

// gpus looks whether nodes of the partition have the GPUs, and the rest, that each
// node is to have.
func (c *cluster) gpus(spec cloud.Spec, own options.Machines, p partition) cloud.Finding {
	if len(c.in(p)) == 0 && p.nodes > 0 {
		return cloud.Unchecked("nodes", "this cluster does not show its nodes (PrivateData): whether they have what each node is to have is not known", "")
	}
	fit, most := 0, 0
	kinds := map[string]bool{}
	for _, m := range c.in(p) {
		for kind := range m.gpus {
			kinds[kind] = true
		}
		most = max(most, m.has(own.GPUType))
		if m.has(own.GPUType) >= own.GPUs && m.cpus >= own.CPUs && m.memory >= megabytes(own.Memory) {
			fit++
		}
	}
	what := "GPU"
	if own.GPUType != "" {
		what = own.GPUType
	}
	switch {
	case own.GPUs > 0 && own.GPUType != "" && !kinds[own.GPUType]:
		names := keys(kinds)
		return bad("gpus", fmt.Sprintf("no node of partition %s has a GPU of type %q%s", p.name, own.GPUType, meant(own.GPUType, names)), "its types: "+orNone(names))
	case own.GPUs > most:
		return bad("gpus", fmt.Sprintf("%d × %s are asked for on each node, and no node of partition %s has more than %d", own.GPUs, what, p.name, most), "lower machines.gpus, and raise machines.count")
	case fit < spec.Count:
		return bad("nodes", fmt.Sprintf("%s of partition %s have what each node is to have, and %d are asked for: Slurm would never begin the job", units.Count(fit, "node"), p.name, spec.Count), "lower machines.count, machines.cpus or machines.mem")
	}
	return good("nodes", fmt.Sprintf("%s of %s have what each node is to have", units.Count(fit, "node"), p.name))
}

func keys[V any](of map[string]V) (names []string) {
	for name := range of {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "it names none; leave machines.gpu_type out"
	}
	return strings.Join(names, ", ")
}

// megabytes reads a memory of sbatch's; 0 where it is none.
func megabytes(text string) int64 {
	scale := map[byte]float64{'K': 1.0 / 1024, 'M': 1, 'G': 1024, 'T': 1024 * 1024}
	number, factor := text, 1.0
	if text == "" {
		return 0
	}
	if f, is := scale[strings.ToUpper(text)[len(text)-1]]; is {
		number, factor = text[:len(text)-1], f
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return int64(n * factor)
}

// account looks whether the user may use the account and the QOS.
func (c *cluster) account(own options.Machines, p partition) (all []cloud.Finding) {
	if c.accounts == nil {
		return []cloud.Finding{cloud.Unchecked("account", "this Slurm keeps no accounts: machines.account and machines.qos mean nothing here", "")}
	}
	accounts, qos := map[string]bool{}, map[string]bool{}
	for _, row := range c.accounts {
		if row[1] != "" && row[1] != p.name {
			continue
		}
		accounts[row[0]] = true
		if own.Account == "" || row[0] == own.Account {
			for _, name := range strings.Split(row[2], ",") {
				qos[name] = true
			}
		}
	}
	if own.Account != "" {
		all = append(all, may("account", "machines.account", own.Account, keys(accounts), p.accounts, p.name))
		if !accounts[own.Account] {
			return all
		}
	}
	if own.QOS != "" {
		names := keys(qos)
		if _, exists := c.qos[own.QOS]; len(c.qos) > 0 && !exists {
			var known []string
			for name := range c.qos {
				known = append(known, name)
			}
			return append(all, bad("qos", fmt.Sprintf("there is no QOS %q%s", own.QOS, meant(own.QOS, known)), "yours: "+strings.Join(names, ", ")))
		}
		all = append(all, may("qos", "machines.qos", own.QOS, names, p.qos, p.name))
	}
	return all
}

// may says whether a word is among those that a user has, and that a partition
// takes.
func may(what, key, word string, have, taken []string, part string) cloud.Finding {
	name := map[string]string{"qos": "QOS"}[what]
	if name == "" {
		name = what
	}
	switch {
	case !slices.Contains(have, word):
		return bad(what, fmt.Sprintf("you have no %s %q on this cluster%s", name, word, meant(word, have)), "set "+key+" to one of yours: "+strings.Join(have, ", "))
	case taken != nil && !slices.Contains(taken, word):
		return bad(what, fmt.Sprintf("partition %s does not take the %s %q", part, name, word), "it takes "+strings.Join(taken, ", "))
	}
	return good(what, name+" "+word)
}

// shared are file systems that many machines have at once, as stat calls them.
var shared = []string{"nfs", "lustre", "gpfs", "ceph", "fuse", "panfs", "afs", "cifs", "smb", "beegfs", "ocfs", "gfs", "pvfs", "orangefs", "wekafs", "9p", "acfs", "v9fs"}

// homeProbe is how long a node is waited for that is to look for a file.
const homeProbe = 4 * time.Second

// home finds out whether the nodes see the home directory. Where its file system
// is one of a network they do; else a node is asked, if one is free.
func (c *cluster) home(ctx context.Context, m cloud.Machine, o order) cloud.Finding {
	for _, kind := range shared {
		if strings.HasPrefix(c.disk, kind) {
			return good("home", "the home directory is on "+c.disk)
		}
	}
	next := "keep the home directory, or a link ~/dlwb and ~/.dlwb, on a file system that the nodes have too"
	var requests []string
	for _, r := range o.requests() {
		for _, keep := range []string{"--partition=", "--account=", "--qos=", "--reservation="} {
			if strings.HasPrefix(r, keep) {
				requests = append(requests, r)
			}
		}
	}
	a, err := askOne(ctx, m, fmt.Sprintf(`cd && f=.dlwb-shared-$$ && : >"$f" && { timeout %d srun --quiet `+plain+` --immediate=%d --nodes=1 --ntasks=1 --time=1 --job-name=dlwb-check --chdir=/ %s `+
		`sh -c 'if [ -e "$1" ]; then echo dlwb-yes; else echo dlwb-no "$(uname -n)"; fi' sh "$(pwd)/$f"; c=$?; rm -f "$f"; [ $c = 0 ]; }`,
		int(homeProbe.Seconds())+3, int(homeProbe.Seconds()), words(requests...)))
	if err != nil {
		a.out = ""
	}
	for _, line := range a.lines() { // a prolog of the site may print more
		if node, no := strings.CutPrefix(line, "dlwb-no "); no {
			return bad("home", fmt.Sprintf("the home directory is not shared: node %s does not see the one of %s", node, c.host), next)
		}
		if line == "dlwb-yes" {
			return good("home", "the nodes see the home directory of the login node")
		}
	}
	return cloud.Unchecked("home", fmt.Sprintf("the home directory is on %s, and no node was free to say whether it sees it", orUnknown(c.disk)), next)
}

func orUnknown(text string) string {
	if text == "" {
		return "a file system that is not known"
	}
	return text
}

// stampForm is how Slurm writes a time.
const stampForm = "2006-01-02T15:04:05"

// testOnly is the line that asks Slurm when a job would begin.
func testOnly(o order) string {
	return `printf '#!/bin/sh\ntrue\n' | sbatch --test-only --output=/dev/null ` + words(o.requests()...)
}

// startOf is when a job would begin, of the answer to that; empty: it does not say.
func startOf(a answer) string {
	_, when, _ := strings.Cut(said(a.err+a.out), "to start at ")
	when, _, _ = strings.Cut(when, " ")
	return when
}

// expected asks Slurm when the job would begin. What it refuses it says.
func (c *cluster) expected(ctx context.Context, m cloud.Machine, o order) cloud.Finding {
	a, err := askOne(ctx, m, testOnly(o))
	if err != nil {
		return cloud.Unchecked("queue", "when the job would begin is not known: "+err.Error(), "")
	}
	text := said(a.err + a.out)
	if a.code != 0 {
		next := "sbatch --test-only " + strings.Join(o.requests(), " ")
		if part, _ := partitionOf(c.partitions, o.Partition); o.Account == "" && strings.Contains(strings.ToLower(text), "account") {
			have, _ := c.rights(part)
			next = "set machines.account to one of yours: " + cmp.Or(strings.Join(have, ", "), "those who run the cluster know it")
		}
		return bad("queue", "Slurm would not take the job: "+strings.TrimPrefix(text, "allocation failure: "), next)
	}
	when := startOf(a)
	if when == "" {
		return cloud.Unchecked("queue", "Slurm does not say when the job would begin: "+text, "")
	}
	return good("queue", "Slurm expects the job to begin at "+strings.Replace(when, "T", " ", 1)+" of its own clock, as far as it can tell now")
}
