//go:build unix && !linux

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
)

// psFields are asked of ps; lstart is five words.
const psFields = "pid=,ppid=,state=,rss=,time=,lstart=,comm="

// processes reads the whole process table.
func processes() ([]process, error) {
	return ps("-ax", "-o", psFields)
}

// lookup reads the entry of one process.
func lookup(pid int) (process, error) {
	all, err := ps("-o", psFields, "-p", strconv.Itoa(pid))
	if err != nil || len(all) == 0 {
		return process{}, fmt.Errorf("process %d: %w", pid, os.ErrNotExist)
	}
	return all[0], nil
}

// lookLimit bounds a program that only looks.
const lookLimit = 10 * time.Second

// output runs a program that only looks, and gives what it says.
func output(name string, args ...string) ([]byte, error) {
	out, _, err := waits.Output(context.Background(), waits.Wait{On: name, What: "to look at this machine", Limit: lookLimit},
		func(c *exec.Cmd) { c.Env = append(os.Environ(), "LC_ALL=C") }, name, args...)
	return out, err
}

// ps runs ps(1), which is all that systems without /proc have in common.
func ps(args ...string) ([]process, error) {
	out, err := output("ps", args...)
	if err != nil {
		return nil, fmt.Errorf("look at the process table with ps: %w", err)
	}
	var all []process
	for line := range strings.Lines(string(out)) {
		if p, ok := parsePS(line); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// parsePS reads one line of ps with psFields.
func parsePS(line string) (process, bool) {
	f := strings.Fields(line)
	if len(f) < 11 {
		return process{}, false
	}
	pid, err := strconv.Atoi(f[0])
	ppid, err2 := strconv.Atoi(f[1])
	if err != nil || err2 != nil {
		return process{}, false
	}
	rss, _ := strconv.ParseInt(f[3], 10, 64)
	return process{
		pid: pid, ppid: ppid, dead: strings.HasPrefix(f[2], "Z"), rss: rss << 10,
		cpu: parseCPU(f[4]), start: strings.Join(f[5:10], " "), name: strings.Join(f[10:], " "),
	}, true
}

// parseCPU reads "[[dd-]hh:]mm:ss[.ff]".
func parseCPU(s string) time.Duration {
	days, clock, ok := strings.Cut(s, "-")
	if !ok {
		days, clock = "0", s
	}
	d, _ := strconv.ParseFloat(days, 64)
	total := d * 24
	parts := strings.Split(clock, ":")
	for len(parts) < 3 {
		parts = append([]string{"0"}, parts...)
	}
	for i, unit := range []float64{1, 60, 60} {
		v, _ := strconv.ParseFloat(parts[i], 64)
		total = total*unit + v
	}
	return time.Duration(total * float64(time.Second))
}

// carriers tells which processes carry the cookie of a cluster. The environment
// follows the command in what ps -E prints.
func carriers(id string) func(pid int) bool {
	out, _ := output("ps", "-axEww", "-o", "pid=,command=")
	found := map[int]bool{}
	for line := range strings.Lines(string(out)) {
		pid, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(pid); err == nil && strings.Contains(rest+" ", " "+cookieName+"="+id+" ") {
			found[n] = true
		}
	}
	return func(pid int) bool { return found[pid] }
}

// variable is an environment variable that a process was started with.
func variable(pid int, name string) string {
	out, _ := output("ps", "-Eww", "-o", "command=", "-p", strconv.Itoa(pid))
	_, rest, ok := strings.Cut(" "+string(out), " "+name+"=")
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return value
}

// mark does nothing: there is no inherited mark that others could read.
func mark(string) error { return nil }

// adoptOrphans does nothing: orphans go to launchd or init and are found by
// their cookie.
func adoptOrphans() error { return nil }

// runningOn finds what runs on a node, by cookie: orphans are not adopted.
func runningOn(pid int, id string, index int) finder {
	return func() ([]process, error) {
		all, err := membersOf(id)()
		var mine []process
		for _, p := range all {
			if p.pid != pid && variable(p.pid, "DLWB_NODE") == strconv.Itoa(index) {
				mine = append(mine, p)
			}
		}
		return mine, err
	}
}

// dropInherited does nothing: the runtime's own descriptors can't be told from
// others here.
func dropInherited(int) {}

// mountsBelow lists the mount points at and in a directory.
func mountsBelow(dir string) ([]string, error) {
	out, err := output("mount")
	if err != nil {
		return nil, fmt.Errorf("look for mounts in %s: %w", dir, err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		_, rest, _ := strings.Cut(line, " on ")
		at, _, _ := strings.Cut(rest, " (")
		if strings.HasPrefix(at+"/", dir+"/") {
			found = append(found, at)
		}
	}
	return found, nil
}

// pollable gives back the master side of a pty as it is.
func pollable(master *os.File) (*os.File, error) { return master, nil }
