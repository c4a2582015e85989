//go:build unix

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/sshconn/wake"
)

func TestAfterASleepEveryLinkIsCheckedAtOnce(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	n.bounds.Every, n.bounds.Answer = time.Hour, time.Hour
	mustExec(t, n, "true")
	lost := make(chan struct{})
	once := sync.OnceFunc(func() { close(lost) })
	n.OnState(func(connected bool, why string) {
		if !connected && strings.Contains(why, "no answer within 5s") {
			once()
		}
	})
	wake.All() // a link that is alive stays
	mustExec(t, n, "true")
	select {
	case <-lost:
		t.Fatal("a link that answers was given up")
	default:
	}
	s.Freeze()
	defer s.Thaw()
	// The link may still be busy with the first wake.
	for deadline := time.After(60 * time.Second); ; {
		wake.All()
		select {
		case <-lost:
			return
		case <-deadline:
			t.Fatal("a dead link was not noticed after a sleep")
		case <-time.After(6 * time.Second):
		}
	}
}

func TestEverythingWorksUnderTheTightestLimitsOfSSHD(t *testing.T) {
	t.Parallel()
	for _, sessions := range []int{1, 2} {
		t.Run(fmt.Sprintf("MaxSessions %d", sessions), func(t *testing.T) {
			s := sshdtest.Start(t, sshdtest.Config(fmt.Sprintf("MaxSessions %d", sessions)), sshdtest.Config("MaxStartups 1"))
			n := openTest(t, s)
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			writeFile(t, s.Home+"/log", "hello\n")
			var followed, executed sync.WaitGroup
			heard := make(chan struct{}, 3)
			for range 3 {
				followed.Go(func() {
					err := n.Follow(ctx, "log", 0, func(int64, []byte) error {
						heard <- struct{}{}
						return nil
					})
					if !errors.Is(err, context.Canceled) {
						t.Errorf("follow: %v", err)
					}
				})
			}
			for i := range 8 {
				executed.Go(func() {
					res, err := n.Exec(ctx, Cmd{Line: fmt.Sprintf("cat >/dev/null; echo %d", i), Stdin: io.LimitReader(zeros{}, 100_000)})
					if err != nil || string(res.Stdout) != fmt.Sprintf("%d\n", i) {
						t.Errorf("command %d: %q, %v", i, res.Stdout, err)
					}
				})
			}
			executed.Wait()
			for range 3 {
				select {
				case <-heard:
				case <-ctx.Done():
					t.Fatal("a follower heard nothing")
				}
			}
			cancel()
			followed.Wait()
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func Test64NodesBehindOneJumpHostOfTheTightestLimits(t *testing.T) {
	sample.Leave(t)
	jump := sshdtest.Start(t, sshdtest.Config("MaxStartups 1"), sshdtest.Config("MaxSessions 1"))
	behind := sshdtest.Start(t, sshdtest.Config("MaxStartups 200"))
	before := logins(jump)
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	nodes := make([]*Node, 64)
	for i := range nodes {
		target := targetOf(behind)
		target.Jumps = []Jump{jumpOf("bastion", jump)}
		nodes[i] = Open(target)
		nodes[i].bounds.Dial = 50 * time.Second // 64 logins at once on one machine
		defer nodes[i].Close()
		all.Go(func() {
			if _, err := nodes[i].Exec(ctx, Cmd{Line: "true"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := logins(jump) - before; got != 1 {
		t.Errorf("the jump host saw %d logins, want 1", got)
	}
}
