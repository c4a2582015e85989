package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/console"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/sshconn"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

func (a *app) sshCommand() *cobra.Command {
	var config, include, stdio, yes bool
	c := &cobra.Command{
		Use: "ssh CLUSTER [NODE] [-- COMMAND...]", Short: "a shell on a node (the head without a number)",
		Long: `Opens a shell on a node, or runs a command there. The words after -- are passed
as they are; for a pipe use sh -c '…'. Where input or output is no terminal the
streams are passed through, and without a command sh reads its commands from
the input. The exit code is that of the shell or the command. In a shell, Enter
~ . leaves a node that does not answer, as in ssh(1); not so in a training job of
SageMaker, whose shell AWS's session-manager-plugin carries.

A shell on a terminal is passed through, as by ssh: your terminal obeys what the
node writes there. Of a command that runs without one, a file or a pipe gets the
exact bytes, and a terminal text and colours only.

With --config it prints a configuration for your own ssh, and for scp, rsync
and editors: ssh -F FILE node0. The file is kept up to date while the cluster
is up and removed with it; host keys are checked, jump hosts are used.

dlwb ssh --include offers the one line for ~/.ssh/config that makes the nodes
of all clusters known by name, as CLUSTER-0 or CLUSTER.node0. It is shown and
asked for first (--yes answers), and added once, at the top.`,
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if include {
			return cobra.NoArgs(cmd, args)
		}
		return cobra.MinimumNArgs(1)(cmd, args)
	}
	c.Flags().BoolVar(&config, "config", false, "print a configuration for your own ssh instead")
	c.Flags().BoolVar(&include, "include", false, "offer the line for ~/.ssh/config that makes all nodes known by name")
	c.Flags().BoolVar(&yes, "yes", false, "with --include: add the line without asking")
	c.Flags().BoolVar(&stdio, "stdio", false, "carry the bytes of your own ssh to the node's sshd: a ProxyCommand")
	c.MarkFlagsMutuallyExclusive("config", "include", "stdio")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		switch {
		case include:
			return a.includeSSH(w, yes)
		case config:
			return a.printSSHConfig(w, args[0])
		}
		node, words := 0, args[1:]
		if len(words) > 0 && c.ArgsLenAtDash() != 1 {
			if n, err := strconv.Atoi(strings.TrimPrefix(words[0], "node")); err == nil {
				node, words = n, words[1:]
			}
		}
		n, err := w.Node(args[0], node)
		if err != nil {
			return err
		}
		if stdio {
			return a.carry(ctx, n)
		}
		return a.shell(ctx, n, shellword.Join(words...))
	})
	return c
}

// carry passes bytes between this program's streams and a node's sshd.
func (a *app) carry(ctx context.Context, n *remote.Node) error {
	to, err := a.exact("what sshd says", "this is for ssh's ProxyCommand")
	if err != nil {
		return err
	}
	reach := n.Target().Reach
	if reach == nil {
		return fmt.Errorf("%s is reached by TCP: ssh needs no other program for that", n.Name())
	}
	dial, cancel := context.WithTimeout(ctx, sshconn.Standard.Dial)
	defer cancel()
	conn, err := reach(dial)
	if err != nil {
		return fmt.Errorf("reach %s: %w", n.Name(), err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() {
		_, _ = io.Copy(conn, a.in)
		_ = conn.Close()
	}()
	_, _ = io.Copy(to, conn)
	return nil
}

func (a *app) printSSHConfig(w *workbench.Workbench, cluster string) error {
	made, err := w.SSH().Config(cluster)
	if err != nil {
		return err
	}
	return a.answer(made, func(out io.Writer) {
		sanitize.Fprintf(out, "# ssh -F %s node0\n", shellword.Join(made.File))
		io.WriteString(out, made.Text)
	})
}

// includeSSH offers the line for ~/.ssh/config. That file is the user's: it is
// touched after a yes only.
func (a *app) includeSSH(w *workbench.Workbench, yes bool) error {
	in, err := w.SSH().Include()
	if err != nil {
		return err
	}
	if !in.There && !a.json {
		sanitize.Fprintf(a.err, "at the top of %s this line makes the nodes of your clusters known by name (ssh CLUSTER-0):\n  %s\n",
			in.File, in.Line)
		if !yes && a.atTerminal() {
			yes = a.ask("type yes to add it: ") == "yes"
			if !yes {
				return errors.New("nothing was changed")
			}
		}
	}
	if !in.There && yes {
		if in, err = w.SSH().AddInclude(); err != nil {
			return err
		}
	}
	return a.answer(in, func(out io.Writer) {
		switch {
		case in.Added:
			sanitize.Fprintf(out, "added; %s\n", in.Undo)
		case in.There:
			sanitize.Fprintf(out, "%s has the line already; %s\n", in.File, in.Undo)
		default:
			fmt.Fprintln(out, "nothing was changed; add it yourself, or with dlwb ssh --include --yes")
		}
	})
}

// shell gives the terminal to a node. Where input or output is none, it passes
// the streams through.
func (a *app) shell(ctx context.Context, n *remote.Node, line string) error {
	out := a.terminal()
	if out == nil || !a.atTerminal() {
		return a.pipe(ctx, n, line)
	}
	in := a.in.(*os.File)
	if v := n.Visit(); v != nil && line == "" {
		program, end, err := v.Shell(ctx)
		if err != nil {
			return &event.Fault{What: "open a shell on " + n.Name(), Node: -1, Why: err.Error(), Next: event.NextOf(err)}
		}
		defer end()
		return exitOf(console.Give(program, in, out))
	}
	if err := n.Connect(ctx); err != nil {
		return err // said while the terminal is still its old self
	}
	state, err := term.MakeRaw(in.Fd())
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	defer func() { _ = term.Restore(in.Fd(), state) }()
	width, height, err := term.GetSize(out.Fd())
	if err != nil {
		width, height = 80, 24
	}
	resize, stop := console.Sizes(out)
	defer stop()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var heard atomic.Bool
	typed := console.NewEscape(in, heard.Load, leave)
	code, err := n.Shell(ctx, remote.Pty{
		Line: line, Term: os.Getenv("TERM"), Width: width, Height: height, Resize: resize,
		Stdin: typed.Ahead(), Stdout: &noting{out, &heard},
	})
	return exitOf(code, err)
}

// noting notes that something was written.
type noting struct {
	io.Writer
	done *atomic.Bool
}

// Write passes on.
func (n *noting) Write(p []byte) (int, error) {
	n.done.Store(true)
	return n.Writer.Write(p)
}

func (a *app) pipe(ctx context.Context, n *remote.Node, line string) error {
	if line == "" {
		line = "sh -s"
	}
	stdout, stderr := a.passed()
	res, err := n.Exec(ctx, remote.Cmd{Line: line, Stdin: a.in, Stdout: stdout, Stderr: stderr, Quiet: remote.NoLimit})
	return exitOf(res.ExitCode, err)
}

func exitOf(code int, err error) error {
	if err == nil && code != 0 {
		return runError{code}
	}
	return err
}
