//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

const (
	// maxNodes is a limit of sense, not of the program: the nodes share one
	// machine.
	maxNodes = 32
	maxGPUs  = 16
	// minDisk is what a cluster with a small run needs.
	minDisk = 200 << 20
)

// validate checks the numbers of a spec.
func validate(spec cloud.Spec) error {
	switch {
	case spec.Count < 1 || spec.Count > maxNodes:
		return fmt.Errorf("cluster %s: %d nodes were asked for; a local cluster has 1 to %d", spec.Name, spec.Count, maxNodes)
	case simulated(spec) < 0 || simulated(spec) > maxGPUs:
		return fmt.Errorf("cluster %s: %d simulated GPUs were asked for; a node has 0 to %d", spec.Name, simulated(spec), maxGPUs)
	}
	return nil
}

// Check looks for what would make Up fail: the numbers, the disk, the loopback
// interface, a shell. It changes nothing.
func (p *Provider) Check(ctx context.Context, spec cloud.Spec) cloud.Preflight {
	out := cloud.Preflight{Findings: []cloud.Finding{
		p.checkName(spec), p.checkDisk(), checkLoopback(), checkShell(), p.checkBinary(), checkGPU(ctx, spec),
	}}
	if n := simulated(spec); n > 0 {
		out.GPUs = slices.Repeat([]int{n}, max(spec.Count, 0))
	}
	return out
}

func found(what, text string) cloud.Finding {
	return cloud.Finding{OK: true, What: what, Text: text}
}

func missing(what, text, next string) cloud.Finding {
	return cloud.Finding{What: what, Text: text, Next: next}
}

func (p *Provider) checkName(spec cloud.Spec) cloud.Finding {
	const what = "cluster"
	dir, err := p.clusterDir(spec.Name)
	if err == nil {
		err = validate(spec)
	}
	if err != nil {
		return missing(what, err.Error(), "change name, machines.count or machines.simulate_gpus in the profile")
	}
	if !usableInPath(dir) {
		return missing(what, "the directory "+dir+" can't stand in PATH", "set DLWB_HOME to a directory without a colon or a line break in its path")
	}
	in, err := readIntent(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found(what, nodesHere(spec.Count))
	case err != nil:
		return missing(what, err.Error(), "dlwb down "+spec.Name)
	case in.Count != spec.Count || in.SimulateGPUs != simulated(spec):
		return missing(what, in.unlike(spec), "dlwb down "+spec.Name+" removes it; or give this profile another name")
	}
	return found(what, spec.Name+" exists; it is used again")
}

func (p *Provider) checkDisk() cloud.Finding {
	const what = "disk"
	dir := p.dir
	for { // the state directory may not exist yet
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return missing(what, fmt.Sprintf("look at the free space of %s: %v", dir, err), "df -h "+dir)
		}
		free := uint64(st.Bavail) * uint64(st.Bsize) //nolint:unconvert // the types differ between systems
		text := units.Bytes(int64(free)) + " free in " + dir
		if free < minDisk {
			return missing(what, text+", and a cluster needs "+units.Bytes(minDisk), "df -h "+dir)
		}
		if unix.Access(dir, unix.W_OK) != nil {
			return missing(what, dir+" can't be written", "ls -ld "+dir)
		}
		if temp := os.TempDir(); unix.Access(temp, unix.W_OK|unix.X_OK) != nil {
			return missing(what, "the directory for temporary files, "+temp+", is not there or can't be written", "make it, or set TMPDIR to another one")
		}
		return found(what, text)
	}
}

func checkLoopback() cloud.Finding {
	const what = "loopback"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return missing(what, fmt.Sprintf("no program can listen on 127.0.0.1: %v", err), "ip link set lo up")
	}
	_ = l.Close()
	return found(what, "127.0.0.1 takes listeners")
}

func checkShell() cloud.Finding {
	const what = "shell"
	if err := unix.Access("/bin/sh", unix.X_OK); err != nil {
		return missing(what, "there is no /bin/sh, which runs the commands of a node", "")
	}
	return found(what, "/bin/sh")
}

func (p *Provider) checkBinary() cloud.Finding {
	const what = "dlwb binary"
	if fi, err := os.Stat(p.exe); err != nil || fi.IsDir() || unix.Access(p.exe, unix.X_OK) != nil {
		return missing(what, fmt.Sprintf("%q can't be run, and the nodes are made of it", p.exe), "build dlwb again")
	}
	return found(what, p.exe)
}

// smiLimit bounds nvidia-smi, which hangs with a driver that is wedged.
const smiLimit = 10 * time.Second

func checkGPU(ctx context.Context, spec cloud.Spec) cloud.Finding {
	const what = "GPU"
	if simulated(spec) > 0 {
		return found(what, fmt.Sprintf("%d SIMULATED per node", simulated(spec)))
	}
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		out, _, err := waits.Output(ctx, waits.Wait{On: "nvidia-smi", What: "to count this machine's GPUs", Limit: smiLimit}, nil, path, "-L")
		if err == nil {
			if f, unused := unusedGPUs(strings.Count(string(out), "GPU "), spec.Count); unused {
				return f
			}
		}
		return found(what, "those of this machine, by "+path)
	}
	return cloud.Warning(what, "no GPU: there is no nvidia-smi on this machine; training uses the CPU", "")
}

// unusedGPUs tells of GPUs that no node gets: the nodes of a cluster share those of the
// machine evenly, and what is left over after that lies idle.
func unusedGPUs(gpus, nodes int) (f cloud.Finding, unused bool) {
	if nodes < 2 || gpus%nodes == 0 {
		return f, false
	}
	each, left := gpus/nodes, gpus%nodes
	text := fmt.Sprintf("%s of this machine, shared evenly by %d nodes: each gets %d, and %d no node uses", units.Count(gpus, "GPU"), nodes, each, left)
	if each == 0 {
		text = fmt.Sprintf("%s of this machine can't be shared by %d nodes: no node gets one, and training uses the CPU", units.Count(gpus, "GPU"), nodes)
	}
	return cloud.Warning("GPU", text, "machines.count: 1 in the profile gives all of them to one node"), true
}

func nodesHere(n int) string {
	if n == 1 {
		return "1 node on this machine"
	}
	return fmt.Sprintf("%d nodes on this machine", n)
}
