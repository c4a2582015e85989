package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/outfile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/planning"
)

func (a *app) planCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "plan [PROFILE]", Short: "what a profile would do, down to the command of every rank; changes nothing",
		Args: cobra.MaximumNArgs(1),
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			plan, err := a.planOf(ctx, w, args)
			if err != nil {
				a.showUntrusted(err)
			}
			if err != nil {
				return err
			}
			if err := a.answer(plan, func(out io.Writer) { io.WriteString(out, plan.Text()) }); err != nil {
				return err
			}
			if !plan.OK() {
				return runError{ExitFailed}
			}
			return nil
		}),
	}
	a.allowFlags(c)
	a.secretFlag(c)
	a.trustFlag(c)
	return c
}

func (a *app) initCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "init [DIR]", Short: "write a profile for the present directory",
		Long: "Looks for the training script (train*.py, main.py or run.py, also below the top of a\n" +
			"project), for requirements.txt, pyproject.toml, environment.yml and Dockerfile and for\ndirectories of results, and writes " + profileName + ".",
		Args: cobra.MaximumNArgs(1),
	}
	c.Flags().BoolVar(&force, "force", false, "replace a profile that is there")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		dir := "."
		if len(args) > 0 {
			dir = args[0]
		}
		return a.init(cmd.Context(), dir, force)
	}
	return c
}

func (a *app) init(ctx context.Context, dir string, force bool) error {
	path := filepath.Join(dir, profileName)
	if _, err := os.Stat(path); err == nil && !force {
		return usageError{fmt.Errorf("%s is there already; --force replaces it", path)}
	}
	p, notes, err := profiles.Detect(dir, planning.EnvironmentKinds)
	if err != nil {
		return usageError{err}
	}
	text := profiles.Write(p)
	if _, err := outfile.Write(ctx, path, func(to io.Writer) error { _, err := to.Write(text); return err }); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	gate, err := openGate()
	if err != nil {
		return err
	}
	if err := gate.TrustWritten(ctx, path, text); err != nil {
		return err
	}
	return a.answer(initAnswer{path, p.Name, notes}, func(out io.Writer) {
		sanitize.Fprintf(out, "wrote %s\n", path)
		for _, n := range notes {
			sanitize.Fprintf(out, "  %s\n", n)
		}
		fmt.Fprintln(out, "next: dlwb plan shows what it would do, dlwb run does it")
	})
}
