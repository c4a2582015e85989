package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/imports"
	"github.com/dlwb/dlwb/cli/keeping"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/statedir"
)

// Version is set when dlwb is built.
var Version = "dev"

const about = `dlwb is a terminal workbench for deep-learning experiments: pick machines,
bring up a cluster, set up Python on every node, sync the code, launch
distributed training, watch it live, bring the results home, and take
everything down with proof that nothing is left.

Without a command it opens the screen. Every command also works headless:
--json prints one JSON object a line.`

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "dlwb", Short: "A terminal workbench for deep-learning experiments", Long: about + "\n\n" + exitHelp(),
		Args: rootArgs, SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: a.checkFlags,
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, _ []string) error {
			if !a.screen() {
				return a.list(ctx, w, nil)
			}
			return a.open(ctx, w, opening{})
		}),
	}
	a.versionFlag(root)
	root.SetFlagErrorFunc(flagFault)
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON, one object a line")
	f.BoolVar(&a.plain, "plain", false, "print lines instead of opening the screen (also: no terminal, TERM dumb or not set)")
	root.AddCommand(
		a.demoCommand(), a.initCommand(), imports.Command(imports.Face{Say: a.answer, Usage: func(err error) error { return usageError{err} }}), a.planCommand(), a.upCommand(), a.runCommand(), a.sweepCommand(), a.chainCommand(), a.logsCommand(),
		a.lsCommand(), a.runsCommand(), a.attachCommand(), a.sshCommand(), a.execCommand(), a.syncCommand(),
		a.forwardCommand(), a.pullCommand(), a.stopCommand(), a.downCommand(), a.doctorCommand(), a.eventsCommand(),
		a.offersCommand(), a.startCommand(), a.extendCommand(), a.gcCommand(), a.metricsCommand(),
		a.compareCommand(), a.exportCommand(), a.trustCommand(), a.noteCommand(), a.starCommand(), a.rerunCommand(), a.runbookCommand(),
		a.rmCommand(), a.compactCommand(), keeping.Command(statedir.Default, a.answer),
	)
	for _, c := range root.Commands() {
		c.Args, c.DisableFlagsInUseLine, c.SuggestFor = usageArgs(c.Args), true, suggestFor[c.Name()]
	}
	root.AddCommand(a.topics()...)
	root.SetHelpCommand(a.helpCommand(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	a.screenFlags(root)
	a.completions(root)
	a.jsonHelp(root)
	return root
}

// screenFlags adds what concerns the screen to the commands that open it. To
// look without changing is a wish of those that only look.
func (a *app) screenFlags(root *cobra.Command) {
	for _, c := range append(root.Commands(), root) {
		name := c.Name()
		if name == "dlwb" || name == "attach" {
			c.Flags().BoolVar(&a.readOnly, "read-only", false, "on the screen: look at everything, change nothing")
		}
		if name == "dlwb" || name == "attach" || name == "demo" || name == "run" {
			c.Flags().StringVar(&a.theme, "theme", "auto", "colours of the screen: auto, dark or light")
			c.Flags().StringVar(&a.glyphs, "glyphs", "auto", "characters to draw the screen with: auto, unicode or ascii")
		}
	}
}

func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, e := range ExitCodes {
		fmt.Fprintf(&b, "  %-4d %s\n", e.Code, e.Doc)
	}
	b.WriteString("  demo, run and attach exit with the run's own code: that of the rank that failed\n" +
		"  first (128+n after signal n), 124 for a run that hung, 130 for one that was stopped.")
	return b.String()
}
