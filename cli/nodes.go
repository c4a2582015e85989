package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
)

// execResult is what one node said to a command.
type execResult struct {
	Node     int    `json:"node"`
	Host     string `json:"host,omitempty"`
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	// Truncated says that the node said more than is kept.
	Truncated bool   `json:"truncated,omitempty"`
	Error     string `json:"error,omitempty"`
}

func (a *app) execCommand() *cobra.Command {
	var only []int
	c := &cobra.Command{
		Use: "exec CLUSTER -- COMMAND...", Short: "run a command on all nodes at once",
		Long: "Runs a command on all nodes at once and prints each node's answer.\n" +
			"The words after -- are passed as they are; for a pipe use sh -c '…'.\n" +
			"The exit code is that of the first node that failed.",
		Args: cobra.MinimumNArgs(2),
	}
	c.Flags().IntSliceVar(&only, "node", nil, "only on these nodes")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		cluster, err := w.FindCluster(args[0])
		if err != nil {
			return err
		}
		targets := only
		if len(targets) == 0 {
			count, err := w.NodeCount(cluster.Name)
			if err != nil {
				return err
			}
			for i := range count {
				targets = append(targets, i)
			}
		}
		return a.exec(ctx, w, cluster.Name, targets, shellword.Join(args[1:]...))
	})
	return c
}

func (a *app) exec(ctx context.Context, w *workbench.Workbench, cluster string, targets []int, line string) error {
	results := make([]execResult, len(targets))
	nodes := make([]*remote.Node, len(targets))
	for i, target := range targets {
		n, err := w.Node(cluster, target)
		if err != nil {
			return err // before anything runs anywhere
		}
		nodes[i] = n
	}
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { results[i] = execOn(ctx, n, targets[i], line) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := 0
	for i, r := range results {
		r.Host = nodes[i].Target().Called
		if err := a.answer(r, func(out io.Writer) { writeExec(out, r) }); err != nil {
			return err
		}
		if code == 0 {
			code = r.ExitCode
		}
	}
	return exitOf(code, nil)
}

// unreached is the exit code for a node that could not be asked, as ssh has it.
const unreached = 255

func execOn(ctx context.Context, n *remote.Node, number int, line string) execResult {
	res, err := n.Exec(ctx, remote.Cmd{Line: line, Quiet: remote.NoLimit})
	r := execResult{
		Node: number, ExitCode: res.ExitCode, Truncated: res.Truncated,
		Stdout: sanitize.Plain(string(res.Stdout)), Stderr: sanitize.Plain(string(res.Stderr)),
	}
	if err != nil {
		r.Error, r.ExitCode = err.Error(), unreached
	}
	return r
}

func writeExec(out io.Writer, r execResult) {
	name := r.Host
	if name == "" {
		name = fmt.Sprintf("node%d", r.Node)
	}
	for _, text := range []string{r.Stdout, r.Stderr, r.Error} {
		for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
			if l != "" {
				sanitize.Fprintf(out, "%s | %s\n", name, l)
			}
		}
	}
	if r.Truncated {
		sanitize.Fprintf(out, "%s: what it said after the first 1 MiB is left out\n", name)
	}
	if r.ExitCode != 0 {
		sanitize.Fprintf(out, "%s: exit code %d\n", name, r.ExitCode)
	}
}
