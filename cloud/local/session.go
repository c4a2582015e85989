//go:build unix

package local

import (
	"errors"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// session is one session channel: a command, a shell or the sftp subsystem.
type session struct {
	node *node
	conn *ssh.ServerConn
	ch   ssh.Channel
	may  grants
	env  []string
	term *ptyRequest

	mu      sync.Mutex
	started bool
	tty     *os.File
	pid     int         // 0: none runs
	streams []io.Closer // our ends of what the command reads and writes
}

// ptyRequest is the payload of pty-req (RFC 4254, 6.2).
type ptyRequest struct {
	Term                         string
	Columns, Rows, Width, Height uint32
	Modes                        string
}

// session serves one session channel until the other side closes it.
func (n *node) session(conn *ssh.ServerConn, c ssh.NewChannel, may grants) {
	ch, requests, err := c.Accept()
	if err != nil {
		return
	}
	s := &session{node: n, conn: conn, ch: ch, may: may}
	for r := range requests {
		ok := s.request(r.Type, r.Payload)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if ok && starts(r.Type) {
			s.begin(r.Type, r.Payload)
		}
	}
	s.hangUp()
	_ = ch.Close()
}

func starts(kind string) bool { return kind == "exec" || kind == "shell" || kind == "subsystem" }

// request does what needs no reply first, and says whether all is granted.
func (s *session) request(kind string, payload []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "env":
		var v struct{ Name, Value string }
		if s.started || ssh.Unmarshal(payload, &v) != nil || !acceptEnv(v.Name) {
			return false
		}
		s.env = append(s.env, v.Name+"="+v.Value)
		return true
	case "pty-req":
		var r ptyRequest
		if s.started || !s.may.pty || ssh.Unmarshal(payload, &r) != nil {
			return false
		}
		s.term = &r
		return true
	case "window-change":
		var w struct{ Columns, Rows, Width, Height uint32 }
		if s.tty == nil || ssh.Unmarshal(payload, &w) != nil {
			return false
		}
		return setSize(s.tty, w.Columns, w.Rows) == nil
	case "signal":
		var name struct{ Name string }
		if ssh.Unmarshal(payload, &name) != nil || s.pid == 0 {
			return false
		}
		number := unix.SignalNum("SIG" + name.Name)
		// The command has a session of its own: its group is its pid.
		return number != 0 && syscall.Kill(-s.pid, number) == nil
	case "subsystem":
		var name struct{ Name string }
		if s.started || ssh.Unmarshal(payload, &name) != nil || name.Name != "sftp" {
			return false
		}
	case "exec":
		var line struct{ Line string }
		if s.started || ssh.Unmarshal(payload, &line) != nil {
			return false
		}
	case "shell":
		if s.started {
			return false
		}
	default:
		return false
	}
	s.started = true
	return true
}

// acceptEnv is what sshd of the usual systems accepts: the language, and no
// variable that could change how a program runs.
func acceptEnv(name string) bool {
	return name == "LANG" || name == "COLORTERM" || name == "NO_COLOR" || strings.HasPrefix(name, "LC_")
}

// begin starts what was asked for, or the command that the key is bound to.
func (s *session) begin(kind string, payload []byte) {
	var asked struct{ Line string }
	_ = ssh.Unmarshal(payload, &asked) // a shell has none
	if s.may.forced {
		if kind != "shell" {
			s.env = append(s.env, "SSH_ORIGINAL_COMMAND="+asked.Line)
		}
		s.launch([]string{"/bin/sh", "-c", s.may.command})
		return
	}
	switch kind {
	case "subsystem":
		go s.sftp()
	case "exec":
		s.launch([]string{"/bin/sh", "-c", asked.Line})
	default:
		s.launch([]string{s.node.shell})
	}
}

// sftp serves files, from the home directory on.
func (s *session) sftp() {
	server, err := sftp.NewServer(s.ch, sftp.WithServerWorkingDirectory(s.node.home))
	if err == nil {
		err = server.Serve() // its Close would close the channel before the status is sent
	}
	status := uint32(0)
	if err != nil && !errors.Is(err, io.EOF) {
		status = 1
	}
	s.sendExit(status)
}

