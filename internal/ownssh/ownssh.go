// Package ownssh reaches machines by the user's own ssh: by what its configuration says
// of a name, and over the connection that it keeps open there (ControlMaster), where
// there is one. A person has logged in by then, with a second factor or whatever else
// the login wants; nobody is asked anything here.
package ownssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/apart"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
)

// Prefix in front of a machine in a profile is its way: the user's own ssh.
const Prefix = "ssh:"

// nameForm is what ssh takes as the name of a machine, never as an option, and what
// means nothing to the shell of a ProxyCommand.
var nameForm = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*$`)

// Plain reports whether a name can be given to ssh.
func Plain(name string) bool { return nameForm.MatchString(name) }

// Cut gives the name behind the prefix. ssh:22 is port 22 of a host called ssh, and
// ssh://host an address.
func Cut(entry string) (name string, own bool) {
	name, own = strings.CutPrefix(entry, Prefix)
	if !own || strings.HasPrefix(name, "//") || strings.Trim(name, "0123456789") == "" {
		return entry, false
	}
	return name, true
}

// A Way is how a machine is reached. It is plain data.
type Way struct {
	Name   string `json:"name,omitempty"`   // as ssh knows it, or user@name; empty: there is no such way
	Config string `json:"config,omitempty"` // the file of the configuration; empty: the user's
	Agent  string `json:"agent,omitempty"`  // SSH_AUTH_SOCK
}

// At is the way to a machine from here. config is the file of the configuration; empty:
// what $DLWB_SSH_CONFIG says, else the user's.
func At(name, config string) Way {
	if config == "" {
		config = os.Getenv("DLWB_SSH_CONFIG")
	}
	return Way{name, config, os.Getenv("SSH_AUTH_SOCK")}
}

// Argv is the command that has a command line started there. Of what the user may have
// configured, nothing else is started.
func (w Way) Argv(line string) []string {
	argv := w.ssh()
	if _, is := direct.Load(w); is {
		argv = append(argv, "-o", "ControlPath=none")
	}
	argv = append(argv, "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none",
		"-o", "PermitLocalCommand=no", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15", "-o", "LogLevel=ERROR")
	return append(argv, "--", w.Name, line)
}

func (w Way) ssh() []string {
	if w.Config == "" {
		return []string{"ssh"}
	}
	return []string{"ssh", "-F", w.Config}
}

// Login is the command by which a person logs in there.
func (w Way) Login() string { return shellword.Join(append(w.ssh(), w.Name)...) }

// Env is the environment for the command: this process's, with the agent of the user.
func (w Way) Env() []string {
	if w.Agent == os.Getenv("SSH_AUTH_SOCK") {
		return nil
	}
	return append(os.Environ(), "SSH_AUTH_SOCK="+w.Agent)
}

// Lost is the code that ssh ends with when it is ssh that failed, and not the command.
const Lost = 255

// Run runs a command line there. The error is an *Error where ssh does not get there, or
// the context's; else code is what the command ended with.
func (w Way) Run(ctx context.Context, line string, in io.Reader, out, errs io.Writer) (code int, err error) {
	if err := w.check(); err != nil {
		return -1, err
	}
	var said tail
	c := w.command(ctx, w.Argv(line))
	c.Stdin, c.Stdout, c.Stderr = in, out, io.MultiWriter(&said, errs)
	err = c.Run()
	if ctx.Err() != nil {
		return -1, context.Cause(ctx)
	}
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &ended) && ended.ExitCode() == Lost:
		return -1, w.Failed(said.String())
	case errors.As(err, &ended):
		return ended.ExitCode(), nil
	case c.ProcessState != nil && c.ProcessState.Exited(): // it took less than it was given
		return c.ProcessState.ExitCode(), nil
	}
	return -1, fmt.Errorf("start ssh: %w", err)
}

// command is a program that ends with ctx, and what it has started.
func (w Way) command(ctx context.Context, argv []string) *exec.Cmd {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Env = w.Env()
	apart.Set(c)
	c.Cancel = func() error { apart.Kill(c); return nil }
	c.WaitDelay = time.Second
	return c
}

func (w Way) check() error {
	if !Plain(w.Name) {
		return fmt.Errorf("%q is no machine for ssh", w.Name)
	}
	if _, err := exec.LookPath("ssh"); err != nil {
		return fmt.Errorf("ssh is not installed here: %w", err)
	}
	return nil
}

// localLimit bounds what ssh is asked about itself.
const localLimit = 5 * time.Second

// Master is the number of the process that keeps a connection to the machine; empty:
// none does. Nothing is sent to the machine.
func (w Way) Master(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, localLimit)
	defer cancel()
	var said tail
	c := w.command(ctx, append(w.ssh(), "-O", "check", "--", w.Name))
	c.Stderr = &said
	if c.Run() != nil {
		return ""
	}
	_, pid, _ := strings.Cut(said.String(), "pid=")
	pid, _, _ = strings.Cut(pid, ")")
	return "process " + pid
}

// settings are what ssh's configuration says of the machine.
func (w Way) settings(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, localLimit)
	defer cancel()
	var out strings.Builder
	c := w.command(ctx, append(w.ssh(), "-G", "--", w.Name))
	c.Stdout = &out
	_ = c.Run() // what it does not say is not known
	all := map[string]string{}
	for line := range strings.Lines(out.String()) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[key] = value
	}
	return all
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailMost = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-tailMost):]...)
	t.kept = t.kept[max(0, len(t.kept)-tailMost):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
