//go:build linux

package supervise_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/remote/wire"
)

// goesOn is a program that says who it is and ends when it is let go.
const goesOn = "echo up $PPID $$; until [ -e go ]; do sleep 0.05; done; exit 3"

// patient: nobody is stopped for the end of another one.
func patient(l *wire.LaunchRequest) { l.Patience = 600_000 }

// who gives a rank's parent and its program, which run.
func (b *box) who(rank int) (parent, program int) {
	b.T.Helper()
	name := fmt.Sprintf("rank-%d.log", rank)
	b.WaitLog(name, "\n")
	if _, err := fmt.Sscanf(b.Read(name), "up %d %d", &parent, &program); err != nil {
		b.T.Fatal(err)
	}
	b.WaitLog("status", fmt.Sprintf("rank %d started %d\n", rank, program))
	return parent, program
}

// letGo lets the programs go on, and waits for the end of one, of which its parent, which
// is held, takes no note.
func (b *box) letGo(program int) {
	b.T.Helper()
	must(b.T, os.WriteFile(filepath.Join(b.Home, "go"), nil, 0o600))
	runbox.Within(b.T, runbox.Patience, "it has ended", func() bool { return !runbox.IsAlive(program) })
}

// Who is to take note of the end of a rank may have no processor for seconds. A stop that
// comes meanwhile is not what ended that rank, and says so.
func TestAStopSaysWhichRanksHadEndedBeforeItCame(t *testing.T) {
	for name, start := range map[string]func(...string) []wire.LaunchProc{
		"a rank of the supervisor": ranks,
		"a rank behind a wrapper":  func(programs ...string) []wire.LaunchProc { return launcher(launchAll, programs...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.launch(start(goesOn, "echo up $PPID $$; "+forever), patient)
			parent, program := b.who(0)
			b.who(1)
			b.Kill(parent, syscall.SIGSTOP)
			b.letGo(program)
			stop := b.command("sh", filepath.Join(b.Home, ".dlwb/bin/stop"), "r1", "1000", "asked: by a test")
			must(t, stop.Start())
			b.WaitLog("status", "rank 0 gone\n")
			b.Kill(parent, syscall.SIGCONT)
			must(t, stop.Wait())
			status := b.Read("status")
			for _, want := range []string{"stopping asked: by a test\n", "rank 0 ended 3 -\n", "rank 1 ended 143 TERM\n"} {
				if !strings.Contains(status, want) {
					t.Errorf("%q is not said:\n%s", want, status)
				}
			}
			if strings.Contains(status, "rank 1 gone") {
				t.Errorf("the stop reached rank 1:\n%s", status)
			}
		})
	}
}

// What a launcher does to the others when one of its ranks has failed is told apart from
// what a rank comes to by itself, also of one that had ended when the launcher came.
func TestWhatALauncherHadToldToEndIsSaid(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(launcher(launchAll, "echo up $PPID $$; "+forever, goesOn, "echo up $PPID $$; "+forever), patient)
	told, _ := b.who(0)
	late, program := b.who(1)
	killed, _ := b.who(2)
	b.Kill(late, syscall.SIGSTOP)
	b.letGo(program)
	b.Kill(told, syscall.SIGTERM)
	b.Kill(late, syscall.SIGTERM)
	b.Kill(late, syscall.SIGCONT)
	b.Kill(killed, syscall.SIGKILL)
	b.wait(3)
	status := b.Read("status")
	for _, want := range []string{"rank 0 told TERM\n", "rank 0 ended 143 TERM\n", "rank 1 ended 3 -\n", "rank 2 told KILL\n", "rank 2 ended 137 KILL\n"} {
		if !strings.Contains(status, want) {
			t.Errorf("%q is not said:\n%s", want, status)
		}
	}
	if strings.Contains(status, "rank 1 told") {
		t.Errorf("rank 1 had ended by itself:\n%s", status)
	}
}
