//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

// The exit codes of PartMain besides that of the run, as in sysexits.h.
const (
	codeUsage  = 64
	codeAbsent = 66
	codeTwice  = 75
)

// PartMain is "agent part RUN_DIR LIFE HOSTS PORT": it supervises a run that was
// prepared on a disk that this machine shares, as a part of a job that a
// scheduler has started. LIFE counts how often the scheduler has started the job
// before, and HOSTS are the machines of all parts, with commas between them. It
// is told to its end, and ends with the code of the run: a scheduler that ends
// the other parts for it goes by that.
func PartMain(args []string) int {
	life, err := 0, errors.New("usage: agent part RUN_DIR LIFE HOSTS PORT")
	port := 0
	if len(args) == 4 {
		life, err = strconv.Atoi(args[1])
		if err == nil {
			port, err = strconv.Atoi(args[3])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dlwb part:", err)
		return codeUsage
	}
	signals := heed()
	_ = syscall.Umask(0o077)
	r := runs.At(args[0])
	if !r.Has(planName) {
		fmt.Fprintf(os.Stderr, "dlwb part: %s is not on this machine: is the home directory shared?\n", r.Dir)
		return codeAbsent
	}
	if err := claimLife(r, life); err != nil {
		fmt.Fprintln(os.Stderr, "dlwb part:", err)
		return codeTwice
	}
	for name, value := range map[string]string{runs.EnvID: r.ID, runs.EnvDir: r.Dir, runs.EnvRole: "supervise", runs.EnvBin: own(), runs.EnvLife: strconv.Itoa(life)} {
		_ = os.Setenv(name, value)
	}
	s, err := begin(r, func(plan *wire.LaunchRequest) {
		if life > 0 {
			takeUp(plan)
		}
		place(plan, job.Placing(strings.Split(args[2], ","), port))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "dlwb part:", err)
		return codeFull
	}
	if s.life = strconv.Itoa(life); s.plan.Led {
		s.told = s.awaitTold(s.life)
	}
	s.supervise(signals)
	if code := s.finish(); code != 0 || s.released {
		return code
	}
	code, _, _ := strings.Cut(r.Line("exit"), " ")
	n, _ := strconv.Atoi(code)
	return n
}

func own() string {
	path, _ := os.Executable()
	return path
}

// claimLife takes a life of a run for this process, and clears the records that
// an earlier one has left: the logs and the story of the run go on. A scheduler
// that lost touch with a machine may start a job twice; then the second one finds
// the life taken.
func claimLife(r runs.Run, life int) error {
	if err := os.Mkdir(r.Path(runs.LifeMark+strconv.Itoa(life)), 0o700); err != nil {
		return fmt.Errorf("this part of the run was begun already: %w", err)
	}
	if err := os.Mkdir(r.Path("lock"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if life == 0 {
		return nil
	}
	old, err := fs.Glob(os.DirFS(r.Dir), "rank-*.exit*")
	for _, name := range append(old, "exit", "stopping", "pid", "full", joinName, waitsName) {
		if e := os.Remove(r.Path(name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// takeUp has the processes do what they are to do in any life but the first.
func takeUp(plan *wire.LaunchRequest) {
	for i, p := range plan.Procs {
		if len(p.Again) > 0 {
			plan.Procs[i].Argv = p.Again
		}
	}
}

// place puts the hosts of the parts into what they are to do.
func place(plan *wire.LaunchRequest, placing job.Places) {
	words := func(all [][]byte) {
		for i, w := range all {
			all[i] = []byte(placing.Replace(string(w)))
		}
	}
	words(plan.Env)
	for _, p := range plan.Procs {
		words(p.Env)
		words(p.Argv)
		if p.After != nil {
			words(p.After.Argv)
		}
	}
}

// The parts of a job see one disk, and no way leads from one machine to the other: the
// part that leads writes into the directories of the others that all has ended well
// there. A life has a file of its own, so that no later one takes it for its own.
const toldMark = "told-"

// toldEvery is the pause between two looks whether that was written.
const toldEvery = time.Second

// awaitTold gives what the part that leads says in this life.
func (s *supervisor) awaitTold(life string) <-chan string {
	told := make(chan string, 1)
	go func() {
		for !s.run.Sees(toldMark + life) {
			select {
			case <-s.over:
				return
			case <-time.After(toldEvery):
			}
		}
		told <- s.run.Line(toldMark + life)
	}()
	return told
}

// release ends what runs here because all has ended well where the run is led: it is no
// failure, of which whoever has started the parts would hear.
func (s *supervisor) release(why string) {
	s.told = nil
	if !s.run.Has("stopping") {
		s.released = s.failed == nil
		s.stop(why)
	}
}

// tellBeside tells the other parts. A part that was not told would wait for ever.
func (s *supervisor) tellBeside(why string) (err error) {
	for range 60 {
		err = nil
		for _, id := range s.plan.Beside {
			r, e := runs.Open(s.run.Home(), id)
			if e == nil {
				e = r.Write(toldMark+s.life, []byte(why+"\n"))
			}
			err = errors.Join(err, e)
		}
		if err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
