//go:build linux

package hostsstory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
)

// prints prints a step every tenth of a second for ever.
const prints = `import os, time
step = 0
os.makedirs("outputs", exist_ok=True)
while not os.path.exists("quiet"):
    step += 1
    print("rank", os.environ["RANK"], "step", step, flush=True)
    time.sleep(0.1)
time.sleep(100000)
`

func hostNames(from, n int) string {
	var names []string
	for i := range n {
		names = append(names, testbed.Name(from+i))
	}
	return strings.Join(names, ", ")
}

func mustDo(t *testing.T, bed *testbed.Bed, args ...string) {
	t.Helper()
	if err := bed.Do(args...); err != nil {
		t.Fatal(err)
	}
}

// Two of four hosts die and stay dead. The run ends within its limit, with both and
// their ranks in the verdict; what lives is stopped, removed quickly, and what can't
// be reached is said.
func TestHostsThatStayDeadEndTheRunAndAreNamed(t *testing.T) {
	bed := realHosts(t, 4)
	const lost = 30 * time.Second
	l := newLaptop(t, bed.SSHConfig(), fmt.Sprintf("name: dead\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py, procs_per_node: 2}\nlimits: {lost: %s}\n", hostNames(0, 4), lost), prints)
	run := l.start("run", "--json")
	l.await(run, time.Minute, "the start of the run", called("run_started"))
	until(t, 20*time.Second, "all hosts train", func() bool { return trainsOn(t, bed, 0) && trainsOn(t, bed, 3) })
	mustDo(t, bed, "kill", testbed.Name(1))
	mustDo(t, bed, "kill", testbed.Name(3))
	died := time.Now()
	if code := l.end(run, lost+2*time.Minute); code == 0 {
		t.Errorf("the exit code is 0:\n%s", run.text())
	}
	end := l.await(run, time.Second, "the end of the run", called("run_ended"))
	cause := fmt.Sprint(end["cause"])
	for _, word := range []string{"node1 (node2; ranks 2, 3) has not been heard of since", "node3 (node4; ranks 6, 7) has not been heard of since", "not known"} {
		if !strings.Contains(cause, word) {
			t.Errorf("the cause does not say %q: %s", word, cause)
		}
	}
	if end["verdict"] != "lost" {
		t.Errorf("the verdict is %v", end["verdict"])
	}
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(end["time"]))
	if took := at.Sub(died); err != nil || took > lost+10*time.Second {
		t.Errorf("the verdict came %s after the hosts died, %v", took, err)
	}
	if text := run.text(); strings.Contains(text, `"state":"gone"`) {
		t.Errorf("a node that only does not answer was told to be gone:\n%s", text)
	}
	for _, host := range []int{0, 2} {
		if trainsOn(t, bed, host) {
			t.Errorf("%s still trains", testbed.Name(host))
		}
	}
	downSaysWhatIsLeft(t, bed, l, "dead", []int{0, 2}, []int{1, 3})
}

// downSaysWhatIsLeft takes a cluster down of which hosts are dead, and again when
// they are back.
func downSaysWhatIsLeft(t *testing.T, bed *testbed.Bed, l *laptop, name string, alive, dead []int) {
	t.Helper()
	began := time.Now()
	down := l.start("down", name)
	for _, host := range alive {
		until(t, 12*time.Second, testbed.Name(host)+" is given back", func() bool {
			_, err := os.Stat(filepath.Join(bed.Home(host), ".dlwb"))
			return os.IsNotExist(err) && !trainsOn(t, bed, host)
		})
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("what lives was removed after %s", took)
	}
	code := l.end(down, time.Minute)
	t.Logf("down took %s:\n%s", time.Since(began), down.text())
	if code == 0 || !strings.Contains(down.text(), "UNRESOLVED") {
		t.Errorf("down ended with %d:\n%s", code, down.text())
	}
	for _, host := range dead {
		if !strings.Contains(down.text(), testbed.Name(host)+": it could not be looked at") {
			t.Errorf("down does not say that %s was not reached:\n%s", testbed.Name(host), down.text())
		}
		mustDo(t, bed, "reboot", testbed.Name(host))
	}
	if code, text := l.do(time.Minute, "down", name); code != 0 {
		t.Errorf("down again ended with %d:\n%s", code, text)
	}
	for host := range 4 {
		if _, err := os.Stat(filepath.Join(bed.Home(host), "dlwb")); !os.IsNotExist(err) {
			t.Errorf("something is left on %s: %v", testbed.Name(host), err)
		}
	}
}

// A cluster whose run goes on is taken down while a host is dead: what lives does
// not wait for it, whoever watches the run.
func TestDownDoesNotWaitForADeadHost(t *testing.T) {
	bed := realHosts(t, 4)
	for _, detached := range []bool{false, true} {
		name := fmt.Sprintf("dying%v", detached)
		l := newLaptop(t, bed.SSHConfig(), fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
			"run: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n", name, hostNames(0, 4)), prints)
		args := []string{"run", "--json"}
		if detached {
			args = append(args, "--detach")
		}
		run := l.start(args...)
		l.await(run, time.Minute, "the start of the run", called("run_started"))
		until(t, 20*time.Second, "all hosts train", func() bool { return trainsOn(t, bed, 0) && trainsOn(t, bed, 2) })
		if detached {
			l.end(run, time.Minute)
		}
		mustDo(t, bed, "kill", testbed.Name(2))
		downSaysWhatIsLeft(t, bed, l, name, []int{0, 1, 3}, []int{2})
		l.end(run, time.Minute)
	}
}

