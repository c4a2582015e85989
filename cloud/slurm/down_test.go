//go:build unix

package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// here runs lines by the sh of this machine, as the agent of a login node does.
type here struct {
	cloud.Machine
	home string
}

// Records: whoever follows a part brings its own.
func (h here) Records(string) cloud.Records { return nil }

func (h here) Run(ctx context.Context, line string, input []byte) (cloud.Said, error) {
	c := exec.CommandContext(ctx, "sh", "-c", line)
	var out, errs bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = h.home, bytes.NewReader(input), &out, &errs
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	return cloud.Said{Code: c.ProcessState.ExitCode(), Out: out.Bytes(), Err: errs.Bytes()}, err
}

// Whoever takes a cluster down while sbatch waits for a controller that does not
// answer is not told that there is no job.
func TestAnSbatchOnItsWayIsNoProofThatThereIsNoJob(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	if err := testprogram.Write(filepath.Join(bin, "squeue"), []byte("#!/bin/sh\n"), 0o755); err != nil { // the queue is empty
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dir := jobDir(home, "run")
	trying := filepath.Join(dir, "trying")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(trying, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var told []string
	soon, cancel := context.WithCancel(t.Context())
	defer cancel()
	tell := func(_ int, text string) { // nobody waits any longer when it was told
		told = append(told, text)
		cancel()
	}
	if id, _, err := settled(soon, here{home: home}, home, "run", tell); err == nil || !strings.Contains(err.Error(), "may still bring a job") || len(told) != 1 {
		t.Errorf("%q %v, told %q", id, err, told)
	}
	if err := os.Chtimes(trying, time.Time{}, time.Now().Add(-5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if id, _, err := settled(t.Context(), here{home: home}, home, "run", tell); err != nil || id != "" {
		t.Errorf("%q %v", id, err)
	}
}

func TestARefusedJobIsNotOnItsWay(t *testing.T) {
	for said, on := range map[string]bool{
		"sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified": false,
		"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation":                    true,
		"sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received":                    true,
	} {
		home, bin := t.TempDir(), t.TempDir()
		if err := testprogram.Write(filepath.Join(bin, "sbatch"), []byte("#!/bin/sh\necho '"+said+"' >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		r, err := here{home: home}.Run(t.Context(), sbatchLine(words(home), "life", false), []byte("#!/bin/sh\n"))
		if err != nil || r.Code != 71 || !strings.Contains(string(r.Err), said) {
			t.Errorf("%+v %v", r, err)
		}
		if _, err := os.Stat(filepath.Join(home, "trying")); (err == nil) != on {
			t.Errorf("%s: is it on its way: %v", said, err == nil)
		}
	}
}

// desk is a provider with one life, whose login node is this machine.
func desk(t *testing.T) (p *Provider, life cloud.Life, home, bin string) {
	t.Helper()
	home, bin = t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	p = New(Options{Dir: t.TempDir(), Machine: func(cloud.Node) cloud.Machine { return here{home: home} }})
	life = cloud.Life{Name: "c", ID: "life"}
	if err := errors.Join(p.write(life, record{Home: home}), os.MkdirAll(jobDir(home, "run"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return p, life, home, bin
}

// fake is a command of Slurm's, which counts its calls.
func fake(t *testing.T, bin, name, text string) {
	t.Helper()
	if err := testprogram.Write(filepath.Join(bin, name), []byte("#!/bin/sh\necho call >>\"$0.calls\"\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func calls(bin, name string) int {
	text, _ := os.ReadFile(filepath.Join(bin, name+".calls"))
	return strings.Count(string(text), "call")
}

// Whoever looks while an sbatch is on its way is not told that there is no job.
func TestFindDoesNotSayThatNothingWasHandedInWhileSbatchGoesOn(t *testing.T) {
	p, life, home, bin := desk(t)
	fake(t, bin, "squeue", "")
	defer func(was time.Duration) { sbatchMost = was }(sbatchMost)
	sbatchMost = 500 * time.Millisecond
	slow := exec.Command("sleep", "60")
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	host, err := exec.Command("uname", "-n").Output()
	if err != nil {
		t.Fatal(err)
	}
	trying := filepath.Join(jobDir(home, "run"), "trying")
	old := time.Now().Add(-5 * time.Minute) // its minute is over, and it goes on
	if err := errors.Join(os.WriteFile(trying, fmt.Appendf(nil, "%d %s", slow.Process.Pid, host), 0o600), os.Chtimes(trying, time.Time{}, old)); err != nil {
		t.Fatal(err)
	}
	if found, err := p.Find(t.Context(), life, "run", cloud.Untold); err == nil || found.Ref != "" || !strings.Contains(err.Error(), "may still bring a job") {
		t.Errorf("%+v %v", found, err)
	}
	_ = slow.Process.Kill()
	_ = slow.Wait()
	if found, err := p.Find(t.Context(), life, "run", cloud.Untold); err != nil || found.Ref != "" {
		t.Errorf("%+v %v", found, err)
	}
}

// An sbatch that gave up waiting may have brought a job into the queue: it comes late,
// and is found. It is handed in once.
func TestAJobWhoseSbatchGaveUpIsFoundLater(t *testing.T) {
	_, life, home, bin := desk(t)
	fake(t, bin, "sbatch", "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1")
	fake(t, bin, "squeue", `[ "$(grep -c call "$0.calls")" -lt 4 ] || echo '77|PENDING||N/A|dlwb-run|Priority'`)
	id, err := sbatch(t.Context(), here{home: home}, life, order{run: "run", home: home, nodes: 1}, func(int, string) {})
	if err != nil || id != "77" || calls(bin, "sbatch") != 1 {
		t.Errorf("%q %v, handed in %d times", id, err, calls(bin, "sbatch"))
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there is no %s after a minute", path)
		}
	}
}

// Whoever asks for a job while its sbatch is on its way waits for it, and is told so.
func TestAnSbatchThatGoesOnIsWaitedFor(t *testing.T) {
	p, life, home, bin := desk(t)
	fake(t, bin, "squeue", `[ "$(grep -c call "$0.calls")" -lt 4 ] || echo '77|PENDING||N/A|dlwb-run|Priority'`)
	if err := os.WriteFile(filepath.Join(jobDir(home, "run"), "trying"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []string
	found, err := p.Find(t.Context(), life, "run", func(_ int, text string) { told = append(told, text) })
	if err != nil || !strings.HasPrefix(found.Ref, "77/") || len(told) != 1 || !strings.Contains(told[0], "less than a minute ago") {
		t.Errorf("%+v %v, told %q", found, err, told)
	}
}

// A dlwb that is killed, or whose connection breaks, while sbatch waits for the controller
// leaves no doubt: the agent ends what its caller asked for, and sbatch comes to its end.
func TestAnSbatchWhoseCallerIsGoneIsSeenToItsEnd(t *testing.T) {
	p, life, home, bin := desk(t)
	fake(t, bin, "squeue", "")
	dir := jobDir(home, "run")
	fake(t, bin, "sbatch", `: >`+words(home)+`/waits; while [ -e `+words(home)+`/waits ] && [ ! -e `+words(home)+`/go ]; do sleep 0.05; done; echo 17`)
	for _, end := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGKILL} {
		for _, name := range []string{"waits", "go"} {
			_ = os.Remove(filepath.Join(home, name))
		}
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		out, back, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sh", "-c", sbatchLine(words(dir), "life", false))
		c.Dir, c.Stdin, c.Stdout, c.Stderr = home, strings.NewReader("#!/bin/sh\n"), back, back
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_ = back.Close()
		awaitFile(t, filepath.Join(home, "waits"))
		_ = syscall.Kill(-c.Process.Pid, end)
		_ = out.Close() // nobody reads what it prints
		if err := os.WriteFile(filepath.Join(home, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		awaitFile(t, filepath.Join(dir, "id"))
		_ = c.Wait() // not before: under nohup a SIGHUP ends nothing
		if found, err := p.Find(t.Context(), life, "run", cloud.Untold); err != nil || !strings.HasPrefix(found.Ref, "17/") {
			t.Errorf("%v: %+v %v", end, found, err)
		}
	}
}

// Where nothing came in its time, the run has failed; what comes later still ends at once.
func TestAJobThatComesTooLateDoesNothing(t *testing.T) {
	_, life, home, bin := desk(t)
	fake(t, bin, "sbatch", "touch -t 202001010000 trying; echo 'sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received' >&2; exec sh -c 'exit 1'")
	fake(t, bin, "squeue", "")
	o := order{run: "run", home: home, nodes: 1}
	id, err := sbatch(t.Context(), here{home: home}, life, o, func(int, string) {})
	if err == nil || id != "" || !strings.Contains(err.Error(), "Zero Bytes") || strings.Contains(err.Error(), "not known") {
		t.Errorf("%q %v", id, err)
	}
	c := exec.Command("sh", filepath.Join(jobDir(home, "run"), "script"))
	if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != 75 || !strings.Contains(string(out), "given up") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(jobDir(home, "run"), "begun-0")); err == nil {
		t.Error("it has begun")
	}
}

// A controller that lost its last words begins a job again with the same restart count.
// It goes on with its next life; another job of the same run does nothing.
func TestAJobThatIsBegunTwiceGoesOnAndItsTwinDoesNot(t *testing.T) {
	_, _, home, bin := desk(t)
	fake(t, bin, "srun", `echo "$*" >>"$0.words"`) // the part is the last of them
	fake(t, bin, "scontrol", "")
	script := filepath.Join(jobDir(home, "run"), "script")
	if err := os.WriteFile(script, []byte(order{run: "run", home: home, agent: "agent", nodes: 1}.script()), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, begun := range []struct {
		job, restarts string
		code          int
	}{{"7", "", 0}, {"8", "", 75}, {"7", "0", 0}, {"7", "1", 0}, {"8", "1", 75}} {
		c := exec.Command("sh", script)
		c.Env = append(os.Environ(), "SLURM_JOB_NUM_NODES=1", "SLURM_JOB_ID="+begun.job)
		if begun.restarts != "" {
			c.Env = append(c.Env, "SLURM_RESTART_COUNT="+begun.restarts)
		}
		if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != begun.code {
			t.Errorf("job %s, restarts %q: code %d\n%s", begun.job, begun.restarts, c.ProcessState.ExitCode(), out)
		}
	}
	words, _ := os.ReadFile(filepath.Join(bin, "srun.words"))
	lives := regexp.MustCompile(`/runs/run (\d) `).FindAllStringSubmatch(string(words), -1)
	if len(lives) != 3 || lives[0][1] != "0" || lives[1][1] != "1" || lives[2][1] != "2" {
		t.Errorf("its lives were %q, of\n%s", lives, words)
	}
}

// A job whose node failed, or that was preempted, is gone for a moment before it is back
// in the queue: it is not over because one look has shown that.
func TestAJobThatIsGoneForAMomentIsNotOver(t *testing.T) {
	for _, state := range []string{"NODE_FAIL", "PREEMPTED"} {
		p, _, home, bin := desk(t)
		fake(t, bin, "squeue", `if [ "$(grep -c call "$0.calls")" -lt 4 ]; then echo '9|`+state+`|n1|N/A|dlwb-run|None'; else echo '9|PENDING||N/A|dlwb-run|BeginTime'; fi`)
		fake(t, bin, "scontrol", "echo 'JobId=9 JobState="+state+" Reason=NodeDown NodeList=n1 ExitCode=0:1 Restarts=0'")
		fake(t, bin, "sacct", "exit 1")
		for {
			s, err := p.look(t.Context(), here{home: home}, home, "run", "9", 0)
			if err != nil || s.over() {
				t.Fatalf("%s: after %d looks: %+v, %v", state, calls(bin, "squeue"), s, err)
			}
			if s.waits() {
				break
			}
		}
	}
}

// Accounting hears of an end a little after the controller shows it: until then who
// cancelled a job is not said to be unknown.
func TestWhoCancelledAJobIsWaitedForWhileAccountingIsBehind(t *testing.T) {
	for name, c := range map[string]struct{ sacct, by string }{
		"it hears of it":    {`if [ "$(grep -c call "$0.calls")" -lt 3 ]; then echo 'RUNNING|0:0|Unknown|0'; else echo 'CANCELLED by 1000|0:0|2026-11-27T10:00:00|0'; fi`, "user 1000"},
		"it never hears":    {`echo 'RUNNING|0:0|Unknown|0'`, ""},
		"it has no row":     {``, ""},
		"there are no rows": {`echo 'Slurm accounting storage is disabled' >&2; exit 1`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, home, bin := desk(t)
			fake(t, bin, "squeue", "echo '9|CANCELLED|n1|N/A|dlwb-run|None'")
			fake(t, bin, "scontrol", "echo 'JobId=9 JobState=CANCELLED Reason=None NodeList=n1 ExitCode=0:15 Restarts=0'")
			fake(t, bin, "sacct", c.sacct)
			for {
				s, err := p.look(t.Context(), here{home: home}, home, "run", "9", 0)
				if err != nil {
					t.Fatal(err)
				}
				if s.over() {
					if s.state != "CANCELLED" || s.by != c.by {
						t.Errorf("%+v", s)
					}
					return
				}
			}
		})
	}
}

// Jobs of a cluster of the same name, of another dlwb, have their code in the same place,
// and so has a cluster of hosts.
func TestRunsOfOthersOutliveADownOfSlurms(t *testing.T) {
	for other, files := range map[string][]string{
		"nobody":            nil,
		"another job":       {".dlwb/runs/other.n0/dir", ".dlwb/jobs/other/script", "dlwb/lab/code/train.py"},
		"hosts":             {".dlwb/cluster", ".dlwb/bin/stop", "dlwb/lab/code/train.py"},
		"hosts, not first":  {".dlwb/cluster", ".dlwb/claims/host", ".dlwb/bin/stop", "dlwb/lab/code/train.py"},
		"hosts, coming":     {".dlwb/claims/host", "dlwb/lab/code/train.py"}, // the host's own file is the first that is written
		"another's records": {".dlwb/dlwb.db"},
	} {
		t.Run(other, func(t *testing.T) {
			home := t.TempDir()
			put := func(name, text string) {
				path := filepath.Join(home, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			own := []string{".dlwb/runs/run.n0/dir", ".dlwb/runs/run.n1/dir", ".dlwb/jobs/run/script"}
			put("dlwb/lab/code/train.py", "")
			for _, name := range append(own, files...) {
				put(name, home+"/dlwb/lab/code\n")
			}
			switch other {
			case "hosts":
				put(".dlwb/cluster", "cluster lab\nlife aa\n")
			case "hosts, coming":
				put(".dlwb/claims/host", "cluster lab\nlife aa\n")
			case "hosts, not first":
				put(".dlwb/cluster", "cluster other\nlife bb\n")
				put(".dlwb/claims/host", "cluster lab\nlife aa\n")
			}
			left, err := clear(t.Context(), here{home: home}, cloud.Life{Name: "lab"}, record{Home: home, Runs: []string{"run"}})
			if left != "" || err != nil {
				t.Errorf("left %q, %v", left, err)
			}
			for _, name := range files {
				if _, err := os.Stat(filepath.Join(home, name)); err != nil {
					t.Errorf("what others have is gone: %v", err)
				}
			}
			for _, name := range own {
				if _, err := os.Stat(filepath.Join(home, name)); err == nil {
					t.Errorf("%s is left", name)
				}
			}
			if entries, _ := os.ReadDir(home); files == nil && len(entries) > 0 {
				t.Errorf("left: %v", entries)
			}
		})
	}
}
