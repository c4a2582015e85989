package checkup

import (
	"context"
	_ "embed" // what runs on the nodes
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/rankport"
)

//go:embed scripts/allreduce.py
var reduceScript string

//go:embed scripts/pair.py
var pairScript string

// networkLimit bounds each measurement.
const networkLimit = 90 * time.Second

// bandwidthLeast is below what an all-reduce is worth a word: a tenth of a slow
// Ethernet.
const bandwidthLeast = 12e6

// Network measures the network between the nodes: by an all-reduce of the framework
// where every node has it, else node 0 sends to each of the others.
func (c Cluster) Network(ctx context.Context) []cloud.Finding {
	if len(c.Nodes) < 2 {
		return []cloud.Finding{{OK: true, What: "network", Text: "one node: nothing goes over it"}}
	}
	c = c.training()
	if len(c.Nodes) < 2 {
		return []cloud.Finding{{OK: true, What: "network", Text: "one node besides the head: no rank has another to talk to"}}
	}
	ctx, cancel := context.WithTimeout(ctx, networkLimit)
	defer cancel()
	backend, torch := c.backend(ctx)
	if torch {
		return []cloud.Finding{c.allReduce(ctx, backend)}
	}
	var all []cloud.Finding
	for i := 1; i < len(c.Nodes); i++ {
		all = append(all, c.pair(ctx, i))
	}
	return all
}

// backend is what all nodes can reduce by; false: not all have torch.
func (c Cluster) backend(ctx context.Context) (name string, torch bool) {
	const ask = "import torch, torch.distributed as d; print('nccl' if torch.cuda.is_available() and d.is_nccl_available() else 'gloo' if d.is_available() else 'none')"
	said := make([]string, len(c.Nodes))
	var all sync.WaitGroup
	for i := range c.Nodes {
		all.Go(func() {
			r, err := c.Nodes[i].Exec(ctx, remote.Cmd{Line: shellword.Join(append(c.python(i), "-c", ask)...), Quiet: networkLimit})
			if err == nil && r.ExitCode == 0 {
				said[i] = lastLine(r.Stdout)
			}
		})
	}
	all.Wait()
	name = "nccl"
	for _, s := range said {
		if s != "nccl" && s != "gloo" {
			return "", false
		}
		if s == "gloo" {
			name = "gloo"
		}
	}
	return name, true
}

