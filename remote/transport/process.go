package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/apart"
)

// A Program of this machine is a way to another one when it runs a command there
// and passes its input and output on.
type Program struct {
	Argv []string // with the command line as its last argument
	// Linger leaves a program that does not end with its input to itself: to end
	// it would also end what the command has started and left behind there.
	Linger bool
	// Env is the program's environment; nil: this process's.
	Env []string
	// Ended makes an error of the way's end of how a program has ended by itself, with
	// its code and what it said; nil: a program's end is only its own.
	Ended func(code int, said string) error
}

// Local is this machine itself.
func Local() Opener { return Program{Argv: []string{"sh", "-c"}}.Open }

// Podman is a running container of podman's.
func Podman(container string) Opener {
	return Program{Argv: []string{"podman", "exec", "--interactive", container, "sh", "-c"}}.Open
}

// Slurm is a node of a job that runs. Each command is a step of that job: Slurm
// ends the step, and where it tracks processes by cgroup all that it has started,
// when srun is killed, and when the command has ended. Without --unbuffered bytes
// wait for the end of a line.
func Slurm(job, node string) Opener {
	return Program{Linger: true, Argv: []string{"srun", "--jobid", job, "--overlap", "--nodes", "1", "--ntasks", "1",
		"--nodelist", node, "--unbuffered", "--quiet", "sh", "-c"}}.Open
}

// Open is an Opener. It fails where the program is not installed; whether it gets
// through is seen with the first command.
func (p Program) Open(context.Context) (Machine, error) {
	path, err := exec.LookPath(p.Argv[0])
	if err != nil {
		return nil, fmt.Errorf("%s is not installed here: %w", p.Argv[0], err)
	}
	return &programs{Program: p, path: path, running: map[*program]bool{}, done: make(chan struct{})}, nil
}

// programs is an open way: the commands that run over it.
type programs struct {
	Program
	path string
	done chan struct{}

	mu      sync.Mutex
	err     error
	running map[*program]bool
}

func (m *programs) Done() <-chan struct{} { return m.done }

func (m *programs) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *programs) Kill(why error) {
	m.mu.Lock()
	if m.err != nil {
		m.mu.Unlock()
		return
	}
	m.err = why
	running := slices.Collect(maps.Keys(m.running))
	m.mu.Unlock()
	for _, c := range running {
		_ = c.Close()
	}
	close(m.done)
}

// Start starts a program of its own for the command. It is in a session of its
// own: the keys that a user presses here are not for it.
func (m *programs) Start(ctx context.Context, line string) (Command, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	c := &program{of: m, cmd: exec.Command(m.path, append(m.Argv[1:len(m.Argv):len(m.Argv)], line)...), ended: make(chan struct{})}
	c.cmd.Env = m.Env
	apart.Set(c.cmd)
	c.cmd.Stderr, c.cmd.WaitDelay = &c.said, stderrWait
	if err := c.start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", m.Argv[0], err)
	}
	m.running[c] = true
	go func() {
		_ = c.cmd.Wait()
		m.mu.Lock()
		delete(m.running, c)
		m.mu.Unlock()
		m.judge(c)
		close(c.ended)
	}()
	return c, nil
}

// judge ends the way where the end of a program shows that it has ended.
func (m *programs) judge(c *program) {
	if m.Ended == nil || c.closed.Load() && !c.over.Load() {
		return
	}
	if err := m.Ended(c.cmd.ProcessState.ExitCode(), c.said.String()); err != nil {
		m.Kill(err)
	}
}

// stderrWait is how long the error output is read after a program's end: something
// that it left behind may have kept it.
const stderrWait = time.Second

// program is one command.
type program struct {
	of      *programs
	cmd     *exec.Cmd
	in, out *os.File // this side's ends of its pipes
	said    Tail
	ended   chan struct{}
	closing sync.Once
	over    atomic.Bool // nothing more comes from it
	closed  atomic.Bool // by this side
}

// start gives the program pipes whose ends here are files: what waits on them is
// given up when they are closed.
func (c *program) start() error {
	in, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	theirs, out, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close(), ours.Close())
	}
	c.cmd.Stdin, c.cmd.Stdout, c.in, c.out = in, out, ours, theirs
	err = c.cmd.Start()
	_, _ = in.Close(), out.Close()
	if err != nil {
		_, _ = ours.Close(), theirs.Close()
	}
	return err
}

func (c *program) Read(b []byte) (int, error) {
	n, err := c.out.Read(b)
	if err == io.EOF {
		c.over.Store(true)
	}
	return n, err
}

func (c *program) Write(b []byte) (int, error) { return c.in.Write(b) }

// Close closes the pipes, which is the end of the command's input, and ends the
// program.
func (c *program) Close() error {
	c.closing.Do(func() {
		c.closed.Store(true)
		_, _ = c.in.Close(), c.out.Close()
		select {
		case <-c.ended:
		default:
			switch {
			case c.of.Linger:
			case c.of.Ended != nil && c.over.Load():
				go c.leave()
			default:
				apart.Kill(c.cmd)
			}
		}
	})
	return nil
}

// leave lets a program that is about to end tell how, and kills it when it does not end.
func (c *program) leave() {
	select {
	case <-c.ended:
	case <-time.After(stderrWait):
		apart.Kill(c.cmd)
	}
}

func (c *program) Said() string {
	select {
	case <-c.ended:
	case <-time.After(stderrWait):
	}
	return c.said.String()
}
