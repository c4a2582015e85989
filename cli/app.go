// Package cli is the headless face of dlwb: one small file for each command,
// which prints text or JSON out of the same values.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/console"
	"github.com/dlwb/dlwb/cli/diary"
	"github.com/dlwb/dlwb/cli/keeping"
	"github.com/dlwb/dlwb/cli/told"
	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2"
	"github.com/dlwb/dlwb/cloud/ecs"
	"github.com/dlwb/dlwb/cloud/hosts"
	"github.com/dlwb/dlwb/cloud/kubernetes"
	"github.com/dlwb/dlwb/cloud/local"
	"github.com/dlwb/dlwb/cloud/sagemaker"
	"github.com/dlwb/dlwb/cloud/slurm"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/keeper"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/settings"
	"github.com/dlwb/dlwb/sshkeys"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/atnode"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/statedir"
	"github.com/dlwb/dlwb/workbench/trust"
)

// app is what every command needs: where to read and write, and how.
type app struct {
	door
	in       io.Reader
	json     bool
	plain    bool
	theme    string
	glyphs   string
	readOnly bool
	allowed  settings.Settings      // by flags, to this profile
	planned  string                 // its path; empty: it is not known
	skip     func(event.Event) bool // events that a command does not print; nil: it prints all
	trust    string                 // the hash that --trust names

	interrupted <-chan struct{} // closed by the first signal that asks for an end
	asking      sync.Mutex
	answers     *bufio.Reader
	onScreen    atomic.Bool // a screen has the terminal
	said        lastSaid
}

func newApp(in io.Reader, out, err io.Writer) *app { return &app{in: in, door: newDoor(out, err)} }

// parts are what the nodes of a local cluster are made of, and what holds
// connections between commands: this same program, started under these names. They
// are no commands for people.
var parts = map[string]func(args []string) int{
	"__node":       local.NodeMain,
	"__peer-ssh":   local.PeerSSHMain,
	"__nvidia-smi": local.SimulatedSMIMain,
	keeper.Command: keeper.Main,
}

// Main runs the command line and returns the exit code of the process.
func Main(args []string) int {
	if len(args) > 0 {
		if part, ok := parts[args[0]]; ok {
			return part(args[1:])
		}
	}
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	ctx, stop := a.interruptible()
	defer stop()
	// Without a handler a write to a closed pipe would end the process where
	// it stands; with one it is an error like any other.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	defer a.adopt()()
	log, err := diary.Open()
	if err != nil {
		a.report(err)
		return exitCode(err)
	}
	defer log.Close()
	code := a.guarded(func() int { return a.run(ctx, args) })
	slog.Debug("ended", "exit_code", code)
	return code
}

// endings are the signals that ask for a clean end. A hang-up is one unless
// dlwb was started to outlive it, as by nohup.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func (a *app) run(ctx context.Context, args []string) int {
	learnRecipes()
	root := a.root()
	a.json = asksJSON(args)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if lost := a.lost(); err == nil {
		err = lost
	} else if errors.As(err, new(runError)) {
		a.report(lost)
	}
	a.report(err)
	_ = a.close() // whatever could not be written before can't be now
	return exitCode(err)
}

