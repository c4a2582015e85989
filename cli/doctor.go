package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/checkup"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor [CLUSTER]", Short: "look for what would keep dlwb, or the nodes of a cluster, from working",
		Long: `Without CLUSTER it looks at this machine. With it, at each node: the driver against
the framework, which GPUs that sees, clock, disk and memory; and at the network, by
an all-reduce across all nodes (without PyTorch the first sends to each of the others;
a node that only leads takes no part).
Nothing is changed. A run that goes on there shares the network with the test.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			findings, err := a.examine(c, args)
			if err != nil {
				return err
			}
			bad := 0
			for _, f := range findings {
				if !f.OK {
					bad++
				}
			}
			err = a.answer(doctorAnswer{Findings: findings, OK: bad == 0}, func(out io.Writer) { writeFindings(out, findings) })
			if err == nil && bad > 0 {
				err = runError{ExitFailed}
			}
			return err
		},
	}
}

// examine looks at this machine, or at the nodes of a cluster.
func (a *app) examine(c *cobra.Command, args []string) (findings []cloud.Finding, err error) {
	if len(args) == 0 {
		return a.diagnose(c.Context()), nil
	}
	err = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		found, err := w.FindCluster(args[0])
		if err != nil {
			return err
		}
		nodes, err := checkup.Of(found.Data, func(i int) (*remote.Node, error) { return w.Node(found.Name, i) })
		if err != nil {
			return err
		}
		findings = append(nodes.Look(ctx), nodes.Network(ctx)...)
		return nil
	})(c, args)
	return findings, err
}

// diagnose looks at everything. A state directory that can't be opened is a
// finding like every other: it is what people ask the doctor about.
func (a *app) diagnose(ctx context.Context) []cloud.Finding {
	findings := []cloud.Finding{{OK: true, What: "dlwb", Text: fmt.Sprintf("%s, %s/%s", Version, runtime.GOOS, runtime.GOARCH)}}
	w, err := a.bench()
	if err != nil {
		return append(findings, cloud.Finding{What: "state", Text: err.Error(), Next: "set DLWB_HOME to another directory, or mend this one"})
	}
	findings = append(findings, cloud.Finding{OK: true, What: "state", Text: w.Dir()})
	findings = append(findings, w.Market().Doctor(ctx)...)
	if err := w.Close(); err != nil {
		findings = append(findings, cloud.Finding{What: "state", Text: err.Error()})
	}
	return findings
}

func writeFindings(out io.Writer, findings []cloud.Finding) {
	for _, f := range findings {
		sanitize.Fprintf(out, "%s %-12s %s\n", f.Mark(), f.What, f.Text)
		if f.Next != "" {
			sanitize.Fprintf(out, "  %-12s next: %s\n", "", f.Next)
		}
	}
}
