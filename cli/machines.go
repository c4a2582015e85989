package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

func (a *app) startCommand() *cobra.Command {
	return &cobra.Command{
		Use: "start [CLUSTER]", Short: "start the machines of a cluster that were stopped", Args: cobra.MaximumNArgs(1),
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			return a.switchMachines(ctx, w, arg(args, 0), w.StartMachines)
		}),
	}
}

// switchMachines stops or starts the machines of a cluster and tells how.
func (a *app) switchMachines(ctx context.Context, w *workbench.Workbench, name string, do func(context.Context, string) error) error {
	c, err := w.FindCluster(name)
	if err != nil {
		return err
	}
	a.narrate(w, c.Name, func() {}, func() { err = do(ctx, c.Name) })
	return err
}

func (a *app) extendCommand() *cobra.Command {
	var by time.Duration
	c := &cobra.Command{
		Use: "extend [CLUSTER]", Short: "let the machines of a cluster live longer than its profile says",
		Long: `Moves the end of the lease that the machines hold. What the budget pays for stays
the limit.`,
		Args: cobra.MaximumNArgs(1),
	}
	c.Flags().DurationVar(&by, "by", time.Hour, "how much longer")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		if by < time.Minute || by > 30*24*time.Hour {
			return usageError{fmt.Errorf("--by %s: from 1m to 720h", by)}
		}
		return a.switchMachines(ctx, w, arg(args, 0), func(ctx context.Context, name string) error { return w.Extend(ctx, name, by) })
	})
	return c
}

type gcAnswer struct {
	Identity  string            `json:"identity"`
	Orphans   []cloud.Orphan    `json:"orphans"`
	Collected []cloud.Receipt   `json:"collected"`
	Looked    []string          `json:"looked"`
	Blind     map[string]string `json:"blind"`
	Closed    []string          `json:"closed"` // not open to the account
	Clean     bool              `json:"clean"`  // nothing of ours is left, and every place was seen
}

func (a *app) gcCommand() *cobra.Command {
	var yes, everywhere, now bool
	c := &cobra.Command{
		Use: "gc", Short: "find what was left behind in the cloud without a record here, and remove it",
		Long: `Looks in every enabled region for what dlwb made under the present identity and
what no cluster here accounts for: after a crash together with a lost state
directory, say. It asks before it removes anything; what belongs to others is
shown and never touched; a region that could not be looked into is named.`,
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "remove without asking what was made on this machine")
	c.Flags().BoolVar(&everywhere, "other-hosts", false, "with --yes: also what was made on another machine, which may still use it")
	c.Flags().BoolVar(&now, "now", false, "look once; what was made in the last minutes may not be seen yet")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, _ []string) error {
		g := collecting{ctx: ctx, app: a, w: w, yes: yes, everywhere: everywhere}
		if err := g.until(ctx, now); err != nil {
			return err
		}
		g.answer.Clean = g.left() == 0 && len(g.answer.Blind) == 0
		if err := a.answer(g.answer.whole(), func(out io.Writer) { g.summary(out) }); err != nil {
			return err
		}
		if !g.answer.Clean {
			return runError{ExitUnresolved}
		}
		return nil
	})
	return c
}

// collecting is one gc.
type collecting struct {
	ctx             context.Context
	app             *app
	w               *workbench.Workbench
	yes, everywhere bool
	answer          gcAnswer
	// met are the lives that were shown, and whether something of them is left.
	met map[string]bool
}