// each does something on every node at once.
func (c Cluster) each(ctx context.Context, do func(ctx context.Context, i int, n *remote.Node) error) error {
	errs := make([]error, len(c.Nodes))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for i, n := range c.Nodes {
		all.Go(func() {
			if errs[i] = do(ctx, i, n); errs[i] != nil {
				cancel() // the others wait for it in vain
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && ctx.Err() != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
			return err
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

const networkNext = "open all ports between the nodes (security group, firewall), and name the interface that leads there: run.env {NCCL_SOCKET_IFNAME: …}"

// allReduce has one process a node reduce over the network.
func (c Cluster) allReduce(ctx context.Context, backend string) cloud.Finding {
	f := cloud.Finding{OK: true, What: "all-reduce"}
	pythons := make([]string, len(c.Nodes))
	for i := range pythons {
		pythons[i] = c.python(i)[len(c.python(i))-1]
	}
	port, err := rankport.Choose(ctx, c.each, rankport.Ask{Pythons: pythons[:1], Span: 1})
	if err != nil {
		return cloud.Finding{What: f.What, Text: err.Error(), Next: networkNext}
	}
	var result struct{ Sum, Seconds, Bandwidth float64 }
	err = c.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		env := ""
		if at := c.Places[i].Interface; at != "" {
			env = "GLOO_SOCKET_IFNAME=" + shellword.Quote(at) + " NCCL_SOCKET_IFNAME=" + shellword.Quote(at) + " "
		}
		words := append(c.python(i), "-", fmt.Sprint(i), fmt.Sprint(len(c.Nodes)), c.Places[0].PeerHost, fmt.Sprint(port), backend)
		r, err := n.Exec(ctx, remote.Cmd{Line: env + shellword.Join(words...), Stdin: strings.NewReader(reduceScript), Quiet: networkLimit})
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", c.name(i), err)
		case r.ExitCode != 0:
			return fmt.Errorf("%s: %s", c.name(i), lastLine(r.Stderr))
		case i == 0:
			err = json.Unmarshal([]byte(lastLine(r.Stdout)), &result)
		}
		return err
	})
	switch {
	case err != nil:
		f.OK, f.Text, f.Next = false, fmt.Sprintf("by %s across %s: %v", backend, units.Count(len(c.Nodes), "node"), err), networkNext
		return f
	case int(result.Sum) != len(c.Nodes):
		f.OK, f.Text, f.Next = false, fmt.Sprintf("ones came to %g on %d nodes", result.Sum, len(c.Nodes)), "the framework is broken: dlwb up --force makes the environment again"
		return f
	}
	f.Text = fmt.Sprintf("ones came to %g by %s on %s; 32 MiB in %s, %s/s over each node's network", result.Sum, backend, units.Count(len(c.Nodes), "node"),
		units.Seconds(result.Seconds), units.Bytes(int64(result.Bandwidth)))
	return slow(f, result.Bandwidth)
}

// slow warns of a network that keeps GPUs waiting.
func slow(f cloud.Finding, bandwidth float64) cloud.Finding {
	if bandwidth < bandwidthLeast {
		f.State, f.Next = cloud.Warned, "that is slow: are the nodes in one zone and one placement group, and is this the right interface?"
	}
	return f
}

// pair has node 0 send to another one.
func (c Cluster) pair(ctx context.Context, to int) cloud.Finding {
	f := cloud.Finding{OK: true, What: c.name(0) + " → " + c.name(to)}
	port := make(chan string, 1)
	heard := &firstLine{to: port}
	listened := make(chan error, 1)
	go func() {
		r, err := c.Nodes[to].Exec(ctx, remote.Cmd{Line: shellword.Join(append(c.python(to), "-", "listen", "0")...), Stdin: strings.NewReader(pairScript), Stdout: heard, Quiet: networkLimit})
		if err == nil && r.ExitCode != 0 {
			err = fmt.Errorf("%s: %s", c.name(to), lastLine(r.Stderr))
		}
		listened <- err
	}()
	fail := func(err error) cloud.Finding {
		f.OK, f.Text, f.Next = false, err.Error(), networkNext
		return f
	}
	var at string
	select {
	case at = <-port:
	case err := <-listened:
		return fail(fmt.Errorf("it does not listen: %w", err))
	}
	r, err := c.Nodes[0].Exec(ctx, remote.Cmd{Line: shellword.Join(append(c.python(0), "-", c.Places[to].PeerHost, at)...), Stdin: strings.NewReader(pairScript), Quiet: networkLimit})
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%s: %s", c.name(0), lastLine(r.Stderr))
	}
	if listenErr := <-listened; err == nil {
		err = listenErr
	}
	var result struct{ Bandwidth float64 }
	if err == nil {
		err = json.Unmarshal([]byte(lastLine(heard.all)), &result)
	}
	if err != nil {
		return fail(err)
	}
	f.Text = fmt.Sprintf("64 MiB at %s/s by TCP; there is no torch on all nodes for an all-reduce", units.Bytes(int64(result.Bandwidth)))
	return slow(f, result.Bandwidth)
}

// firstLine hands on the first line of an output and keeps all of it.
type firstLine struct {
	all []byte
	to  chan string
}

// Write takes a part of the output.
func (w *firstLine) Write(p []byte) (int, error) {
	had := strings.Contains(string(w.all), "\n")
	w.all = append(w.all, p[:min(len(p), 4096)]...)
	if line, _, found := strings.Cut(string(w.all), "\n"); found && !had {
		w.to <- strings.TrimSpace(line)
	}
	return len(p), nil
}
