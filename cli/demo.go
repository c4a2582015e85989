package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/examples"
	"github.com/dlwb/dlwb/workbench"
)

func (a *app) demoCommand() *cobra.Command {
	goal := workbench.Goal{Down: true}
	return &cobra.Command{
		Use: "demo", Short: "train a real model on two nodes on this machine, and remove everything again",
		Long: `Brings up two nodes on this machine, trains a character-level language model on
the source of Python's standard library on both of them, brings the results
home, removes everything and proves it. It needs Python 3 and nothing else;
with PyTorch the training is DistributedDataParallel under torchrun.

On a terminal it opens the screen; elsewhere it prints the same events.`,
		Args: cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, _ []string) error {
			path, err := writeDemo(filepath.Join(w.Dir(), "demo"))
			if err != nil {
				return err
			}
			text, err := fs.ReadFile(examples.Charlm(), profileName)
			if err != nil {
				return fmt.Errorf("write the demo: %w", err)
			}
			if err := w.Gate().TrustWritten(ctx, path, text); err != nil {
				return err
			}
			plan, err := w.Plans().Plan(ctx, path)
			if err != nil {
				return err
			}
			if a.screen() {
				return a.open(ctx, w, opening{plan: plan, goal: goal})
			}
			return a.do(ctx, w, plan, goal)
		}),
	}
}

// writeDemo writes the example that comes with dlwb into a directory of its
// own and returns the path of its profile.
func writeDemo(dir string) (string, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("write the demo: %w", err)
	}
	if err := os.CopyFS(dir, examples.Charlm()); err != nil {
		return "", fmt.Errorf("write the demo: %w", err)
	}
	return filepath.Join(dir, profileName), nil
}
