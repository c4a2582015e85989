package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/pattern"
)

// How Slurm's commands are asked: always with a format of our own.
const (
	partitionsLine = `scontrol --oneliner show partition`
	nodesLine      = `sinfo --noheader --Node --Format=NodeList:80,Partition:80,Gres:300,GresUsed:300,StateCompact:40,CPUsState:40,Memory:30,Features:600`
	configLine     = `scontrol show config`
	accountsLine   = `soon sacctmgr --noheader --parsable2 show associations user="$(id -un)" format=Account,Partition,QOS`
	qosLine        = `soon sacctmgr --noheader --parsable2 show qos format=Name,MaxWall`
	queueFormat    = `--noheader --states=all --format='%i|%T|%N|%S|%j|%r'`
)

// partition is a part of the cluster.
type partition struct {
	name      string
	isDefault bool
	up        bool
	most      time.Duration // the time limit; 0: none
	usual     time.Duration // what a job gets that asks for none; 0: not set
	maxNodes  int           // a job may have; 0: any
	minNodes  int           // it must have
	nodes     int
	accounts  []string // that may use it; nil: all
	qos       []string // likewise
}

var keyValue = pattern.New(`(?:^|\s)([A-Za-z][A-Za-z0-9/_]*)=(\S*)`)

// fields reads a line of scontrol --oneliner. A value ends at a blank; of a key
// that comes twice the first counts: what a user can choose comes late.
func fields(line string) map[string]string {
	all := map[string]string{}
	for _, m := range keyValue.FindAllStringSubmatch(line, -1) {
		if _, has := all[m[1]]; !has {
			all[m[1]] = m[2]
		}
	}
	return all
}

func partitionsOf(a answer) (all []partition) {
	for _, line := range a.lines() {
		f := fields(line)
		if f["PartitionName"] == "" {
			continue
		}
		p := partition{name: f["PartitionName"], isDefault: f["Default"] == "YES", up: f["State"] == "" || f["State"] == "UP"}
		p.most, _ = limitOf(f["MaxTime"])
		p.usual, _ = limitOf(f["DefaultTime"])
		p.maxNodes, _ = strconv.Atoi(f["MaxNodes"])
		p.minNodes, _ = strconv.Atoi(f["MinNodes"])
		p.nodes, _ = strconv.Atoi(f["TotalNodes"])
		p.accounts, p.qos = allowed(f["AllowAccounts"]), allowed(f["AllowQos"])
		all = append(all, p)
	}
	return all
}

func allowed(list string) []string {
	if list == "" || strings.EqualFold(list, "ALL") {
		return nil
	}
	return strings.Split(list, ",")
}

// machine is a node of the cluster, in one partition.
type machine struct {
	name, partition, state string
	gpus                   map[string]int // by type; "" where GRES names none
	used                   map[string]int
	cpus                   int
	memory                 int64 // MB
	features               []string
}

// able reports whether it can get jobs.
func (m machine) able() bool {
	state := strings.TrimRight(m.state, "~#!%$@^-+")
	for _, out := range []string{"down", "drain", "drng", "fail", "maint", "inval", "unk"} {
		if strings.HasPrefix(state, out) {
			return false
		}
	}
	return !strings.HasSuffix(state, "*") // it does not answer
}

// idle reports whether nothing of it is given to anybody.
func (m machine) idle() bool { return strings.TrimRight(m.state, "~#!%$@^-+") == "idle" }

// has is how many GPUs of a type it has; of any type for "".
func (m machine) has(kind string) (n int) { return countGPUs(m.gpus, kind) }

// free is how many of them nobody has.
func (m machine) free(kind string) int {
	if !m.able() {
		return 0
	}
	return max(0, countGPUs(m.gpus, kind)-countGPUs(m.used, kind))
}

func countGPUs(of map[string]int, kind string) (n int) {
	for k, count := range of {
		if kind == "" || k == kind {
			n += count
		}
	}
	return n
}

