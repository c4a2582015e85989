//go:build linux

package supervise

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/agent/ending"
	"github.com/dlwb/dlwb/remote/agent/logs"
	"github.com/dlwb/dlwb/remote/agent/proc"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// wrapper is a rank that a launcher such as torchrun has started: this process
// starts the rank's program, passes signals on to it, and sees to it that its
// end is recorded, by the run's supervisor or, where there is none, by itself.
type wrapper struct {
	run     runs.Run
	rank    string
	pipe    *os.File // what the program prints
	conn    *net.UnixConn
	answers chan string // of the supervisor; closed when it is gone
	alone   *rank       // who has no supervisor keeps the record itself
	pid     int
	program proc.Process
}

// RankMain is "agent rank RUN_DIR PROGRAM [ARGUMENT…]", with RANK set. It exits
// with the program's code, 128+n after signal n.
func RankMain(args []string) int {
	if os.Getenv(runs.EnvRole) != "rank" {
		if err := becomeRank(args); err != nil {
			fmt.Fprintln(os.Stderr, "dlwb rank:", err)
			return codeFull
		}
	}
	ends := heed()
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rank RUN_DIR PROGRAM [ARGUMENT…]")
		return 64
	}
	dir := os.Getenv(runs.EnvDir)
	if dir == "" {
		dir = args[0]
	}
	w := &wrapper{run: runs.At(dir), rank: rankOfLauncher()}
	if !isRank(w.rank) {
		fmt.Fprintf(os.Stderr, "dlwb rank: RANK is %q, which is no number: a launcher must set it\n", w.rank)
		return 64
	}
	code, err := w.follow(args[1:], ends)
	if err != nil {
		fmt.Fprintf(os.Stderr, "dlwb rank %s: %v\n", w.rank, err)
		w.event(runs.Exit{Code: codeFull, Signal: "-"})
		return codeFull
	}
	return code
}

// rankOfLauncher is the rank by the word of the launcher. Not all of them call it
// RANK: DLWB_RANK_VAR names the variable then. Where they deal out the ranks as
// they like, DLWB_RANK_BASE and the local rank are the place in which it runs.
func rankOfLauncher() string {
	name := "RANK"
	if other := os.Getenv("DLWB_RANK_VAR"); other != "" {
		name = other
	}
	base, err := strconv.Atoi(os.Getenv("DLWB_RANK_BASE"))
	if err != nil {
		return os.Getenv(name)
	}
	local, err := strconv.Atoi(os.Getenv("LOCAL_RANK"))
	if err != nil {
		return os.Getenv(name)
	}
	return strconv.Itoa(base + local)
}

// becomeRank: whoever ends the run must tell this process from the program, and
// only an exec shows in /proc/PID/environ.
func becomeRank(args []string) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{path, "rank"}, args...), append(os.Environ(), runs.EnvRole+"=rank"))
}

// follow runs the program to its end.
func (w *wrapper) follow(argv []string, signals <-chan os.Signal) (code int, err error) {
	read, write, err := logs.Pipe(w.run, "rank-"+w.rank+".log")
	if err != nil {
		return 0, err
	}
	w.pipe = read
	if err := w.register(); err != nil {
		return 0, err
	}
	ended, err := w.start(argv, write)
	_ = write.Close()
	if err != nil {
		return 0, err
	}
	e := w.wait(ended, signals)
	exit := exitOf(e.WaitStatus)
	return exit.Code, w.ended(exit, e.at)
}

// register finds the supervisor.
func (w *wrapper) register() error {
	conn, err := dial(w.run)
	if err != nil {
		return w.goAlone()
	}
	w.conn, w.answers = conn, make(chan string, 1)
	if err := w.hello(); err != nil {
		_ = conn.Close()
		return w.goAlone()
	}
	go func() {
		defer close(w.answers)
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			w.answers <- lines.Text()
		}
	}()
	answer, ok := <-w.answers
	switch said, failed := strings.CutPrefix(answer, "failed "); {
	case failed:
		return fmt.Errorf("%s", said)
	case !ok:
		return w.goAlone()
	}
	return nil
}

