package inputs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/sharing"
)

// stateLimits bound what a run may leave in its state.
var stateLimits = transfer.PullLimits{MaxFiles: 100_000, MaxBytes: 50 << 30}

// stateHome is where the state of a node is kept here.
func stateHome(dir string, node int) string { return filepath.Join(dir, fmt.Sprintf("node%d", node)) }

// MakeDirs makes directories on every node, below its home.
func MakeDirs(ctx context.Context, node *remote.Node, dirs []string) error {
	r, err := node.Exec(ctx, remote.Cmd{Line: "mkdir -p " + shellword.Join(dirs...)})
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%s", strings.TrimSpace(string(r.Stderr)))
	}
	return err
}

// PutState gives the state that is kept here to nodes that have none. A node that
// has some keeps it: that is the newer one.
func (s Site) PutState(ctx context.Context, dir string) (text string, err error) {
	put := make([]bool, len(s.Nodes))
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range s.Nodes {
		g.Go(func() error {
			from := stateHome(dir, i)
			if entries, err := os.ReadDir(from); err != nil || len(entries) == 0 {
				return nil //nolint:nilerr // nothing is kept here
			}
			there := StateDir(s.Cluster, s.Disks, i)
			r, err := n.Exec(ctx, remote.Cmd{Line: "ls -A " + shellword.Quote(there) + " 2>/dev/null | head -n 1"})
			if err == nil && strings.TrimSpace(string(r.Stdout)) == "" {
				put[i] = true
				err = transfer.Put(ctx, n, from, there, there+"-before")
			}
			if err != nil {
				return &event.Fault{What: "put the state on the node", Node: i, Why: err.Error()}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	count := 0
	for _, is := range put {
		if is {
			count++
		}
	}
	if count == 0 {
		return "", nil
	}
	return fmt.Sprintf("state put on %s from %s", units.Count(count, "node"), dir), nil
}

// StateHome brings the state of every node home. What a node has removed stays
// here: what it says can't be proven, and may cost a year's work.
func StateHome(ctx context.Context, cluster string, nodes []*remote.Node, disks sharing.Nodes, dir string) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range nodes {
		g.Go(func() error {
			home := stateHome(dir, i)
			if err := os.MkdirAll(home, 0o755); err != nil {
				return err
			}
			if _, err := transfer.Pull(ctx, n, StateDir(cluster, disks, i), []string{"."}, home, stateLimits); err != nil {
				return &event.Fault{What: "bring the state home", Node: i, Why: err.Error(), Next: "it stays on the machine; the next run brings it"}
			}
			return nil
		})
	}
	return g.Wait()
}
