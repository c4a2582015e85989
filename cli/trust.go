package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/statedir"
	"github.com/dlwb/dlwb/workbench/trust"
)

// trustedAnswer is the list of trusted profiles.
type trustedAnswer struct {
	Profiles []trust.Entry `json:"profiles"`
}

// revokedAnswer says whose trust was taken back.
type revokedAnswer struct {
	Path    string `json:"path"`
	Revoked bool   `json:"revoked"` // false: it was not trusted
}

func (a *app) trustCommand() *cobra.Command {
	var hash string
	var list, revoke bool
	c := &cobra.Command{
		Use: "trust [PROFILE]", Short: "show what a profile would do, and let it", Args: cobra.MaximumNArgs(1),
		Long: `Shows what a profile would do: the hosts it connects to and who vouches for their
keys, what it pays, the programs it starts on this machine, the files and the
variables that it sends. Then it asks for a typed yes. Before that, nothing of
the profile is acted on: no program is started for it, no connection made.

What is trusted is the profile with its ignore files and the files that its
environment is made from, byte for byte. When one of them changes, dlwb asks
again. What dlwb init, the wizard and dlwb demo write is trusted as written.

Where nobody can be asked, --hash trusts exactly what has the hash that was
shown; --trust=HASH lets another command act on it once.`,
		Example: "  dlwb trust experiments/a.yaml\n  dlwb trust --hash 3f2a9c0b1d4e5f60718293a4b5c6d7e8\n  dlwb trust --list\n  dlwb trust --revoke experiments/a.yaml",
	}
	c.Flags().StringVar(&hash, "hash", "", "trust the profile if this is its hash, without asking")
	c.Flags().BoolVar(&list, "list", false, "list the profiles that are trusted")
	c.Flags().BoolVar(&revoke, "revoke", false, "do not trust the profile any more")
	c.MarkFlagsMutuallyExclusive("hash", "list", "revoke")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		gate, err := openGate()
		switch {
		case err != nil:
			return err
		case list:
			return a.listTrusted(gate)
		case revoke:
			return a.revoke(gate, args)
		}
		return a.decide(cmd.Context(), gate, args, hash)
	}
	return c
}

// openGate is the gate of the user's state directory, for commands that need
// nothing else of it.
func openGate() (*trust.Gate, error) {
	dir, err := statedir.Default()
	if err != nil {
		return nil, err
	}
	return trust.New(dir), nil
}

// decide shows a profile and asks about it, unless the answer was given.
func (a *app) decide(ctx context.Context, gate *trust.Gate, args []string, hash string) error {
	path, err := profilePath(args)
	if err != nil {
		return err
	}
	if hash != "" {
		if err := trust.CheckHash(hash); err != nil {
			return usageError{err}
		}
		s, err := gate.TrustHash(ctx, path, hash)
		if err != nil {
			return err
		}
		return a.answer(s, func(out io.Writer) { sanitize.Fprintf(out, "%s is trusted\n", s.Path) })
	}
	s, err := gate.LookAt(ctx, path)
	switch {
	case err != nil:
		return err
	case s.Trusted:
		return a.answer(s, func(out io.Writer) { io.WriteString(out, s.Text()) })
	}
	agreed, err := a.agrees(ctx, s)
	switch {
	case err != nil:
		return err
	case !agreed:
		return &trust.Untrusted{Subject: s, Shown: a.canSee()}
	}
	if err := gate.Trust(s); err != nil {
		return err
	}
	sanitize.Fprintf(a.out, "%s is trusted\n", s.Path)
	return nil
}

func (a *app) listTrusted(gate *trust.Gate) error {
	list, err := gate.List()
	if err != nil {
		return err
	}
	return a.answer(trustedAnswer{list}, func(out io.Writer) {
		for _, e := range list {
			sanitize.Fprintf(out, "%s  %s  %s\n", e.Hash, e.At.Local().Format("2006-01-02 15:04"), e.Path)
		}
		if len(list) == 0 {
			fmt.Fprintln(out, "no profile is trusted yet; dlwb trust PROFILE shows what one would do and asks")
		}
	})
}

