//go:build unix

package wedge

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// session serves one session.
func (s *Server) session(c *conn, ch ssh.Channel, requests <-chan *ssh.Request) {
	stop := make(chan struct{})
	defer close(stop)
	for r := range requests {
		ok := true
		switch r.Type {
		case "exec", "shell":
			s.hang(ExecReply, c.over)
			var line struct{ Text string }
			_ = ssh.Unmarshal(r.Payload, &line)
			s.tasks.Go(func() { s.run(c, ch, line.Text, stop) })
		case "subsystem":
			s.hang(SubsystemReply, c.over)
		case "env":
		default:
			ok = false
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}

// run runs a command, or hangs in its place.
func (s *Server) run(c *conn, ch ssh.Channel, line string, stop <-chan struct{}) {
	for _, stage := range []Stage{Mute, NoReading} {
		s.hang(stage, c.over)
	}
	for s.at(Drip) {
		if _, err := ch.Write([]byte("x")); err != nil {
			return
		}
		select {
		case <-time.After(time.Minute):
		case <-c.over:
			return
		case <-s.ended:
			return
		}
	}
	status := s.command(c, ch, line, stop)
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
	_ = ch.Close()
}

// command runs a real command to its end and gives its exit code. As with sshd,
// all that it is told of the end of its session is that its stdin is closed and
// its stdout is gone; what goes on after the test is ended by sweep.
func (s *Server) command(c *conn, ch ssh.Channel, line string, stop <-chan struct{}) int {
	args := []string{"-c", line}
	if line == "" {
		args = nil
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = s.Home
	cmd.Env = append(os.Environ(), "HOME="+s.Home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out := &agentOut{s: s, c: c, to: ch, began: make(chan struct{}), struck: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, ch.Stderr()
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 127
	}
	go func() {
		_, _ = io.Copy(in, &agentIn{out, ch})
		_ = in.Close()
	}()
	over := make(chan struct{})
	defer close(over)
	s.tasks.Go(func() { s.torment(cmd.Process.Pid, out, over) })
	go func() {
		select {
		case <-stop:
			_ = in.Close()
		case <-over:
		}
	}()
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// sweep ends every process that has the server's home, until there is none.
func (s *Server) sweep() {
	for found := true; found; {
		found = false
		processes, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range processes {
			environ, err := os.ReadFile(file)
			if err != nil || !strings.Contains("\x00"+string(environ), "\x00HOME="+s.Home+"\x00") {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
			}
		}
	}
}