// until looks, and again when whatever was made before the first look must be
// seen: an account that looks empty may only not show yet what it holds.
func (g *collecting) until(ctx context.Context, once bool) error {
	g.met = map[string]bool{}
	for began := time.Now(); ; {
		looked := time.Now()
		hunts, err := g.w.Market().Orphans(ctx, func(text string) { slog.Debug("gc", "said", text) })
		if err != nil {
			return err
		}
		var settle time.Duration
		g.answer.Orphans, g.answer.Looked, g.answer.Closed, g.answer.Blind = nil, nil, nil, map[string]string{}
		for _, provider := range slices.Sorted(maps.Keys(hunts)) {
			settle = max(settle, hunts[provider].Settle)
			if err := g.one(ctx, provider, hunts[provider]); err != nil {
				return err
			}
		}
		rest := settle - looked.Sub(began)
		if once || rest <= 0 {
			return nil
		}
		g.app.hint("%d regions were looked into; looking again in %s for what does not show yet", len(g.answer.Looked), units.Clock(rest))
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// left counts the lives of ours of which something is left.
func (g *collecting) left() (n int) {
	for _, is := range g.met {
		if is {
			n++
		}
	}
	return n
}

func (g *collecting) one(ctx context.Context, provider string, h cloud.Hunt) error {
	g.answer.Identity = h.Identity
	g.answer.Orphans = append(g.answer.Orphans, h.Orphans...)
	g.answer.Looked = append(g.answer.Looked, h.Looked...)
	g.answer.Closed = append(g.answer.Closed, h.Closed...)
	maps.Copy(g.answer.Blind, h.Blind)
	for _, o := range h.Orphans {
		_, again := g.met[o.Life+" "+o.Owner]
		if !again && !g.app.json {
			writeOrphan(g.app.out, o)
		}
		g.met[o.Life+" "+o.Owner] = !o.Foreign
		if o.Foreign || again && !g.yes || !g.agreed(o) {
			continue
		}
		receipt, err := g.w.Market().Collect(ctx, provider, o, func(text string) { g.app.hint("  %s", text) })
		g.answer.Collected = append(g.answer.Collected, receipt)
		g.met[o.Life+" "+o.Owner] = err != nil
		if err != nil {
			g.app.hint("cluster %s (life %s): %s", o.Name, o.Life, err.Error())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// agreed asks whether an orphan is to be removed.
func (g *collecting) agreed(o cloud.Orphan) bool {
	host, _ := os.Hostname()
	if g.yes {
		return g.everywhere || o.Host == host
	}
	return g.app.asks() && g.app.agree(g.ctx, false, event.CollectQuestion(o)) == nil
}

func writeOrphan(out io.Writer, o cloud.Orphan) {
	whose := "yours, made on " + o.Host
	if o.Foreign {
		whose = "of " + o.Owner + ": not touched"
	}
	sanitize.Fprintf(out, "cluster %s, life %s, in %s; %s; %s\n", o.Name, o.Life, strings.Join(o.Regions, ", "), units.PerHour(o.PerHour), whose)
	for _, r := range o.Resources {
		sanitize.Fprintf(out, "  %-16s %-8s %s\n", r.Kind, r.State, r.ID+": "+r.Proof)
	}
}

func (g *collecting) summary(out io.Writer) {
	for _, r := range g.answer.Collected {
		sanitize.Fprintf(out, "cluster %s: proven gone: %t, cost %s\n", r.Cluster, r.Proven(), units.USD(r.Cost))
	}
	for _, place := range slices.Sorted(maps.Keys(g.answer.Blind)) {
		sanitize.Fprintf(out, "blind: %s: %s\n", place, g.answer.Blind[place])
	}
	if len(g.answer.Closed) > 0 {
		sanitize.Fprintf(out, "not enabled for this account: %s\n", strings.Join(g.answer.Closed, ", "))
	}
	switch {
	case g.answer.Clean:
		sanitize.Fprintf(out, "nothing of %s is left in %d regions\n", g.answer.Identity, len(g.answer.Looked))
	case g.left() > 0:
		sanitize.Fprintf(out, "UNRESOLVED: %d clusters of yours are left; dlwb gc --yes removes what was made here\n", g.left())
	default:
		fmt.Fprintln(out, "UNRESOLVED: not every region could be looked into")
	}
}

// whole has empty lists where there is nothing.
func (g gcAnswer) whole() gcAnswer {
	g.Orphans = append([]cloud.Orphan{}, g.Orphans...)
	g.Collected = append([]cloud.Receipt{}, g.Collected...)
	g.Looked = append([]string{}, g.Looked...)
	g.Closed = append([]string{}, g.Closed...)
	if g.Blind == nil {
		g.Blind = map[string]string{}
	}
	return g
}
