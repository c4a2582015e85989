//go:build linux

package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote/wire"
)

func TestPutKeepsWhatIsInTheWayAndTheTimesOfWhatComes(t *testing.T) {
	s := sshdtest.Start(t)
	n, from := openTest(t, s), t.TempDir()
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	writeFiles(t, from, map[string]string{"step-2/model": "new", "step 3/it's": "odd"})
	check(t, os.Symlink("step-2", filepath.Join(from, "last")))
	check(t, os.Chtimes(filepath.Join(from, "step-2/model"), then, then))
	there := filepath.Join(s.Home, codeDir, "ckpt")
	writeFiles(t, there, map[string]string{"step-1/model": "stays", "step-2/model": "half", "step-2/more": "half"})
	for range 2 { // what was put is moved away like anything else
		check(t, Put(testContext(t), n, from, codeDir+"/ckpt", "dlwb/x/unfinished"))
	}
	for name, want := range map[string]string{
		"ckpt/step-1/model": "stays", "ckpt/step-2/model": "new", "ckpt/step 3/it's": "odd", "ckpt/last/model": "new",
	} {
		if got, err := os.ReadFile(filepath.Join(s.Home, codeDir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(s.Home, "dlwb/x/unfinished/step-2/more")); err != nil || string(got) != "half" {
		t.Errorf("what was in the way is %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(there, "step-2/model")); err != nil || !info.ModTime().Equal(then) {
		t.Errorf("its time is %v, want %v (%v)", info.ModTime(), then, err)
	}
	if entries, err := os.ReadDir(there); err != nil || len(entries) != 4 {
		t.Errorf("there are %v, %v", entries, err)
	}
	check(t, MoveAside(testContext(t), n, codeDir+"/ckpt", "dlwb/x/unfinished", []string{"step 3", "step-9"}))
	if _, err := os.Stat(filepath.Join(s.Home, "dlwb/x/unfinished/step 3.2/it's")); err != nil {
		t.Error(err)
	}
	if err := MoveAside(testContext(t), n, codeDir, "dlwb/x", []string{"../x"}); err == nil {
		t.Error("a name that leaves the directory was taken")
	}
}

// putTest puts a directory on a node whose agent is in this process.
func putTest(t testing.TB, n *agentNode, from string) error {
	t.Helper()
	return putOn(t.Context(), n, from, n.code("ckpt"), filepath.Join(n.home, "aside"))
}

func TestAPutGoesOnOverAnotherConnection(t *testing.T) {
	from := t.TempDir()
	writeFiles(t, from, oddProject)
	writeFiles(t, from, map[string]string{"step/model": entropy(20 << 20), "step/after": "x"})
	makeOld(t, from)
	for _, cut := range []int64{100_000, 12 << 20, 20 << 20} {
		n := newAgentNode(t)
		n.cutIn.Store(cut)
		check(t, putTest(t, n, from))
		if got, want := dirText(t, n.code("ckpt")), dirText(t, from); got != want {
			t.Errorf("cut after %d: there is\n%.2000s\nwant\n%.2000s", cut, got, want)
		}
		if n.cuts.Load() != 1 || n.heard.Load() > 25<<20 {
			t.Errorf("%d cuts after %d; %d bytes were sent", n.cuts.Load(), cut, n.heard.Load())
		}
		if exists(filepath.Join(n.home, "aside")) {
			t.Error("something was moved aside")
		}
	}
}

func TestAPutThatFailsLeavesNothing(t *testing.T) {
	n, from := newAgentNode(t), t.TempDir()
	writeFiles(t, from, map[string]string{"step/model": "x"})
	writeFiles(t, n.code(), map[string]string{"ckpt/step/model": "mine"})
	check(t, os.Truncate(filepath.Join(from, "step/model"), 1<<40)) // it takes longer than anybody waits
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil && n.heard.Load() < 1<<12 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if err := putOn(ctx, n, from, n.code("ckpt"), filepath.Join(n.home, "aside")); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadFile(n.code("ckpt/step/model")); string(got) != "mine" {
		t.Errorf("it is now %q, %v", got, err)
	}
	if entries, _ := os.ReadDir(n.code("ckpt")); len(entries) != 1 {
		t.Errorf("there are %v", entries)
	}
}

func TestPlacingDoneTwiceChangesNothing(t *testing.T) {
	n, from := newAgentNode(t), t.TempDir()
	writeFiles(t, from, map[string]string{"step/model": "new"})
	writeFiles(t, n.code("ckpt"), map[string]string{"step/model": "old"})
	check(t, putTest(t, n, from))
	again := wire.AsideRequest{Dir: n.code("ckpt"), Aside: filepath.Join(n.home, "aside"), Stage: ".dlwb-put-gone"}
	check(t, n.Ask(t.Context(), wire.Aside, again, &wire.AsideAnswer{}))
	want := "\"aside\" dir\n\"aside/step\" dir\n\"aside/step/model\" 644 \"old\""
	if got := withoutTimes(dirText(t, n.home)); !strings.HasPrefix(got, want) || !strings.Contains(got, `"dlwb/c/code/ckpt/step/model" 644 "new"`) {
		t.Errorf("there is\n%s", got)
	}
}

// The agent does not believe its caller either.
func TestAPutStaysInItsStage(t *testing.T) {
	for name, c := range map[string]struct {
		stage string
		packs []pack
		says  string
	}{
		"a stage elsewhere":  {"../x", nil, "no name of a stage"},
		"another directory":  {"mine", nil, "no name of a stage"},
		"a file outside":     {".dlwb-put-a", []pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "../x"}}}}}, "can't be put"},
		"an absolute file":   {".dlwb-put-a", []pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "/tmp/x"}}}}}, "can't be put"},
		"through a link":     {".dlwb-put-a", []pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "l", Link: "/"}}, {End: &wire.End{}}, {Head: &wire.Head{Name: "l/x"}}, {End: &wire.End{Sum: sumOf("")}}}}}, "escapes"},
		"a file for a file":  {".dlwb-put-a", []pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "a"}}, {Head: &wire.Head{Name: "b"}}}}}, "can't be put"},
		"bytes of no file":   {".dlwb-put-a", []pack{{data: []byte("x"), Parts: []wire.Part{{N: 1}}}}, "no file"},
		"a wrong sum":        {".dlwb-put-a", []pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "a"}}, {End: &wire.End{Sum: []byte("x")}}}}}, "did not come as it was"},
		"what was not there": {".dlwb-put-a", []pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "a", From: 10}}}}}, "can't go on from itself"},
		"what is gone":       {".dlwb-put-a", []pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "a", From: 10, Of: 1}}}}}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			s, done, err := begin(t.Context(), n, wire.Put, wire.PutRequest{Dir: n.code("ckpt"), Stage: c.stage})
			check(t, err)
			defer done()
			for _, pk := range c.packs {
				_ = pk.send(s)
			}
			_ = s.End(nil)
			if err := putEnd(s, nil); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
