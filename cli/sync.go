package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

func (a *app) syncCommand() *cobra.Command {
	var watch, dry bool
	c := &cobra.Command{
		Use: "sync [PROFILE]", Short: "copy what changed in the code to every node", Args: cobra.MaximumNArgs(1),
		Long: `Brings the code on every node up to date. What .gitignore and .dlwbignore leave
out is not sent, and each changed file leaves this machine once: the first node
passes it on to the others where it can reach them. Of large files only what
changed in them is sent, and a sync that was cut off goes on where it was.

A file that was edited on a node stays as it is until it changes here too; then
it is kept there in ~/.dlwb/kept.

Ctrl-C is the ordinary end of --watch: exit code 0.`,
		Example: "  dlwb sync --dry-run    what would be sent, removed and kept\n  dlwb sync --watch      again after each change, until Ctrl-C",
	}
	a.allowFlags(c)
	c.Flags().BoolVar(&watch, "watch", false, "sync again soon after each change, until Ctrl-C")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be done on each node, and change nothing")
	a.trustFlag(c)
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		if watch && dry {
			return usageError{fmt.Errorf("--watch and --dry-run don't go together")}
		}
		plan, err := a.planBy(ctx, w, args, w.Plans().PlanSync)
		if err != nil {
			return err
		}
		if dry {
			return a.previewSync(ctx, w, plan)
		}
		err = a.do(ctx, w, plan, workbench.Goal{Until: event.StepSync, Keep: true})
		if err != nil || !watch {
			return err
		}
		return a.watchSync(ctx, w, plan)
	})
	return c
}

// watchSync prints a line for each sync after a change.
func (a *app) watchSync(ctx context.Context, w *workbench.Workbench, plan *planning.Plan) error {
	a.hint("watching %s; Ctrl-C ends it", plan.Code.Dir)
	sub := w.Subscribe(plan.Cluster).FromNow()
	defer sub.Close()
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	ended := make(chan error, 1)
	go func() {
		ended <- w.WatchSync(ctx, plan)
		enough()
	}()
	p := a.printer(w)
	for ctx.Err() == nil {
		for _, e := range sub.Next(ctx) {
			switch b := e.Body.(type) {
			case event.StepEnded:
				if b.Step != event.StepSync {
					continue
				}
			case event.Noticed:
			default:
				continue
			}
			if unread(p.one(e)) {
				enough()
			}
		}
	}
	return <-ended
}

// previewSync prints what a sync would do.
func (a *app) previewSync(ctx context.Context, w *workbench.Workbench, plan *planning.Plan) error {
	preview, err := w.PreviewSync(ctx, plan)
	if err != nil {
		return err
	}
	return a.answer(preview, func(out io.Writer) {
		if !preview.Up {
			sanitize.Fprintf(out, "cluster %s is not up; on new nodes:\n", preview.Cluster)
		}
		for _, n := range preview.Nodes {
			sanitize.Fprintf(out, "%s: %s\n", n.Node, previewText(n))
			for _, list := range []struct {
				sign  string
				names []string
			}{{"+", n.Send}, {"-", n.Remove}, {"= edited there, left as it is:", n.Edited}, {"~ edited there, kept in ~/.dlwb/kept:", n.Aside}} {
				for _, name := range list.names[:min(previewLines, len(list.names))] {
					sanitize.Fprintf(out, "  %s %s\n", list.sign, name)
				}
				if more := len(list.names) - previewLines; more > 0 {
					sanitize.Fprintf(out, "  %s and more; --json has them\n", list.sign)
				}
			}
		}
		for _, warning := range preview.Warnings {
			sanitize.Fprintf(out, "warning: %s\n", warning)
		}
	})
}

// previewLines is how many names of a kind are shown of each node.
const previewLines = 20

func previewText(n transfer.SyncPreview) string {
	if n.Files+len(n.Remove)+len(n.Aside) == 0 {
		return "nothing to do"
	}
	var parts []string
	if n.Files > 0 {
		parts = append(parts, "send "+event.SizeText(n.Files, n.Bytes)+" before compression")
	}
	if len(n.Remove) > 0 {
		parts = append(parts, fmt.Sprintf("remove %d", len(n.Remove)))
	}
	if len(n.Aside) > 0 {
		parts = append(parts, fmt.Sprintf("move %d aside", len(n.Aside)))
	}
	return strings.Join(parts, ", ")
}
