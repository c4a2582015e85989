//go:build linux

package agent

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// taken is how much a command's output came to, whose caller was busy for so long first.
func taken(t *testing.T, s *wire.Session, line string, busy time.Duration) (size int, exit *wire.Exit) {
	call, err := s.Call(t.Context(), wire.Exec, wire.ExecRequest{Line: line})
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer call.Reset()
	time.Sleep(busy)
	for exit == nil {
		var m wire.ExecOutput
		if err := call.Recv(&m); err != nil {
			t.Error(err)
			return size, nil
		}
		size, exit = size+len(m.Out)+len(m.Err), m.Exit
	}
	return size, exit
}

// What a command has printed lies in a pipe when it ends: over a slow line, or to a busy
// machine, it takes longer to send than what was left running may hold the pipe.
func TestWhatACommandHasPrintedArrivesWholeHoweverLateItIsTaken(t *testing.T) {
	s := served(t)
	var all sync.WaitGroup
	for size := 100_000; size < 800_000; size += 40_000 { // more than a pipe and a window, and less
		for _, to := range []string{"", " >&2"} {
			all.Go(func() {
				got, exit := taken(t, s, fmt.Sprintf("head -c %d /dev/zero%s; exit 3", size, to), 3*drainLimit)
				if got != size || exit == nil || exit.Code != 3 {
					t.Errorf("%d bytes of %d came, and then %+v", got, size, exit)
				}
			})
		}
	}
	all.Wait()
}

// What a command leaves running may hold its output for ever, and fill it: the command
// has ended all the same.
func TestWhatIsLeftRunningHoldsNoCommandUp(t *testing.T) {
	s := served(t)
	for what, line := range map[string]string{"silent": "timeout 20 sleep 1000 & exit 3", "a flood": "timeout 20 sh -c 'while :; do echo y; done' & exit 3"} {
		if _, exit := taken(t, s, line, 0); exit == nil || exit.Code != 3 {
			t.Errorf("%s: %+v", what, exit)
		}
	}
}