// launch starts a command, on a terminal when one was asked for.
func (s *session) launch(argv []string) {
	if err := makeTemp(s.node.temp); err != nil {
		log.Printf("%v", err) // a cleaner of /tmp may have been there
	}
	cmd := &exec.Cmd{
		Path: argv[0], Args: argv, Dir: s.node.home,
		Env:         mergeEnv(s.node.commandEnv(), s.connectionEnv(), s.env),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	start := s.onPipes
	if s.term != nil {
		start = s.onTerminal
	}
	if err := start(cmd); err != nil {
		_, _ = io.WriteString(s.ch.Stderr(), "dlwb node: start "+argv[0]+": "+err.Error()+"\n")
		s.sendExit(255)
	}
}

// connectionEnv tells a command where it was asked from.
func (s *session) connectionEnv() []string {
	there, port, _ := net.SplitHostPort(s.conn.RemoteAddr().String())
	here, own, _ := net.SplitHostPort(s.conn.LocalAddr().String())
	return []string{
		"SSH_CLIENT=" + there + " " + port + " " + own,
		"SSH_CONNECTION=" + there + " " + port + " " + here + " " + own,
	}
}

// onPipes runs a command without a terminal. As with sshd the channel stays
// open until its output ends, which is later than the command itself when that
// left something behind that still writes there.
func (s *session) onPipes(cmd *exec.Cmd) error {
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			_ = f.Close() // also nil, which is an error and no harm
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return err
		}
		ours[i], theirs[i] = r, w
	}
	ours[0], theirs[0] = theirs[0], ours[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	exit, err := s.start(cmd, ours[0], ours[1], ours[2])
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return err
	}
	go func() {
		_, _ = io.Copy(ours[0], s.ch)
		_ = ours[0].Close()
		_, _ = io.Copy(io.Discard, s.ch) // what the command did not want
	}()
	var output sync.WaitGroup
	output.Go(func() { _, _ = io.Copy(s.ch, ours[1]) })
	output.Go(func() { _, _ = io.Copy(s.ch.Stderr(), ours[2]) })
	go func() {
		s.sendStatus(<-exit)
		output.Wait()
		_ = s.ch.Close()
	}()
	return nil
}

// drainLimit is how long the last output of a terminal is waited for when
// something in the background still holds it open.
const drainLimit = 200 * time.Millisecond

// onTerminal runs a command on a terminal of its own.
func (s *session) onTerminal(cmd *exec.Cmd) error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer slave.Close()
	if err := setSize(slave, s.term.Columns, s.term.Rows); err != nil {
		log.Printf("size of a terminal: %v", err)
	}
	if master, err = pollable(master); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setctty = true
	cmd.Env = mergeEnv(cmd.Env, []string{"TERM=" + s.term.Term, "SSH_TTY=" + slave.Name()})
	exit, err := s.start(cmd, master)
	if err != nil {
		_ = master.Close()
		return err
	}
	s.mu.Lock()
	s.tty = master
	s.mu.Unlock()
	go func() { _, _ = io.Copy(master, s.ch) }()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(s.ch, master)
	}()
	go func() {
		status := <-exit
		late := time.NewTimer(drainLimit)
		defer late.Stop()
		select {
		case <-drained:
		case <-late.C:
		}
		s.sendStatus(status)
		s.hangUp()
		_ = s.ch.Close()
	}()
	return nil
}

// start starts a command and remembers our ends of its streams.
func (s *session) start(cmd *exec.Cmd, streams ...*os.File) (<-chan syscall.WaitStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, exit, err := s.node.commands.start(cmd)
	if err != nil {
		return nil, err
	}
	s.pid = pid
	for _, f := range streams {
		s.streams = append(s.streams, f)
	}
	return exit, nil
}

// hangUp closes our ends of the command's streams: it reads the end of its
// input, is told when it writes, and hears HUP on a terminal. What it left in
// the background goes on, as on any host.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.streams {
		_ = c.Close()
	}
	s.streams, s.tty = nil, nil
}

// sendStatus tells how a command ended.
func (s *session) sendStatus(status syscall.WaitStatus) {
	defer s.node.commands.reports.Done()
	s.mu.Lock()
	s.pid = 0 // it may soon be another's
	s.mu.Unlock()
	if !status.Signaled() {
		s.send("exit-status", struct{ Status uint32 }{uint32(status.ExitStatus())})
		return
	}
	s.send("exit-signal", struct {
		Signal   string
		Core     bool
		Message  string
		Language string
	}{strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG"), status.CoreDump(), status.Signal().String(), ""})
}

func (s *session) send(kind string, payload any) {
	_, _ = s.ch.SendRequest(kind, false, ssh.Marshal(payload))
}

// sendExit ends a session that has no process.
func (s *session) sendExit(status uint32) {
	s.send("exit-status", struct{ Status uint32 }{status})
	_ = s.ch.Close()
}

// setSize sets the size of a terminal. Zero means unknown.
func setSize(tty *os.File, columns, rows uint32) error {
	raw, err := tty.SyscallConn()
	if err != nil {
		return err
	}
	size := &unix.Winsize{Row: uint16(min(rows, 0xffff)), Col: uint16(min(columns, 0xffff))}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }); err != nil {
		return err
	}
	return failed
}