// hello brings the supervisor the pipe. This end of it stays open here too: what
// prints into it gets no SIGPIPE when the supervisor is killed.
func (w *wrapper) hello() (err error) {
	raw, rawErr := w.pipe.SyscallConn()
	if rawErr != nil {
		return rawErr
	}
	rawErr = raw.Control(func(fd uintptr) {
		_, _, err = w.conn.WriteMsgUnix([]byte("rank "+w.rank+"\n"), unix.UnixRights(int(fd)), nil)
	})
	if rawErr != nil {
		return rawErr
	}
	return err
}

// goAlone keeps the rank's log and record from here on.
func (w *wrapper) goAlone() error {
	w.answers = nil
	log, err := logs.Open(w.run, "rank-"+w.rank+".log")
	if err != nil {
		return err
	}
	w.alone, err = openRank(w.run, w.rank, log, w.pipe, &cgroup{})
	if err == nil {
		w.alone.output = ending.PlainOutput
		w.alone.pid = w.pid
	}
	return err
}

// start starts the program. Its process group is its own: a launcher that ends
// wrapper and program at once ends the wrapper, which passes that on once.
func (w *wrapper) start(argv []string, out *os.File) (<-chan end, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	_ = os.Unsetenv(runs.EnvRole)
	w.pid, err = syscall.ForkExec(shell, append([]string{shell, "-c", `exec "$@"`, "dlwb"}, argv...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), out.Fd(), out.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, err
	}
	if w.alone != nil {
		w.alone.started(w.pid)
	} else {
		_, _ = fmt.Fprintf(w.conn, "started %d\n", w.pid)
	}
	w.program, _ = proc.Read(w.pid)
	ended := make(chan end, 1)
	go func() {
		var status syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(w.pid, &status, 0, nil); err != syscall.EINTR {
				break
			}
		}
		ended <- end{status, runs.Stamp()}
	}()
	return ended, nil
}

// wait waits for the program's end and passes signals on to it. When a stop is
// under way the program has got its TERM already.
func (w *wrapper) wait(ended <-chan end, signals <-chan os.Signal) end {
	answers := w.answers
	for {
		select {
		case e := <-ended:
			return e
		case sig := <-signals:
			// One that has ended, and nobody has seen it yet, is not told any more.
			if !w.run.Has("stopping") && w.program.Signal(sig.(syscall.Signal)) == nil {
				w.told(signalName(sig.(syscall.Signal)))
			}
		case <-answers: // it has none yet: the supervisor is gone
			answers = nil
			if err := w.goAlone(); err != nil {
				fmt.Fprintf(os.Stderr, "dlwb rank %s: %v\n", w.rank, err)
			}
		}
	}
}

// told says that the launcher has told the rank to end.
func (w *wrapper) told(signal string) {
	switch {
	case w.alone != nil:
		w.alone.told(signal)
	case w.conn != nil:
		_, _ = fmt.Fprintf(w.conn, "told %s\n", signal)
	}
}

// ended sees to it that the end is on record. A supervisor of an older dlwb passes over
// the words that it does not know.
func (w *wrapper) ended(exit runs.Exit, at string) error {
	if w.alone == nil && w.answers != nil {
		_, _ = fmt.Fprintf(w.conn, "at %s\nended %s\n", at, exit)
		if answer, ok := <-w.answers; ok {
			if answer != fmt.Sprintf("ok %d", exit.Code) {
				return fmt.Errorf("its end can't be recorded: is the disk full?")
			}
			return nil
		}
		if err := w.goAlone(); err != nil {
			return err
		}
	}
	if w.alone == nil {
		return fmt.Errorf("its end can't be recorded: is the disk full?")
	}
	err := w.alone.ended(exit, at)
	if err == nil {
		w.event(exit)
	}
	return err
}

// event tells the supervisor of an older dlwb, which has no door.
func (w *wrapper) event(exit runs.Exit) {
	if w.conn != nil {
		return
	}
	if f, err := os.OpenFile(w.run.Path("events"), os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
			_, _ = fmt.Fprintf(f, "rank %s %s\n", w.rank, exit)
		}
		_ = f.Close()
	}
}

// shell starts programs: it also knows what to say of one that is not there.
var shell = func() string {
	if path, err := exec.LookPath("sh"); err == nil {
		return path
	}
	return "/bin/sh"
}()