// revoke takes the trust in a profile back. The profile itself may be gone.
func (a *app) revoke(gate *trust.Gate, args []string) error {
	path, err := profilePath(args)
	if err != nil {
		if len(args) == 0 {
			return err
		}
		path = args[0]
	}
	revoked, err := gate.Revoke(path)
	if err != nil {
		return err
	}
	return a.answer(revokedAnswer{path, revoked}, func(out io.Writer) {
		if revoked {
			sanitize.Fprintf(out, "%s is not trusted any more\n", path)
		} else {
			sanitize.Fprintf(out, "%s was not trusted\n", path)
		}
	})
}

// trustFlag adds --trust to a command that acts on a profile.
func (a *app) trustFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.trust, "trust", "", "let the profile with this hash act, once, without asking; dlwb trust shows it")
}

// planOf makes the plan of the profile that a command was given. One that is
// not trusted is shown, and trusted when whoever sits at the terminal says so.
func (a *app) planOf(ctx context.Context, w *workbench.Workbench, args []string) (*planning.Plan, error) {
	return a.planBy(ctx, w, args, w.Plans().Plan)
}

// planBy is planOf with another way to make the plan.
func (a *app) planBy(ctx context.Context, w *workbench.Workbench, args []string,
	plan func(ctx context.Context, path string) (*planning.Plan, error)) (*planning.Plan, error) {
	path, err := profileOf(w, args)
	if err != nil {
		return nil, err
	}
	a.planned = path
	if err := a.checkSecrets(); err != nil {
		return nil, err
	}
	return trusted(ctx, a, w, func() (*planning.Plan, error) { return plan(ctx, path) })
}

// trusted makes a plan, and makes it again when the answer to the question
// whether its profile is trusted was yes.
func trusted[T any](ctx context.Context, a *app, w *workbench.Workbench, plan func() (T, error)) (T, error) {
	var none T
	if a.trust != "" {
		if err := w.Gate().Accept(a.trust); err != nil {
			return none, usageError{err}
		}
	}
	made, err := plan()
	s := trust.Of(err)
	if s == nil || a.trust != "" {
		return made, err
	}
	switch agreed, stopped := a.agrees(ctx, s); {
	case stopped != nil:
		return none, stopped
	case !agreed:
		return none, &trust.Untrusted{Subject: s, Shown: a.canSee()}
	}
	if err := w.Gate().Trust(s); err != nil {
		return none, err
	}
	return plan()
}

// agrees shows what a profile would do and asks whether it may. Where nobody
// can be asked, or would see what the question is about, the answer is no.
func (a *app) agrees(ctx context.Context, s *trust.Subject) (bool, error) {
	if !a.canSee() {
		return false, nil
	}
	io.WriteString(a.err, s.Text())
	said, interrupted := a.askUntil("type yes to trust it and go on: ")
	if interrupted || ctx.Err() != nil {
		return false, context.Canceled
	}
	return said == "yes", nil
}

// canSee reports whether somebody can be asked and sees what about.
func (a *app) canSee() bool { return a.asks() && !a.onScreen.Load() && a.questions() }

// showUntrusted prints, as the answer of a command that only looks, what can be
// known of a profile that is not trusted. With --json the error has it.
func (a *app) showUntrusted(err error) {
	var u *trust.Untrusted
	if errors.As(err, &u) && !a.json && !u.Shown {
		_, _ = io.WriteString(a.out, u.Subject.Text())
		u.Shown = true
	}
}

// reportUntrusted shows what a profile would do that was refused.
func (a *app) reportUntrusted(u *trust.Untrusted) {
	if !u.Shown {
		io.WriteString(a.err, u.Subject.Text())
	}
	sanitize.Fprintf(a.err, "dlwb: %s\n  next: %s\n", u.Error(), u.Next())
}
