package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/statedir"
)

// completer gives the words that may stand at a place of the command line.
type completer = cobra.CompletionFunc

// completions says what each command's arguments and flags may be.
func (a *app) completions(root *cobra.Command) {
	profile := func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	clusters, runs := firstArg(a.clusterNames), firstArg(a.runNames)
	either := firstArg(func() []string { return append(a.clusterNames(), a.runNames()...) })
	of := map[string]completer{
		"plan": profile, "up": profile, "run": profile, "sweep": profile, "chain": profile, "sync": profile, "trust": profile,
		"attach": either, "logs": either, "stop": firstArg(a.liveNames), "pull": a.pullArg, "down": clusters, "doctor": clusters, "exec": clusters,
		"ssh": a.nodeArg, "forward": a.forwardArg,
		"rerun": runs, "runbook": runs, "export": runs, "star": runs, "note": runs, "compare": anywhere(a.runNames), "rm": anywhere(a.endedNames),
		"init": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	for _, c := range root.Commands() {
		if f := of[c.Name()]; f != nil {
			c.ValidArgsFunction = f
		}
		flag := func(name string, words func() []string) {
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, anywhere(words))
			}
		}
		for _, o := range choices {
			flag(o.flag, func() []string { return o.words })
		}
		flag("rank", func() []string { return []string{"all", "0", "launcher-0"} })
	}
	for _, o := range choices {
		_ = root.RegisterFlagCompletionFunc(o.flag, anywhere(func() []string { return o.words }))
	}
}

func firstArg(words func() []string) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

func anywhere(words func() []string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

// nodeArg completes a cluster, then the number of one of its nodes.
func (a *app) nodeArg(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.clusterNames(), cobra.ShellCompDirectiveNoFileComp
	case 1:
		var nodes []string
		a.known(func(w *workbench.Workbench) {
			count, _ := w.NodeCount(args[0])
			for i := range count {
				nodes = append(nodes, strconv.Itoa(i))
			}
		})
		return nodes, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// pullArg completes a run or a cluster, then a directory.
func (a *app) pullArg(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return append(a.clusterNames(), a.runNames()...), cobra.ShellCompDirectiveNoFileComp
}

// forwardArg completes a cluster, then what can be reached there by name.
func (a *app) forwardArg(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.clusterNames(), cobra.ShellCompDirectiveNoFileComp
	}
	left := slices.DeleteFunc([]string{"jupyter", "tensorboard"}, func(name string) bool { return slices.Contains(args, name) })
	return left, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) clusterNames() (names []string) {
	a.known(func(w *workbench.Workbench) {
		clusters, _ := w.Clusters(context.Background())
		for _, c := range clusters {
			names = append(names, c.Name)
		}
	})
	return names
}

// mostRuns is how many runs are worth offering.
const mostRuns = 30

func (a *app) runNames() (names []string) {
	a.known(func(w *workbench.Workbench) {
		runs, _ := w.Runs()
		for _, r := range runs[:min(len(runs), mostRuns)] {
			names = append(names, r.ID)
		}
	})
	return names
}

// liveNames are the runs that go on, and their clusters.
func (a *app) liveNames() (names []string) {
	a.known(func(w *workbench.Workbench) {
		clusters, _ := w.Clusters(context.Background())
		for _, c := range clusters {
			names = append(names, c.Name)
			if c.Run != "" {
				names = append(names, c.Run)
			}
		}
	})
	return names
}

// endedNames are the runs that are not going on.
func (a *app) endedNames() (names []string) {
	a.known(func(w *workbench.Workbench) {
		runs, _ := w.Runs()
		for _, r := range runs {
			if r.EndedAt != nil && len(names) < mostRuns {
				names = append(names, r.ID)
			}
		}
	})
	return names
}

// known asks the workbench, when there is one: a press of TAB makes no files
// and says nothing of what is wrong.
func (a *app) known(ask func(*workbench.Workbench)) {
	dir, err := statedir.Default()
	if err != nil {
		return
	}
	if _, err := os.Stat(filepath.Join(dir, "dlwb.sqlite")); err != nil {
		return
	}
	if w, err := a.bench(); err == nil {
		ask(w)
		_ = w.Close()
	}
}
