//go:build linux

package supervise

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/agent/proc"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// A launcher starts its ranks through a wrapper, which talks to the supervisor
// over a socket in the run's directory: it brings the pipe into which the rank
// prints ("rank N"), says that the rank has started ("started PID"), that its launcher
// has told it to end ("told SIGNAL"), when it has ended ("at STAMP") and how
// ("ended CODE SIGNAL"), and is answered once that is on the disk. A connection that
// ends without that is the end of a wrapper.

const doorName = "ranks.sock"

// doorPath names the socket by the descriptor of its directory: the name of a
// socket has 108 bytes at most.
func doorPath(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), doorName) }

func listen(r runs.Run) (net.Listener, error) {
	dir, err := os.Open(r.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	_ = os.Remove(r.Path(doorName))
	l, err := net.Listen("unix", doorPath(dir))
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l, nil
}

func dial(r runs.Run) (*net.UnixConn, error) {
	dir, err := os.Open(r.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	conn, err := (&net.Dialer{Timeout: time.Minute}).Dial("unix", doorPath(dir))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// admit serves the wrappers.
func (s *supervisor) admit() {
	for {
		conn, err := s.door.Accept()
		if err != nil {
			_ = os.Remove(s.run.Path(doorName))
			return
		}
		s.ranks.Go(func() {
			defer func() { _ = conn.Close() }()
			s.attend(conn.(*net.UnixConn))
		})
	}
}

// attend looks after the rank of one wrapper.
func (s *supervisor) attend(conn *net.UnixConn) {
	number, out, err := receive(conn)
	if err != nil {
		return
	}
	k, err := s.openDoorRank(number, out)
	if err != nil {
		s.tell(event{who: "rank " + number, exit: runs.Exit{Code: codeFull, Signal: "-"}})
		_, _ = fmt.Fprintf(conn, "failed %v\n", err)
		return
	}
	_, _ = fmt.Fprintln(conn, "ok")
	exit, at, err := s.wait(conn, k)
	swept := s.isSwept(err != nil)
	k.mayReturn = s.plan.Restarts && exit.Code != 0 && !swept
	if err != nil && !swept {
		k.told("KILL")
	}
	if err := k.ended(exit, at); err != nil {
		exit = runs.Exit{Code: codeFull, Signal: "-"}
	}
	// Before the answer: with that the launcher may end, and the run with it.
	if k.mayReturn {
		s.hold(number, exit, at)
	} else {
		s.tell(event{who: "rank " + number, exit: exit, swept: swept})
	}
	if err == nil {
		_, _ = fmt.Fprintf(conn, "ok %d\n", exit.Code)
	}
}

func (s *supervisor) openDoorRank(number string, out *os.File) (*rank, error) {
	log, err := s.log("rank-" + number + ".log")
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	s.again(number)
	k, err := openRank(s.run, number, log, out, &s.group)
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	k.output = s.children.output
	return k, nil
}

// wait follows a rank to its end. Where its wrapper is killed, its program is
// ended too.
func (s *supervisor) wait(conn *net.UnixConn, k *rank) (exit runs.Exit, at string, err error) {
	var program proc.Process
	lines := words{bufio.NewScanner(conn)}
	for {
		line, err := lines.next()
		if err != nil {
			at = runs.Stamp()
			_ = program.Signal(syscall.SIGKILL)
			return runs.Killed, at, err
		}
		switch {
		case len(line) == 2 && line[0] == "started":
			pid, _ := strconv.Atoi(line[1])
			// In a container it may be the number of another process here.
			if p, ok := proc.Read(pid); ok && p.Parent == peerOf(conn) {
				program = p
			}
			s.began(k, pid)
		case len(line) == 2 && line[0] == "told" && runs.Plain(line[1]):
			k.told(line[1])
		case len(line) == 2 && line[0] == "at" && runs.IsStamp(line[1]):
			at = line[1]
		case len(line) == 3 && line[0] == "ended":
			code, err := strconv.Atoi(line[1])
			return runs.Exit{Code: code, Signal: line[2]}, cmp.Or(at, runs.Stamp()), err
		}
	}
}

// peerOf is the process at the other end.
func peerOf(conn *net.UnixConn) (pid int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// helloLimit is how long a wrapper may take to say which rank it is.
const helloLimit = 10 * time.Second

// receive takes a rank's number and its pipe.
func receive(conn *net.UnixConn) (number string, out *os.File, err error) {
	_ = conn.SetReadDeadline(time.Now().Add(helloLimit))
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	text, rights := make([]byte, 64), make([]byte, unix.CmsgSpace(4))
	n, rn, _, _, err := conn.ReadMsgUnix(text, rights)
	if err != nil {
		return "", nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil || len(messages) != 1 {
		return "", nil, errors.New("a wrapper came without a pipe")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return "", nil, errors.New("a wrapper came without a pipe")
	}
	out = os.NewFile(uintptr(fds[0]), "log")
	if _, err := fmt.Sscanf(string(text[:n]), "rank %s\n", &number); err != nil || !isRank(number) {
		return "", nil, errors.Join(errors.New("a wrapper of no rank"), out.Close())
	}
	return number, out, nil
}
