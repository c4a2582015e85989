package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/profiles/foreign"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench/planning"
)

// importMost bounds a file that is imported.
const importMost = 1 << 20

func (a *app) importCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "import FILE", Short: "write a profile from another tool's file",
		Long: "Writes " + profileName + " into the present directory, from the config.yaml of ansible-ml, a Ray cluster\n" +
			"file, a SkyPilot task, a file with an ssm command line, a Compose file or a devcontainer.json,\n" +
			"and names each line that a profile can't hold.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.importFile(args[0], force) },
	}
	c.Flags().BoolVar(&force, "force", false, "replace a profile that is there")
	return c
}

// importFile writes a profile. It is not trusted: what it runs was somebody else's
// idea.
func (a *app) importFile(name string, force bool) error {
	if _, err := os.Stat(profileName); err == nil && !force {
		return usageError{fmt.Errorf("%s is there already; --force replaces it", profileName)}
	}
	text, err := plainfile.Read(name, importMost)
	if err != nil {
		return usageError{fmt.Errorf("read what is to be imported: %w", err)}
	}
	name, err = filepath.Abs(name)
	if err != nil {
		return err
	}
	script := "train.py"
	if p, _, err := profiles.Detect(".", planning.EnvironmentKinds); err == nil && p.Run.Command != "" {
		script = p.Run.Command
	}
	made, err := foreign.Import(name, text, script)
	if errors.Is(err, foreign.ErrUnknown) {
		err = usageError{err}
	}
	if err != nil {
		return err
	}
	if err := wholefile.Write(profileName, made.Profile, 0o644); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	left := append([]foreign.Left{}, made.Left...)
	return a.answer(importAnswer{profileName, made.From, left}, func(out io.Writer) {
		sanitize.Fprintf(out, "wrote %s from %s, %s\n", profileName, name, made.From)
		for _, l := range left {
			at := name
			if l.Line > 0 {
				at = fmt.Sprintf("%s:%d", name, l.Line)
			}
			sanitize.Fprintf(out, "%s: not carried over: %s: %s\n", at, l.What, l.Why)
		}
		fmt.Fprintln(out, "next: read it, then: dlwb plan shows what it would do")
	})
}
