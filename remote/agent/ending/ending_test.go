//go:build linux

package ending

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote/agent/runs"
)

// What nvidia-smi and ps say counts, also when it is read later than they end: to take
// it for nothing would be to say that no process and no memory is left.
func TestWhatAProgramSaidIsHeardAfterItsEnd(t *testing.T) {
	if said := PlainOutput(t.Context(), "sh", "-c", "(sleep 0.5; echo 17) & exit 0"); said != "17\n" {
		t.Errorf("it said %q", said)
	}
}

// While a training saves what it has, for as long as its grace goes, the processor is
// its own: what waits for it takes none. That it has ended is seen at once.
func TestALongGraceIsWaitedForWithoutWork(t *testing.T) {
	run := runs.Run{Dir: t.TempDir()}
	if err := os.WriteFile(run.Path("launch"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	// What the caller has started itself is none of the run's: its parent has ended.
	saves := exec.Command("sh", "-c", `(trap 'trap "" TERM; sleep 3; echo all >"$0"; exit 0' TERM; echo begun; while :; do sleep 0.05; done) &`, saved)
	saves.Env = append(os.Environ(), runs.EnvDir+"="+run.Dir)
	saves.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	said, err := saves.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := saves.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-saves.Process.Pid, syscall.SIGKILL) })
	if _, err := said.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := saves.Wait(); err != nil {
		t.Fatal(err)
	}
	before := processorTime(t)
	for range 10 {
		run.Members()
	}
	look := (processorTime(t) - before) / 10
	before = processorTime(t)
	if left := (Order{Run: run, Grace: 5 * time.Minute, Why: "a test ends it"}).End(); left > 0 {
		t.Errorf("%d processes are left", left)
	}
	worked := processorTime(t) - before
	if whole, err := os.ReadFile(saved); string(whole) != "all\n" {
		t.Errorf("it was not let to save: %q, %v", whole, err)
	}
	if worked > 80*look { // some 40 are right; one each 20 ms are 150
		t.Errorf("it worked for %s, and a look takes %s", worked, look)
	}
}

// processorTime is what this process has taken so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
