package transport

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/podrig"
	"github.com/dlwb/dlwb/internal/slurmrig"
)

func TestKillEndsEveryCommandAndAllThatIsInItsGroup(t *testing.T) {
	m, why := open(t, Local()), errors.New("enough")
	var held []*os.File // the end of what they hold is their end
	for i := range 3 {
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		c := start(t, m, fmt.Sprintf("sleep 60%d >%s & wait", i, fifo))
		f, err := os.Open(fifo)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, f)
		defer func() {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("its output goes on")
			}
		}()
	}
	m.Kill(why)
	m.Kill(errors.New("a later reason"))
	<-m.Done()
	for _, f := range held {
		if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		_ = f.Close()
	}
	if err := m.Err(); !errors.Is(err, why) {
		t.Errorf("the reason is %v", err)
	}
	if _, err := m.Start(t.Context(), "true"); !errors.Is(err, why) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAContainerCarriesEveryByte(t *testing.T) {
	name, _ := podrig.Start(t)
	m := open(t, Podman(name))
	carries(t, m)
	inputEnds(t, m)
	c := start(t, open(t, Podman("no-such-container")), "cat")
	defer func() { _ = c.Close() }()
	if out, _ := io.ReadAll(c); len(out) > 0 || !strings.Contains(c.Said(), "no-such-container") {
		t.Errorf("%q, %q", out, c.Said())
	}
}

func TestANodeOfASlurmJobCarriesEveryByte(t *testing.T) {
	m := open(t, Slurm(slurmrig.Start(t, 2), "n2"))
	carries(t, m)
	inputEnds(t, m)
	c := start(t, m, "hostname")
	defer func() { _ = c.Close() }()
	if out, err := io.ReadAll(c); err != nil || string(out) != "n2\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// inputEnds holds that a command learns that nobody listens to it any more: an
// agent ends with its input.
func inputEnds(t *testing.T, m Machine) {
	t.Helper()
	dir := fmt.Sprintf("/tmp/dlwb-ended-%d", os.Getpid())
	c := start(t, m, "echo; cat; mkdir "+dir)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = start(t, m, fmt.Sprintf("i=0; until rmdir %s 2>/dev/null || [ $i = 600 ]; do i=$((i+1)); sleep 0.1; done; echo $i", dir))
	defer func() { _ = c.Close() }()
	if out, err := io.ReadAll(c); err != nil || strings.TrimSpace(string(out)) == "600" || len(out) == 0 {
		t.Errorf("its input did not end: %q, %v: %s", out, err, c.Said())
	}
}