func machinesOf(a answer) (all []machine) {
	for _, line := range a.lines() {
		f := strings.Fields(line)
		if len(f) < 7 {
			continue
		}
		m := machine{name: f[0], partition: strings.TrimSuffix(f[1], "*"), gpus: gresOf(f[2]), used: gresOf(f[3]), state: f[4]}
		if parts := strings.Split(f[5], "/"); len(parts) == 4 { // allocated/idle/other/total
			m.cpus, _ = strconv.Atoi(parts[3])
		}
		m.memory, _ = strconv.ParseInt(f[6], 10, 64)
		if len(f) > 7 && f[7] != "(null)" {
			m.features = strings.Split(f[7], ",")
		}
		all = append(all, m)
	}
	return all
}

// gresOf reads the GPUs of "gpu:a100:2(S:0-1),gpu:4,shard:8".
func gresOf(text string) map[string]int {
	all := map[string]int{}
	for _, one := range strings.Split(besides(text), ",") {
		parts := strings.Split(one, ":")
		if parts[0] != "gpu" {
			continue
		}
		kind, count := "", 1
		for _, p := range parts[1:] {
			if n, err := strconv.Atoi(p); err == nil {
				count = n
			} else {
				kind = p
			}
		}
		all[kind] += count
	}
	return all
}

// besides is a text without what stands in brackets.
func besides(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// limitOf reads a time limit of Slurm's: minutes, minutes:seconds,
// hours:minutes:seconds, days-hours and so on. 0 and no error: there is none.
func limitOf(text string) (time.Duration, error) {
	switch strings.ToUpper(text) {
	case "", "UNLIMITED", "INFINITE", "NONE", "NOT_SET", "N/A", "PARTITION_LIMIT":
		return 0, nil
	}
	days, rest, withDays := strings.Cut(text, "-")
	if !withDays {
		days, rest = "0", text
	}
	units := []time.Duration{time.Minute, time.Second}
	if withDays || strings.Count(rest, ":") == 2 {
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	parts := strings.Split(rest, ":")
	wrong := fmt.Errorf("%q is no time limit: write it as 4h30m, or as 1-12:00:00", text)
	n, err := strconv.Atoi(days)
	if err != nil || n < 0 || n > 100_000 || len(parts) > len(units) {
		return 0, wrong
	}
	sum := time.Duration(n) * 24 * time.Hour
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > 100_000_000 {
			return 0, wrong
		}
		sum += time.Duration(n) * units[i]
	}
	return sum, nil
}

// wantedTime reads the time of a profile: as Slurm has it, or as Go has it.
func wantedTime(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && text != "0" {
		if d <= 0 {
			return 0, fmt.Errorf("%q is no time", text)
		}
		return d, nil
	}
	return limitOf(text)
}

// slurmTime is a time as sbatch takes it, in whole minutes.
func slurmTime(d time.Duration) string {
	minutes := int64((d + time.Minute - 1) / time.Minute)
	return fmt.Sprintf("%d-%02d:%02d:00", minutes/(24*60), minutes/60%24, minutes%60)
}

// settings reads scontrol show config.
func settings(a answer) map[string]string {
	all := map[string]string{}
	for _, line := range a.lines() {
		if key, value, is := strings.Cut(line, "="); is {
			all[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return all
}

// hides reports whether a cluster shows a user only what is his own of something:
// "jobs", "nodes".
func hides(config answer, what string) bool {
	return slices.Contains(strings.Split(settings(config)["PrivateData"], ","), what)
}

// queued is a job as squeue has it.
type queued struct {
	id, state, nodes, start, name, reason string
}

func queuedOf(a answer) (all []queued) {
	for _, line := range a.lines() {
		if f := strings.SplitN(line, "|", 6); len(f) == 6 {
			all = append(all, queued{f[0], f[1], f[2], f[3], f[4], f[5]})
		}
	}
	return all
}
