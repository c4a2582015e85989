package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "the clusters that exist, with what they cost", Args: cobra.NoArgs, RunE: a.with(a.list),
	}
}

func (a *app) list(ctx context.Context, w *workbench.Workbench, _ []string) error {
	clusters, err := w.Clusters(ctx)
	if err != nil {
		return err
	}
	return a.answer(clustersAnswer{clusters}, func(out io.Writer) {
		if len(clusters) == 0 {
			fmt.Fprintln(out, "no clusters; dlwb demo makes one and trains on it, dlwb run PROFILE runs yours")
			return
		}
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "CLUSTER\tPHASE\tPROVIDER\tNODES\tRUN\tUP FOR\tENDS IN\t$/H\t$ SO FAR")
		for _, c := range clusters {
			sanitize.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Phase, c.Provider, stateText(c.States),
				orDash(c.Run), units.Seconds(float64(int64(c.Lived))), endsText(c.Next), units.Cents(c.PricePerHour), units.Cents(c.Spent))
		}
		t.Flush()
		for _, c := range clusters {
			if c.Run != "" && c.Owner == 0 {
				sanitize.Fprintf(out, "nobody watches run %s: it went on when dlwb last looked; dlwb attach %s sees how it is now\n", c.Run, c.Name)
			}
		}
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// endsText is when machines end by themselves next, and by which bound.
func endsText(b *event.Bound) string {
	if b == nil {
		return "-"
	}
	left := time.Until(b.At)
	if left <= 0 {
		return "overdue " + units.Clock(-left)
	}
	return fmt.Sprintf("%s (%s)", units.Clock(left), b.Why)
}

// stateText is a state as lists show it.
func stateText(states []cloud.State) string {
	counts := map[cloud.State]int{}
	for _, s := range states {
		counts[s]++
	}
	var parts []string
	for _, s := range []cloud.State{cloud.Alive, cloud.Unknown, cloud.Gone} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	return strings.Join(parts, ", ")
}
