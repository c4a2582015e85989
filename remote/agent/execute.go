//go:build linux

package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/dlwb/dlwb/remote/agent/printed"
	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// termGrace is how long a command has after TERM when nobody waits for it any more.
	termGrace = 3 * time.Second
	// drainLimit is how long output is waited for after a command's end: what it left
	// running may hold the pipe for ever.
	drainLimit = time.Second
	// room is what lies in a pipe or a terminal.
	room = 64 << 10
)

// execute runs a command. The command and what it starts in its process group
// end with the call.
func execute(ctx context.Context, s *wire.Stream) error {
	var r wire.ExecRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	j, err := begin(r)
	if err != nil {
		return wire.Faultf(wire.Failed, "start the command: %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		j.take(s)
	}()
	flows := []outflow{{printed.From(j.out, room, wire.ChunkMost), func(p []byte) wire.ExecOutput { return wire.ExecOutput{Out: p} }}}
	if j.errs != nil {
		flows = append(flows, outflow{printed.From(j.errs, room, wire.ChunkMost), func(p []byte) wire.ExecOutput { return wire.ExecOutput{Err: p} }})
	}
	var outs sync.WaitGroup
	for _, o := range flows {
		outs.Go(func() { o.copyTo(s) })
	}
	exit := j.wait(ctx)
	j.drain(&outs, flows)
	return s.Send(wire.ExecOutput{Exit: &exit})
}

// job is a command that runs.
type job struct {
	cmd       *exec.Cmd
	in        io.WriteCloser // nil: none
	out, errs *os.File
	terminal  *os.File // nil: none
}

func begin(r wire.ExecRequest) (*job, error) {
	cmd := exec.Command(shell(), "-c", r.Line)
	cmd.Dir = home()
	if r.Pty != nil {
		return beginPty(cmd, r)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, outRead.Close(), outWrite.Close())
	}
	cmd.Stdout, cmd.Stderr = outWrite, errWrite
	j := &job{cmd: cmd, out: outRead, errs: errRead}
	if r.Input {
		j.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	_, _ = outWrite.Close(), errWrite.Close()
	if err != nil {
		_, _ = outRead.Close(), errRead.Close()
		return nil, err
	}
	return j, nil
}

// beginPty starts a command, or the login shell, in a terminal.
func beginPty(cmd *exec.Cmd, r wire.ExecRequest) (*job, error) {
	if r.Line == "" {
		login := os.Getenv("SHELL")
		if !isProgram(login) {
			login = shell()
		}
		cmd = exec.Command(login)
		cmd.Args[0] = "-" + filepath.Base(login)
		cmd.Dir = home()
	}
	cmd.Env = append(os.Environ(), "TERM="+r.Pty.Term)
	size := &pty.Winsize{Cols: cells(r.Pty.Width), Rows: cells(r.Pty.Height)}
	terminal, err := pty.StartWithSize(cmd, size)
	if err != nil {
		return nil, err
	}
	return &job{cmd: cmd, in: noClose{terminal}, out: terminal, terminal: terminal}, nil
}

// noClose is a terminal as input: its end is typed by the user.
type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// cells is a width or a height that a terminal can have.
func cells(n int) uint16 { return uint16(min(max(n, 1), 10_000)) }

// take passes on what the caller sends, until the caller goes.
func (j *job) take(s *wire.Stream) {
	for {
		var in wire.ExecInput
		if err := s.Recv(&in); err != nil {
			return
		}
		if len(in.Data) > 0 && j.in != nil {
			_, _ = j.in.Write(in.Data) // who does not read loses it, as with any pipe
		}
		if in.End && j.in != nil {
			_ = j.in.Close()
		}
		if in.Signal > 0 && in.Signal < 65 {
			j.signal(syscall.Signal(in.Signal))
		}
		if j.terminal != nil && in.Width > 0 {
			_ = pty.Setsize(j.terminal, &pty.Winsize{Cols: cells(in.Width), Rows: cells(in.Height)})
		}
	}
}

// signal is for the command's whole process group, of which it is the first.
func (j *job) signal(sig syscall.Signal) { _ = syscall.Kill(-j.cmd.Process.Pid, sig) }

// wait waits for the command's end. When ctx ends it is wound down.
func (j *job) wait(ctx context.Context) wire.Exit {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		if j.terminal != nil { // a login shell minds only this
			j.signal(syscall.SIGHUP)
		}
		j.signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(termGrace):
		}
		j.signal(syscall.SIGKILL)
	}()
	_ = j.cmd.Wait() // how it ended is in its state
	close(ended)
	return exitOf(j.cmd.ProcessState)
}

// drain waits until the output is read, and closes it.
func (j *job) drain(outs *sync.WaitGroup, flows []outflow) {
	read := make(chan struct{})
	go func() {
		outs.Wait()
		close(read)
	}()
	for _, o := range flows {
		o.Ended()
	}
	enough, look := time.Now().Add(drainLimit), time.NewTicker(drainLimit/10)
	defer look.Stop()
	for more := true; more; {
		select {
		case <-read:
			more = false
		case <-look.C:
			more = time.Now().Before(enough) || slices.ContainsFunc(flows, outflow.MayBring)
		}
	}
	_ = j.out.Close()
	if j.errs != nil {
		_ = j.errs.Close()
	}
	<-read
}

// outflow is an output of a command on its way to the caller, who may be slow to take it.
type outflow struct {
	*printed.Reader
	message func([]byte) wire.ExecOutput
}

// copyTo sends what comes. When the caller does not take it any more it is
// read all the same, so that the command does not wait for ever.
func (o outflow) copyTo(s *wire.Stream) {
	buf := make([]byte, wire.ChunkMost)
	for sent := true; ; {
		n, err := o.Read(buf)
		if n > 0 && sent {
			sent = s.Send(o.message(buf[:n])) == nil
		}
		if err != nil {
			return
		}
	}
}

// exitOf gives a shell's exit code, and the signal.
func exitOf(p *os.ProcessState) wire.Exit {
	status, ok := p.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return wire.Exit{Code: 128 + int(status.Signal()), Signal: int(status.Signal())}
	}
	return wire.Exit{Code: p.ExitCode()}
}
