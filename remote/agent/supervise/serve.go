//go:build linux

package supervise

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// overReason begins why a peer is stopped when all has ended well.
	overReason = job.RunOver + "the run has ended on "
	// codeMissing is the code of a process that was not started, as what it needs
	// was not there in time.
	codeMissing = 69
	// codeNever is that of a look which says that waiting is no use.
	codeNever = 3
	// awaitEvery is the pause between two looks at what a process waits for;
	// awaitLook bounds one look.
	awaitEvery = 500 * time.Millisecond
	awaitLook  = 30 * time.Second
	// awaitTell is how long one waits before it is said what for, and again.
	awaitTell = 20 * time.Second
	// saidMost bounds what is kept of what a look says.
	saidMost = 4 << 10
)

// onlyHelps reports whether all processes here serve ranks on other nodes.
func (s *supervisor) onlyHelps() bool {
	return !slices.ContainsFunc(s.plan.Procs, func(p wire.LaunchProc) bool { return !p.Helper })
}

// await waits for what a process needs, and says what is missing when that does
// not come in time. From time to time it tells the log what is missing still.
func (s *supervisor) await(p wire.LaunchProc, log io.Writer) (missing string) {
	if p.After == nil {
		return ""
	}
	var argv []string
	for _, w := range p.After.Argv {
		argv = append(argv, inHome(s.run.Home(), string(w)))
	}
	limit, told, last := time.Duration(p.After.Limit)*time.Second, time.Now(), ""
	for end := told.Add(limit); ; time.Sleep(awaitEvery) {
		said, code, err := s.ask(argv, s.environ(p), min(awaitLook, max(time.Until(end), time.Second)))
		switch {
		case err != nil:
			return fmt.Sprintf("can't look for %s: %v", p.After.What, err)
		case code == 0:
			return ""
		case s.run.Has("stopping") || s.failing():
			return fmt.Sprintf("the run is ended before there is %s: %s", p.After.What, said)
		case code == codeNever:
			return fmt.Sprintf("there is not all of %s: %s", p.After.What, said)
		case time.Now().After(end):
			return fmt.Sprintf("waited %v for %s: %s", limit, p.After.What, said)
		case said != last && time.Since(told) > awaitTell:
			told, last = time.Now(), said
			_, _ = fmt.Fprintf(log, "dlwb: waiting for %s: %s\n", p.After.What, said)
		}
	}
}

// ask runs a program of the run and gives the end of what it says.
func (s *supervisor) ask(argv, env []string, limit time.Duration) (said string, code int, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = read.Close() }()
	pid, ended, err := s.fork(argv, env, write)
	_ = write.Close()
	if err != nil {
		return "", 0, err
	}
	defer time.AfterFunc(limit, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }).Stop()
	_ = read.SetReadDeadline(time.Now().Add(limit + time.Second))
	text, _ := io.ReadAll(io.LimitReader(read, outputMost))
	e := <-ended
	return strings.TrimSpace(string(text[max(0, len(text)-saidMost):])), exitOf(e.WaitStatus).Code, nil
}

// failing reports whether a process here has failed already.
func (s *supervisor) failing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// heldEnd is the end of a rank that its launcher may start again.
type heldEnd struct {
	number string
	exit   runs.Exit
	at     string
}

// hold keeps such an end, behind those that came before.
func (s *supervisor) hold(number string, exit runs.Exit, at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, heldEnd{number, exit, at})
}

// again: a rank whose end was held is started anew.
func (s *supervisor) again(number string) {
	s.mu.Lock()
	i := slices.IndexFunc(s.held, func(h heldEnd) bool { return h.number == number })
	var was heldEnd
	if i >= 0 {
		was = s.held[i]
		s.held = slices.Delete(s.held, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		_ = s.run.Say("rank %s restarted %s", number, was.exit)
	}
}

// tellHeld: the launcher has ended, so the ends that were held are for good. The
// first of them decides, as it would have at once, unless the launcher ended well.
func (s *supervisor) tellHeld(launcher runs.Exit) {
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	for _, h := range held {
		_ = s.run.SayOf(h.at, "rank %s ended %s", h.number, h.exit)
		if launcher.Code != 0 {
			s.ended(event{who: "rank " + h.number, exit: h.exit})
		}
	}
}
