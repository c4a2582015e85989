// Package imports is the command that writes a profile from another tool's file.
package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/outfile"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/profiles/foreign"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench/planning"
)

// profileName is the file that is written.
const profileName = profiles.FileName

// importMost bounds a file that is imported.
const importMost = 1 << 20

// Answer is what the command says with --json.
type Answer struct {
	Profile string         `json:"profile"`
	From    string         `json:"from"`
	Left    []foreign.Left `json:"left"`
	// Private is set where the file was made for its owner alone.
	Private bool `json:"private,omitempty"`
}

// Face is what the command needs of the command line.
type Face struct {
	Say   func(v any, text func(io.Writer)) error
	Usage func(error) error // an error of how the command was called
}

// Command is the command.
func Command(f Face) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "import FILE", Short: "write a profile from another tool's file",
		Long: "Writes " + profileName + " into the present directory, from the config.yaml of ansible-ml, a Ray cluster\n" +
			"file, a SkyPilot task, a file with an ssm command line, a Compose file or a devcontainer.json,\n" +
			"and names each line that a profile can't hold.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.importFile(c.Context(), args[0], force) },
	}
	c.Flags().BoolVar(&force, "force", false, "replace a profile that is there")
	return c
}

// importFile writes a profile. It is not trusted: what it runs was somebody else's
// idea.
func (f Face) importFile(ctx context.Context, name string, force bool) error {
	if _, err := os.Stat(profileName); err == nil && !force {
		return f.Usage(fmt.Errorf("%s is there already; --force replaces it", profileName))
	}
	text, err := plainfile.Read(name, importMost)
	if err != nil {
		return f.Usage(fmt.Errorf("read what is to be imported: %w", err))
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
		err = f.Usage(err)
	}
	if err != nil {
		return err
	}
	put := outfile.Write
	if len(made.Secret) > 0 { // others of this machine are not to read it
		put = outfile.Private
	}
	if _, err := put(ctx, profileName, func(to io.Writer) error { _, err := to.Write(made.Profile); return err }); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	left := append([]foreign.Left{}, made.Left...)
	return f.Say(Answer{profileName, made.From, left, len(made.Secret) > 0}, func(out io.Writer) {
		sanitize.Fprintf(out, "wrote %s from %s, %s\n", profileName, name, made.From)
		for _, l := range left {
			at := name
			if l.Line > 0 {
				at = fmt.Sprintf("%s:%d", name, l.Line)
			}
			sanitize.Fprintf(out, "%s: not carried over: %s: %s\n", at, l.What, l.Why)
		}
		if len(made.Secret) > 0 {
			sanitize.Fprintf(out, "%s is readable by you alone: the file that it was made from holds secrets (%s)\n", profileName, strings.Join(made.Secret, ", "))
		}
		fmt.Fprintln(out, "next: read it, then: dlwb plan shows what it would do")
	})
}
