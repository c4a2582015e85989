// Package keeping is the command dlwb keeper: it shows and ends the process that
// keeps connections between commands, and has the other commands use it.
package keeping

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/keeper"
	"github.com/dlwb/dlwb/sanitize"
)

// Borrow has this process use the connections of the keeper of a state directory,
// unless that is turned off. exe is the program that becomes the keeper.
func Borrow(dir, exe string) error {
	on, _, err := keeper.Setting()
	if err != nil || !on {
		remote.BorrowFrom(nil)
		return err
	}
	k, err := keeper.New(dir, exe)
	if err == nil {
		remote.BorrowFrom(k.Lender())
	}
	return err
}

// Answer is what the command says.
type Answer struct {
	On      bool            `json:"on"`
	Keepers []keeper.Status `json:"keepers"`
	Ended   int             `json:"ended"` // by stop
}

// Command is dlwb keeper. state finds the state directory, and answer prints.
func Command(state func() (string, error), answer func(v any, text func(io.Writer)) error) *cobra.Command {
	c := &cobra.Command{
		Use: "keeper [status|stop]", Short: "show or end the process that keeps connections between commands",
		Long: `Commands that reach nodes leave their connections to one background process, the
keeper, so that the next command need not connect anew. The first one starts it; it
ends connections that nobody has used for 5 minutes, and itself with the last. down
ends those to its machines at once. Passphrases stay with the command that asked.
Tunnels that are to outlive dlwb are open there until they are closed or their cluster
is taken down: those of the screen, and of dlwb forward --keep.

DLWB_KEEPER=off does without; DLWB_KEEPER=30m keeps connections for so long.`,
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"status", "stop"},
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		a, err := ask(state, len(args) == 1 && args[0] == "stop")
		if err != nil {
			return err
		}
		return answer(a, a.write)
	}
	return c
}

// ask asks the keeper of the state directory, or ends it.
func ask(state func() (string, error), stop bool) (stopping, error) {
	a := stopping{Answer: Answer{Keepers: []keeper.Status{}}, stop: stop}
	dir, err := state()
	if err != nil {
		return a, err
	}
	exe, err := os.Executable()
	if err != nil {
		return a, fmt.Errorf("find dlwb's own program file: %w", err)
	}
	k, err := keeper.New(dir, exe)
	if err != nil {
		return a, err
	}
	if a.On, _, err = keeper.Setting(); err != nil {
		return a, err
	}
	if stop {
		a.Ended, err = k.Stop()
	} else {
		a.Keepers, err = k.Status()
	}
	return a, err
}

// stopping is an answer that knows what was asked.
type stopping struct {
	Answer
	stop bool
}

func (a stopping) write(w io.Writer) {
	switch {
	case a.Ended > 0:
		fmt.Fprintln(w, "The keeper has ended. What goes on over its connections connects anew.")
	case a.stop:
		fmt.Fprintln(w, "No keeper runs.")
	case len(a.Keepers) == 0:
		fmt.Fprintln(w, "No keeper runs: the next command that reaches a node starts one.")
	}
	for _, s := range a.Keepers {
		writeKeeper(w, s)
	}
	if !a.On {
		fmt.Fprintf(w, "%s turns it off for this shell.\n", keeper.Variable)
	}
}

// writeKeeper prints one keeper: its connections, a line each.
func writeKeeper(w io.Writer, s keeper.Status) {
	other := ""
	if !s.Current {
		other = ", of another build of dlwb: it ends by itself"
	}
	fmt.Fprintf(w, "keeper %d, since %s%s; keeps connections that nobody uses for %s\n", s.PID, s.Since.Local().Format(time.DateTime), other, s.Keep)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, n := range s.Nodes {
		use := fmt.Sprintf("%d in use", n.Users)
		if n.Users == 0 && !n.IdleSince.IsZero() {
			use = "idle for " + units.Duration(time.Since(n.IdleSince))
		}
		sanitize.Fprintf(t, "  %s\t%s@%s\t%s\n", n.Name, n.User, n.Addr, use)
	}
	for _, f := range s.Tunnels {
		leads := fmt.Sprintf("port %d here leads to port %d there", f.Port, f.Far)
		if f.Reverse {
			leads = fmt.Sprintf("port %d there leads to port %d here", f.Port, f.Far)
		}
		if !f.Stands.Connected {
			leads += "; its node is away: " + f.Stands.Why
		}
		sanitize.Fprintf(t, "  %s\ttunnel %s\t%s\n", f.Cluster, f.Name, leads)
	}
	_ = t.Flush()
}
