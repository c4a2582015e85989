package workbench

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote"
)

//go:embed scripts/facts.sh
var factsScript string

// remoteNode is a node as l.each hands it on.
type remoteNode = remote.Node

// nodeFacts is what a node told of itself.
type nodeFacts struct {
	machine     MachineFact
	packages    []string
	torch, cuda string
	image       string
	err         error
}

// factsLimit bounds the question to a node.
const factsLimit = 60 * time.Second

// mostPackages and longestFact bound what a node may tell.
const (
	mostPackages = 5000
	longestFact  = 300
)

// askNode asks a node for its machine and its packages.
func askNode(ctx context.Context, l *link, i int, python string) nodeFacts {
	ctx, cancel := context.WithTimeout(ctx, factsLimit)
	defer cancel()
	res, err := l.nodes[i].Exec(ctx, remote.Cmd{Line: "exec sh -c " + remote.Quote(factsScript, "sh", python)})
	if err != nil {
		return nodeFacts{err: err, machine: MachineFact{GPUs: []string{}}}
	}
	return readFacts(string(res.Stdout))
}

// readFacts reads what scripts/facts.sh printed.
func readFacts(text string) nodeFacts {
	f := nodeFacts{machine: MachineFact{GPUs: []string{}}, packages: []string{}}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if key == "python" {
			f.python(value)
			continue
		}
		value = strings.TrimSpace(value[:min(len(value), longestFact)])
		switch key {
		case "host":
			f.machine.Host = value
		case "kernel":
			f.machine.Kernel = value
		case "system":
			f.machine.System = strings.Trim(value, `"`)
		case "cores":
			_, _ = fmt.Sscan(value, &f.machine.Cores)
		case "memory":
			_, _ = fmt.Sscan(value, &f.machine.Memory)
			f.machine.Memory <<= 10
		case "driver":
			f.machine.Driver = value
		case "cuda":
			f.machine.CUDA = value
		case "image":
			f.image = value
		case "gpu":
			if len(f.machine.GPUs) < 64 {
				f.machine.GPUs = append(f.machine.GPUs, value)
			}
		}
	}
	return f
}

// python reads the packages, which come as one line of JSON.
func (f *nodeFacts) python(text string) {
	var said struct {
		Packages    []string
		Torch, CUDA string
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		f.err = fmt.Errorf("its Python's packages can't be read: %w", err)
		return
	}
	for _, p := range said.Packages[:min(len(said.Packages), mostPackages)] {
		f.packages = append(f.packages, p[:min(len(p), longestFact)])
	}
	slices.SortFunc(f.packages, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	f.packages = slices.Compact(f.packages)
	f.torch, f.cuda = said.Torch, said.CUDA
}
