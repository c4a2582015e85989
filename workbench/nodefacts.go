package workbench

import (
	"context"
	_ "embed" // the program
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/workbench/history"
)

//go:embed scripts/packages.py
var packagesProgram string

// remoteNode is a node as l.each hands it on.
type remoteNode = remote.Node

// nodeFacts is what a node told of itself.
type nodeFacts struct {
	machine     history.MachineFact
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
	told, err := l.nodes[i].Facts(ctx)
	if err != nil {
		return nodeFacts{err: err, machine: history.MachineFact{GPUs: []string{}}}
	}
	f := readFacts(told)
	res, err := l.nodes[i].Exec(ctx, remote.Cmd{Line: "exec " + shellword.Join(python) + " -", Stdin: strings.NewReader(packagesProgram)})
	switch {
	case err != nil:
		f.err = err
	case res.ExitCode == 0: // else there is no such Python
		f.python(res.Stdout)
	}
	return f
}

// readFacts bounds what a node told of its machine.
func readFacts(told wire.NodeFacts) nodeFacts {
	f := nodeFacts{image: brief(told.Image), packages: []string{}, machine: history.MachineFact{
		Host: brief(told.Host), Kernel: brief(told.Kernel), System: brief(told.System), Cores: told.Cores,
		Memory: told.Memory, Driver: brief(told.Driver), CUDA: brief(told.CUDA), GPUs: []string{}}}
	for _, gpu := range told.GPUs[:min(len(told.GPUs), 64)] {
		f.machine.GPUs = append(f.machine.GPUs, brief(gpu))
	}
	return f
}

func brief(fact string) string { return fact[:min(len(fact), longestFact)] }

// python reads the packages, which come as one line of JSON.
func (f *nodeFacts) python(text []byte) {
	var said struct {
		Packages    []string
		Torch, CUDA string
	}
	if err := json.Unmarshal(text, &said); err != nil {
		f.err = fmt.Errorf("its Python's packages can't be read: %w", err)
		return
	}
	for _, p := range said.Packages[:min(len(said.Packages), mostPackages)] {
		f.packages = append(f.packages, brief(p))
	}
	slices.SortFunc(f.packages, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	f.packages = slices.Compact(f.packages)
	f.torch, f.cuda = said.Torch, said.CUDA
}