// A host that is dead does not keep a run from being found to hang.
func TestARunThatHangsIsEndedAlthoughAHostIsDead(t *testing.T) {
	bed := realHosts(t, 2)
	l := newLaptop(t, bed.SSHConfig(), fmt.Sprintf("name: hangs\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\nlimits: {stall: 15s, lost: 30m}\n", hostNames(0, 2)), prints)
	run := l.start("run", "--json")
	l.await(run, time.Minute, "the start of the run", called("run_started"))
	until(t, 20*time.Second, "both hosts train", func() bool { return trainsOn(t, bed, 0) && trainsOn(t, bed, 1) })
	time.Sleep(time.Second) // both have printed
	mustDo(t, bed, "kill", testbed.Name(1))
	if err := os.WriteFile(filepath.Join(bed.Home(0), "dlwb", "hangs", "code", "quiet"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := l.end(run, 2*time.Minute); code == 0 {
		t.Error("the exit code is 0")
	}
	end := l.await(run, time.Second, "the end of the run", called("run_ended"))
	if end["verdict"] != "hung" || !strings.Contains(fmt.Sprint(end["cause"]), "node1 (node2; rank 1) has not been heard of") {
		t.Errorf("it ended with %v", end)
	}
}

// The only node of a run dies. What else is on the way tells whether it is the node or
// this machine: a host of another cluster, or the jump host. With neither nothing is
// ended, and that is said with how long.
func TestARunOfOneHostThatStaysDeadEndsWhereThatCanBeKnown(t *testing.T) {
	bed := realHosts(t, 3)
	profile := func(name, host string) string {
		return fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
			"run: {engine: plain, command: train.py}\nlimits: {lost: 30s}\n", name, host)
	}
	config := filepath.Join(t.TempDir(), "config")
	write(t, config, fmt.Sprintf("Host behind\n HostName %s\n HostKeyAlias %s\n ProxyJump %s\nInclude %s\n", testbed.Host(0), testbed.Name(0), testbed.Name(1), bed.SSHConfig()))
	text := strings.Replace(mustRead(t, config), "Include", "Host behind\n User "+testbed.User+"\n IdentityFile "+bed.KeyFile()+"\n IdentitiesOnly yes\n UserKnownHostsFile "+filepath.Join(filepath.Dir(bed.SSHConfig()), "known_hosts")+"\nHost *\nInclude", 1)
	write(t, config, text)
	for _, c := range []struct{ name, host, other, says string }{
		{"other", testbed.Name(0), testbed.Name(2), testbed.Name(2) + " of cluster beside answers"},
		{"jumped", "behind", "", "the jump host " + testbed.Name(1) + " answers"},
		{"alone", testbed.Name(0), "", ""},
	} {
		l := newLaptop(t, config, profile(c.name, c.host), prints)
		if c.other != "" {
			write(t, filepath.Join(l.home, "code", "beside.yaml"), profile("beside", c.other))
			if code, text := l.do(time.Minute, "up", "beside.yaml"); code != 0 {
				t.Fatalf("up: %d %s", code, text)
			}
		}
		run := l.start("run", "--json")
		l.await(run, time.Minute, "the start of the run", called("run_started"))
		until(t, 20*time.Second, "it trains", func() bool { return trainsOn(t, bed, 0) })
		mustDo(t, bed, "kill", testbed.Name(0))
		died := time.Now()
		if c.says == "" {
			l.await(run, 75*time.Second, "that nobody knows", func(e map[string]any) bool {
				return e["event"] == "notice" && strings.Contains(fmt.Sprint(e["text"]), "has been heard of for") && strings.Contains(fmt.Sprint(e["text"]), "can't be told")
			})
		} else {
			if code := l.end(run, 2*time.Minute); code == 0 {
				t.Error("the exit code is 0")
			}
			end := l.await(run, time.Second, "the end of the run", called("run_ended"))
			if cause := fmt.Sprint(end["cause"]); end["verdict"] != "lost" || !strings.Contains(cause, c.says) || !strings.Contains(cause, "rank 0") {
				t.Errorf("it ended with %v: %s", end["verdict"], cause)
			}
			if took := time.Since(died); took > 55*time.Second {
				t.Errorf("the verdict came after %s", took)
			}
		}
		began := time.Now()
		if code, text := l.do(time.Minute, "down", c.name); code == 0 || !strings.Contains(text, "could not be looked at") {
			t.Errorf("down ended with %d:\n%s", code, text)
		}
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("down took %s", took)
		}
		l.end(run, 30*time.Second)
		mustDo(t, bed, "reboot", testbed.Name(0))
		for _, name := range []string{c.name, "beside"}[:1+min(1, len(c.other))] {
			if code, text := l.do(time.Minute, "down", name); code != 0 {
				t.Errorf("down again: %d %s", code, text)
			}
		}
	}
}
