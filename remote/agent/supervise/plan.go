//go:build linux

package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/internal/crash"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

// planName is the file from which the supervisor starts a run. It holds the
// environment, and with that secrets.
const planName = "launch"

// ReadPlan reads what a run is to do.
func ReadPlan(r runs.Run) (plan wire.LaunchRequest, err error) {
	text, err := os.ReadFile(r.Path(planName))
	if err == nil {
		err = cbor.Unmarshal(text, &plan)
	}
	return plan, err
}

// upLimit is how long a supervisor may take to come up.
const upLimit = 10 * time.Second

// Launch prepares a run and starts its supervisor; it returns when that is up.
// A second launch of the same run does nothing.
func Launch(_ context.Context, home, agent string, plan wire.LaunchRequest) error {
	r, err := runs.Open(home, plan.RunID)
	if err != nil {
		return wire.Faultf(wire.Wrong, "%v", err)
	}
	if !r.Launched() {
		if err := prepare(home, r, plan); err != nil {
			return err
		}
	}
	if plan.Hold {
		return nil
	}
	if err := os.Mkdir(r.Path("lock"), 0o700); err != nil {
		if !r.Launched() {
			return err
		}
		return awaitUp(r, nil)
	}
	if err := startSupervisor(r, agent); err != nil {
		return errors.Join(err, os.Remove(r.Path("lock")))
	}
	return nil
}

// prepare writes the files of a run.
func prepare(home string, r runs.Run, plan wire.LaunchRequest) error {
	if err := check(plan); err != nil {
		return wire.Faultf(wire.Wrong, "%v", err)
	}
	dir := below(home, plan.Dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || unix.Access(dir, unix.X_OK) != nil {
		return wire.Faultf(wire.Absent, "the code directory %s is not there", dir)
	}
	text, err := cbor.Marshal(plan)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	var procs strings.Builder
	for _, p := range plan.Procs {
		fmt.Fprintf(&procs, "%s %s\n", p.Name, p.Log)
	}
	files := map[string][]byte{planName: text, "procs": []byte(procs.String()), "dir": []byte(dir + "\n")}
	if len(plan.OnNotice) > 0 {
		files["on_notice"] = []byte(noticeText(home, dir, plan))
	}
	if plan.Results != "" {
		results := below(home, plan.Results)
		if err := os.MkdirAll(results, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(results, 0o755); err != nil { // what the run makes there is for whoever may read the code
			return err
		}
		files["results"] = []byte(results + "\n")
	}
	for _, f := range plan.Files {
		files[f.Name] = f.Text
	}
	for name, text := range files {
		if err := r.Write(name, text); err != nil {
			return err
		}
	}
	return r.WriteSettings(runs.Settings{Node: plan.Node, Grace: time.Duration(plan.Grace) * time.Millisecond,
		Patience: time.Duration(plan.Patience) * time.Millisecond, Segment: plan.Segment, Keep: plan.Keep})
}

// check refuses what would be no plain line or file in the run's directory.
func check(plan wire.LaunchRequest) error {
	if len(plan.Procs) == 0 || plan.Dir == "" || strings.ContainsAny(plan.Dir+plan.Results, "\x00\n") {
		return errors.New("there is nothing to start, or nowhere")
	}
	if plan.Segment < 1 || plan.Keep < 2 || plan.Grace < 0 || plan.Patience < 0 {
		return errors.New("its settings are out of bounds")
	}
	for _, p := range plan.Procs {
		if !runs.Plain(p.Name) || !runs.Plain(p.Log) || len(p.Argv) == 0 || len(p.Argv[0]) == 0 || len(p.Again) > 0 && len(p.Again[0]) == 0 {
			return fmt.Errorf("%.80q is no process", p.Name)
		}
		if a := p.After; a != nil && (len(a.Argv) == 0 || a.Limit < 0 || a.Limit > afterMost) {
			return fmt.Errorf("%.80q waits for nothing that could be", p.Name)
		}
	}
	for _, f := range plan.Files {
		if !runs.Plain(f.Name) || slices.Contains(ownFiles, f.Name) || strings.HasPrefix(f.Name, "rank-") || strings.HasPrefix(f.Name, runs.LifeMark) || strings.HasPrefix(f.Name, toldMark) {
			return fmt.Errorf("%.80q is no file that a run may bring", f.Name)
		}
	}
	return nil
}

// ownFiles are those in a run's directory that are ours.
var ownFiles = []string{planName, "procs", "dir", "on_notice", "results", "settings", "status", "exit", "pid", "lock", "full",
	"events", "stopping", "supervise.log", doorName, joinName, waitsName}

// afterMost is the longest that a process may wait for something, in seconds.
const afterMost = 24 * 3600

func below(home, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(home, path)
}

// noticeText is the program of sh that the lease of a paid machine runs, in the
// run's directory, when the machine is about to be taken away.
func noticeText(home, dir string, plan wire.LaunchRequest) string {
	var text strings.Builder
	for _, kv := range plan.Env {
		name, value, _ := bytes.Cut(kv, []byte("="))
		fmt.Fprintf(&text, "export %s=%s\n", name, shellword.Quote(string(value)))
	}
	if plan.Results != "" {
		fmt.Fprintf(&text, "export DLWB_RESULTS=%s\n", shellword.Quote(below(home, plan.Results)))
	}
	fmt.Fprintf(&text, "cd %s || exit 66\nexec", shellword.Quote(dir))
	for _, w := range plan.OnNotice {
		text.WriteString(" " + shellword.Quote(inHome(home, string(w))))
	}
	return text.String() + "\n"
}

// inHome gives a word in which ~/.dlwb/ in front means the home.
func inHome(home, word string) string {
	if rest, ok := strings.CutPrefix(word, "~/"); ok && strings.HasPrefix(rest, ".dlwb/") {
		return filepath.Join(home, rest)
	}
	return word
}

// startSupervisor starts "agent supervise" where no lost connection reaches it.
func startSupervisor(r runs.Run, agent string) error {
	log, err := os.OpenFile(r.Path("supervise.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	argv := append(scope(r), agent, "supervise", r.Dir)
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdout, c.Stderr = log, log
	c.Env = append(os.Environ(), runs.EnvID+"="+r.ID, runs.EnvDir+"="+r.Dir, runs.EnvRole+"=supervise", runs.EnvBin+"="+agent)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	if err := awaitUp(r, ended); err != nil {
		_ = c.Process.Kill()
		said, _ := os.ReadFile(r.Path("supervise.log"))
		if why, _ := crash.Why(string(said)); why != "" {
			return wire.Faultf(wire.Failed, "the run did not come up: %s", why)
		}
		return wire.Faultf(wire.Failed, "the run did not come up: %s", bytes.TrimSpace(said[max(0, len(said)-2000):]))
	}
	return nil
}

// scope asks systemd for a place where the end of a login ends nothing.
func scope(r runs.Run) []string {
	if _, err := os.Stat("/run/systemd/system"); err != nil || os.Getuid() != 0 {
		return nil
	}
	argv := []string{"systemd-run", "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--unit=" + groupName(r)}
	if exec.Command(argv[0], append(argv[1:], "true")...).Run() != nil {
		return nil
	}
	return argv
}

// awaitUp waits until the supervisor has written its pid.
func awaitUp(r runs.Run, ended <-chan struct{}) error {
	for limit := time.After(upLimit); !r.Has("pid"); {
		select {
		case <-ended:
			if r.Has("pid") {
				return nil
			}
			return errors.New("it has ended")
		case <-limit:
			return wire.Faultf(wire.Failed, "it was launched before, and that did not come up: launch it under another id")
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