// report says what went wrong. With --json it is an object like every other
// line, unless those are lost.
func (a *app) report(err error) {
	var said runError
	if err == nil || errors.As(err, &said) || errors.Is(err, context.Canceled) || unread(err) {
		return
	}
	var untrusted *trust.Untrusted
	if errors.As(err, &untrusted) && !a.json {
		a.reportUntrusted(untrusted)
		return
	}
	var fault *event.Fault
	if untrusted != nil {
		fault = &event.Fault{What: "trust the profile", Node: -1, Why: untrusted.Error(), Next: untrusted.Next()}
	} else if !errors.As(err, &fault) {
		fault = &event.Fault{What: "dlwb", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	if a.json && a.lost() == nil {
		_ = a.encode(errorEvent{Event: "error", Time: timeNow(), ExitCode: exitCode(err), Text: err.Error(), Failure: fault, Untrusted: trust.Of(err)})
		return
	}
	var profile profiles.Errors
	if errors.As(err, &profile) {
		fmt.Fprintln(a.err, profile.Detail())
		return
	}
	// What is behind the first line is indented: no text begins a line as we do.
	fmt.Fprintln(a.err, "dlwb: "+strings.ReplaceAll(sanitize.Plain(err.Error()), "\n", "\n  "))
	told.Fault(a.err, fault)
}

// errorEvent is what --json prints for a command that could not do its work.
// It is made here and stored nowhere, so it is no workbench.Event.
type errorEvent struct {
	Event    string       `json:"event"`
	Time     time.Time    `json:"time"`
	ExitCode int          `json:"exit_code"`
	Text     string       `json:"text"`
	Failure  *event.Fault `json:"failure"`
	// Untrusted is what a profile would do that nobody has trusted.
	Untrusted *trust.Subject `json:"untrusted,omitempty"`
}

// bench opens the workbench in the user's state directory.
func (a *app) bench() (*workbench.Workbench, error) {
	dir, err := statedir.Default()
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find dlwb's own program file: %w", err)
	}
	sshkeys.AskWith(a.askPassphrase)
	if err := keeping.Borrow(dir, exe); err != nil {
		return nil, err
	}
	own := hosts.New(hosts.Options{Dir: filepath.Join(dir, "hosts"), Confirm: a.confirmHost})
	return workbench.Open(workbench.Options{
		Dir: dir, Settings: a.settings,
		Jobs: []cloud.JobProvider{
			slurm.New(slurm.Options{Dir: filepath.Join(dir, "slurm"), Login: own.One, Logins: own.Aliases, Machine: atnode.NewStation}),
			kubernetes.New(),
			sagemaker.New(),
			ecs.New(),
		},
		Providers: []cloud.Provider{
			local.New(filepath.Join(dir, "local"), exe),
			own,
			ec2.New(ec2.Options{Dir: filepath.Join(dir, "ec2"), Jump: own.Jumps}),
		},
	})
}

// with runs a command that needs the workbench.
func (a *app) with(do func(ctx context.Context, w *workbench.Workbench, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		w, err := a.bench()
		if err != nil {
			return err
		}
		a.said.now()
		telling, enough := context.WithCancel(context.Background())
		defer enough()
		go a.tellWaits(telling)
		defer func() { err = errors.Join(err, closeWithin(cmd.Context(), w.Close)) }()
		return do(cmd.Context(), w, args)
	}
}

// screen reports whether the terminal screen can be shown: somebody looks, and
// did not ask for lines.
func (a *app) screen() bool {
	return !a.plain && !a.json && !console.Dumb() && a.atTerminal() && a.terminal() != nil
}

// confirmHost asks whether a host that is not known yet is the right one. Where
// nobody can be asked the answer is no, and the provider says what to do.
func (a *app) confirmHost(host, fingerprint string) bool {
	if a.json || a.onScreen.Load() || !a.atTerminal() {
		return false
	}
	return a.ask(sanitize.Sprintf("%s is not known yet and shows the key %s\ntype yes if that is its key: ", host, fingerprint)) == "yes"
}

// ask asks whoever sits at the terminal, one question at a time.
func (a *app) ask(question string) string {
	said, _ := a.askUntil(question)
	return said
}

// askUntil is ask; it tells, too, whether Ctrl-C ended the question.
func (a *app) askUntil(question string) (said string, interrupted bool) {
	a.asking.Lock()
	defer a.asking.Unlock()
	if a.answers == nil {
		a.answers = bufio.NewReader(a.in)
	}
	fmt.Fprint(a.err, question)
	typed := make(chan string, 1)
	go func() {
		line, err := a.answers.ReadString('\n')
		if err != nil { // half a line is no answer
			line = ""
		}
		typed <- line
	}()
	select {
	case line := <-typed:
		return strings.TrimSpace(line), false
	case <-a.interrupted:
		fmt.Fprintln(a.err)
		return "", true
	}
}

// askPassphrase asks for the passphrase of a key, without showing it. Where
// nobody can be asked there is none, and the error says what to do.
func (a *app) askPassphrase(file string, again bool) ([]byte, bool) {
	if a.json || a.onScreen.Load() || !a.atTerminal() {
		return nil, false
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	in := a.in.(*os.File)
	before, err := term.GetState(in.Fd())
	if err != nil {
		return nil, false
	}
	defer func() { _ = term.Restore(in.Fd(), before) }()
	wrong := ""
	if again {
		wrong = "that was not it; "
	}
	sanitize.Fprintf(a.err, "%spassphrase of %s: ", wrong, file)
	defer fmt.Fprintln(a.err)
	typed := make(chan []byte, 1)
	go func() {
		text, err := term.ReadPassword(in.Fd())
		if err != nil {
			text = nil
		}
		typed <- text
	}()
	select {
	case text := <-typed:
		return text, len(text) > 0
	case <-a.interrupted: // the terminal must not stay silent
		return nil, false
	}
}

// atTerminal reports whether somebody can be asked.
func (a *app) atTerminal() bool {
	in, ok := a.in.(*os.File)
	return ok && term.IsTerminal(in.Fd())
}

// answer prints a value: as JSON, or as the text that text makes.
func (a *app) answer(v any, text func(w io.Writer)) error {
	if a.json {
		return a.encode(v)
	}
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(a.out, b.String())
	return err
}

// profileName is the profile of a directory.
const profileName = "dlwb.yaml"

// profilePath turns the argument of a command into the path of a profile: a
// file, a directory that holds one, or nothing for the present directory.
func profilePath(args []string) (string, error) {
	path := "."
	if len(args) > 0 {
		path = args[0]
	}
	if filepath.Ext(path) == ".py" {
		return "", usageError{fmt.Errorf("%s is a script, and a profile is needed; dlwb init writes one for its directory", path)}
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		inside := filepath.Join(path, profileName)
		if _, err := os.Stat(inside); err != nil {
			return "", usageError{fmt.Errorf("there is no %s in %s%s; dlwb init writes one", profileName, path, nearProfile(inside))}
		}
		return filepath.Abs(inside)
	case err == nil:
		return filepath.Abs(path)
	case filepath.Ext(path) == "":
		if _, err := os.Stat(path + ".yaml"); err == nil {
			return filepath.Abs(path + ".yaml")
		}
	}
	return "", usageError{fmt.Errorf("there is no profile %s%s; dlwb init writes one for the present directory", path, nearProfile(path))}
}

// profileOf is profilePath for a command that knows clusters: where there is no
// such file, a cluster's name or the id of a run on it stands for its profile.
func profileOf(w *workbench.Workbench, args []string) (string, error) {
	path, err := profilePath(args)
	if err == nil || len(args) == 0 {
		return path, err
	}
	if c, found := w.FindCluster(args[0]); found == nil && c.ProfilePath != "" {
		return c.ProfilePath, nil
	}
	return "", err
}

// nearProfile says why a profile that is there can't be had, or asks whether another
// was meant that lies in the same directory; empty when none is like it.
func nearProfile(path string) string {
	if _, err := os.Stat(path); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ELOOP) {
		return fmt.Sprintf(" that can be read: %v", err)
	}
	if to, err := os.Readlink(path); err == nil {
		return fmt.Sprintf(" but a link that leads nowhere, to %s", to)
	}
	var names []string
	for _, ext := range []string{"*.yaml", "*.yml"} {
		found, _ := fs.Glob(os.DirFS(filepath.Dir(path)), ext)
		names = append(names, found...)
	}
	if near := nearword.Nearest(filepath.Base(path), names); near != "" {
		return fmt.Sprintf("; did you mean %s?", filepath.Join(filepath.Dir(path), near))
	}
	return ""
}
