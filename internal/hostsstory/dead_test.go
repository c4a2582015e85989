//go:build linux

package hostsstory

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
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

// deadHosts are hosts of which some die, from one of the testbed's on. The stories of
// this file wait for limits: they go side by side, each with hosts of its own.
type deadHosts struct {
	*testbed.Bed
	from int
}

func (d deadHosts) name(i int) string { return testbed.Name(d.from + i) }

// names are those of the first n, as a profile has them.
func (d deadHosts) names(n int) string { return hostNames(d.from, n) }

func (d deadHosts) trains(t *testing.T, i int) bool {
	t.Helper()
	return trainsOn(t, d.Bed, d.from+i)
}

func TestHostsThatStayDead(t *testing.T) {
	sample.Leave(t)
	stories := []struct {
		name  string
		hosts int
		tell  func(t *testing.T, d deadHosts)
	}{
		{"two of four end the run and are named", 4, twoDieOfFour},
		{"down does not wait for one", 4, func(t *testing.T, d deadHosts) { downWithADeadHost(t, d, false) }},
		{"down does not wait for one, detached", 4, func(t *testing.T, d deadHosts) { downWithADeadHost(t, d, true) }},
		{"a run that hangs is ended", 2, hangsBesideADeadHost},
		{"the only one, beside another cluster", 2, func(t *testing.T, d deadHosts) {
			theOnlyOneDies(t, d, d.name(0), d.name(1), d.name(1)+" of cluster beside answers")
		}},
		{"the only one, behind a jump host", 2, func(t *testing.T, d deadHosts) {
			theOnlyOneDies(t, d, "behind", "", "the jump host "+d.name(1)+" answers")
		}},
		{"one dies, and one refuses a login", 3, func(t *testing.T, d deadHosts) { oneDiesAndOneRefuses(t, d, 3) }},
		{"one dies, and the only other one refuses a login", 2, func(t *testing.T, d deadHosts) { oneDiesAndOneRefuses(t, d, 2) }},
		{"the only one, and nothing else is known", 1, func(t *testing.T, d deadHosts) { theOnlyOneDies(t, d, d.name(0), "", "") }},
	}
	all := 0
	for _, s := range stories {
		all += s.hosts
	}
	bed, from := someHosts(t, all)
	for _, s := range stories {
		d := deadHosts{bed, from}
		from += s.hosts
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.tell(t, d)
		})
	}
}

// Two of four hosts die and stay dead. The run ends within its limit, with both and
// their ranks in the verdict; what lives is stopped, removed quickly, and what can't
// be reached is said.
func twoDieOfFour(t *testing.T, d deadHosts) {
	const lost = 30 * time.Second
	l := newLaptop(t, d.SSHConfig(), fmt.Sprintf("name: dead\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py, procs_per_node: 2}\nlimits: {lost: %s}\n", d.names(4), lost), prints)
	run := l.start("run", "--json")
	l.await(run, time.Minute, "the start of the run", called("run_started"))
	until(t, 20*time.Second, "all hosts train", func() bool { return d.trains(t, 0) && d.trains(t, 3) })
	mustDo(t, d.Bed, "kill", d.name(1))
	mustDo(t, d.Bed, "kill", d.name(3))
	died := time.Now()
	if code := l.end(run, lost+2*time.Minute); code == 0 {
		t.Errorf("the exit code is 0:\n%s", run.text())
	}
	end := l.await(run, time.Second, "the end of the run", called("run_ended"))
	cause := fmt.Sprint(end["cause"])
	for _, word := range []string{"node1 (" + d.name(1) + "; ranks 2, 3) has not been heard of since",
		"node3 (" + d.name(3) + "; ranks 6, 7) has not been heard of since", "not known"} {
		if !strings.Contains(cause, word) {
			t.Errorf("the cause does not say %q: %s", word, cause)
		}
	}
	if end["verdict"] != "lost" {
		t.Errorf("the verdict is %v", end["verdict"])
	}
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(end["time"]))
	if took := at.Sub(died); err != nil || took > lost+25*time.Second {
		t.Errorf("the verdict came %s after the hosts died, %v", took, err)
	}
	if text := run.text(); strings.Contains(text, `"state":"gone"`) {
		t.Errorf("a node that only does not answer was told to be gone:\n%s", text)
	}
	for _, host := range []int{0, 2} {
		if d.trains(t, host) {
			t.Errorf("%s still trains", d.name(host))
		}
	}
	downSaysWhatIsLeft(t, d, l, "dead", []int{0, 2}, []int{1, 3})
}

// One host dies, and one refuses a login from then on: the last, and the one before it.
// The run ends without the dead one. What is on the other one is not known, and that is
// said; nothing there is claimed to be stopped, until it can be.
func oneDiesAndOneRefuses(t *testing.T, d deadHosts, hosts int) {
	const lost = 30 * time.Second
	name := fmt.Sprintf("refused%d", hosts)
	l := newLaptop(t, d.SSHConfig(), fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\nlimits: {lost: %s}\n", name, d.names(hosts), lost), prints)
	run := l.start("run", "--json")
	l.await(run, time.Minute, "the start of the run", called("run_started"))
	refuses, dies := hosts-2, hosts-1
	until(t, time.Minute, "all hosts train", func() bool { return d.trains(t, 0) && d.trains(t, refuses) && d.trains(t, dies) })
	keys := fmt.Sprintf("/home/%s/.ssh/authorized_keys", testbed.User)
	shut := fmt.Sprintf("mv %s %s.shut; pkill -u %s sshd", keys, keys, testbed.User)
	if _, err := d.Run(d.from+refuses, shut); err != nil {
		t.Fatal(err)
	}
	late := l.start("attach", name, "--json") // by which no login has worked yet
	l.await(late, time.Minute, "that one refuses a login, to who comes then", func(e map[string]any) bool {
		return e["event"] == "node" && fmt.Sprint(e["node"]) == fmt.Sprint(refuses) && e["state"] == "unknown"
	})
	mustDo(t, d.Bed, "kill", d.name(dies))
	if code := l.end(late, lost+2*time.Minute); code == 0 || !strings.Contains(late.text(), "refuses a login") {
		t.Errorf("who came then is told %d:\n%s", code, late.text())
	}
	tried, err := d.Run(d.from+refuses, "grep -c 'authenticating user' /var/log/sshd.log")
	if n, _ := strconv.Atoi(strings.TrimSpace(tried)); err != nil || n == 0 || n > 12 { // sites lock out who tries often
		t.Errorf("the two tried %q logins, %v", tried, err)
	}
	if code := l.end(run, lost+2*time.Minute); code == 0 {
		t.Errorf("the exit code is 0:\n%s", run.text())
	}
	end := l.await(run, time.Second, "the end of the run", called("run_ended"))
	cause := fmt.Sprint(end["cause"])
	for _, says := range []string{fmt.Sprintf("node%d (%s; rank %d) has not been heard of since", dies, d.name(dies), dies),
		fmt.Sprintf("node%d (%s; rank %d) refuses a login", refuses, d.name(refuses), refuses), "not known"} {
		if !strings.Contains(cause, says) {
			t.Errorf("the cause does not say %q: %s", says, cause)
		}
	}
	if end["verdict"] != "lost" || fmt.Sprint(end["node"]) != fmt.Sprint(dies) {
		t.Errorf("the verdict is %v of node %v", end["verdict"], end["node"])
	}
	if !d.trains(t, refuses) || hosts == 3 && d.trains(t, 0) {
		t.Error("what can't be reached was stopped, or what can be was not")
	}
	code, text := l.do(2*time.Minute, "down", name)
	if code == 0 || !strings.Contains(text, "UNRESOLVED") || !strings.Contains(text, d.name(refuses)+": it could not be looked at") ||
		!strings.Contains(text, d.name(dies)+": it could not be looked at") {
		t.Errorf("down ended with %d:\n%s", code, text)
	}
	mustDo(t, d.Bed, "reboot", d.name(dies))
	if _, err := d.Run(d.from+refuses, fmt.Sprintf("mv %s.shut %s", keys, keys)); err != nil {
		t.Fatal(err)
	}
	if code, text := l.do(2*time.Minute, "down", name); code != 0 {
		t.Errorf("down again ended with %d:\n%s", code, text)
	}
	for host := range hosts {
		if _, err := os.Stat(filepath.Join(d.Home(d.from+host), "dlwb")); !os.IsNotExist(err) || d.trains(t, host) {
			t.Errorf("something is left on %s: %v", d.name(host), err)
		}
	}
}

// downSaysWhatIsLeft takes a cluster down of which hosts are dead, and again when
// they are back.
func downSaysWhatIsLeft(t *testing.T, d deadHosts, l *laptop, name string, alive, dead []int) {
	t.Helper()
	down := l.start("down", name, "--json")
	for _, host := range alive {
		until(t, time.Minute, d.name(host)+" is given back", func() bool {
			_, err := os.Stat(filepath.Join(d.Home(d.from+host), ".dlwb"))
			return os.IsNotExist(err) && !d.trains(t, host)
		})
	}
	code := l.end(down, time.Minute)
	t.Logf("down:\n%s", down.text())
	// Its own moments: on a busy machine this test sees seconds later that a host is
	// free. All of it takes longer there, and so does the wait for who is dead, at whose
	// end down ends.
	at := func(fits func(map[string]any) bool) time.Time {
		e := l.await(down, time.Second, "a moment of down", fits)
		when, err := time.Parse(time.RFC3339Nano, fmt.Sprint(e["time"]))
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	began, ended := at(called("step_started")), at(called("receipt"))
	for _, host := range alive {
		said := at(func(e map[string]any) bool {
			return e["event"] == "step_progress" && strings.HasPrefix(fmt.Sprint(e["text"]), d.name(host)+": given back")
		})
		if after := said.Sub(began); after > 10*time.Second && said.After(ended.Add(-2*time.Second)) {
			t.Errorf("%s, which lives, was given back after %s, and down ended after %s", d.name(host), after, ended.Sub(began))
		}
	}
	if code == 0 || !strings.Contains(down.text(), "UNRESOLVED") {
		t.Errorf("down ended with %d:\n%s", code, down.text())
	}
	for _, host := range dead {
		if !strings.Contains(down.text(), d.name(host)+": it could not be looked at") {
			t.Errorf("down does not say that %s was not reached:\n%s", d.name(host), down.text())
		}
		mustDo(t, d.Bed, "reboot", d.name(host))
	}
	if code, text := l.do(time.Minute, "down", name); code != 0 {
		t.Errorf("down again ended with %d:\n%s", code, text)
	}
	for host := range 4 {
		if _, err := os.Stat(filepath.Join(d.Home(d.from+host), "dlwb")); !os.IsNotExist(err) {
			t.Errorf("something is left on %s: %v", d.name(host), err)
		}
	}
}

// A cluster whose run goes on is taken down while a host is dead: what lives does
// not wait for it, whoever watches the run.
func downWithADeadHost(t *testing.T, d deadHosts, detached bool) {
	l := newLaptop(t, d.SSHConfig(), fmt.Sprintf("name: dying\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n", d.names(4)), prints)
	args := []string{"run", "--json"}
	if detached {
		args = append(args, "--detach")
	}
	run := l.start(args...)
	l.await(run, time.Minute, "the start of the run", called("run_started"))
	until(t, 20*time.Second, "all hosts train", func() bool { return d.trains(t, 0) && d.trains(t, 2) })
	if detached {
		l.end(run, time.Minute)
	}
	mustDo(t, d.Bed, "kill", d.name(2))
	downSaysWhatIsLeft(t, d, l, "dying", []int{0, 1, 3}, []int{2})
	l.end(run, time.Minute)
}

// A host that is dead does not keep a run from being found to hang.
func hangsBesideADeadHost(t *testing.T, d deadHosts) {
	l := newLaptop(t, d.SSHConfig(), fmt.Sprintf("name: hangs\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\nlimits: {stall: 15s, lost: 30m}\n", d.names(2)), prints)
	run := l.start("run", "--json")
	l.await(run, time.Minute, "the start of the run", called("run_started"))
	until(t, 20*time.Second, "both hosts train", func() bool { return d.trains(t, 0) && d.trains(t, 1) })
	time.Sleep(time.Second) // both have printed
	mustDo(t, d.Bed, "kill", d.name(1))
	if err := os.WriteFile(filepath.Join(d.Home(d.from), "dlwb", "hangs", "code", "quiet"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := l.end(run, 2*time.Minute); code == 0 {
		t.Error("the exit code is 0")
	}
	end := l.await(run, time.Second, "the end of the run", called("run_ended"))
	if end["verdict"] != "hung" || !strings.Contains(fmt.Sprint(end["cause"]), "node1 ("+d.name(1)+"; rank 1) has not been heard of") {
		t.Errorf("it ended with %v", end)
	}
}

// The only node of a run dies. What else is on the way tells whether it is the node or
// this machine: a host of another cluster, or the jump host. With neither nothing is
// ended, and that is said with how long.
func theOnlyOneDies(t *testing.T, d deadHosts, host, other, says string) {
	profile := func(name, host string) string {
		return fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
			"run: {engine: plain, command: train.py}\nlimits: {lost: 30s}\n", name, host)
	}
	l := newLaptop(t, d.behind(t), profile("only", host), prints)
	if other != "" {
		write(t, filepath.Join(l.home, "code", "beside.yaml"), profile("beside", other))
		if code, text := l.do(time.Minute, "up", "beside.yaml"); code != 0 {
			t.Fatalf("up: %d %s", code, text)
		}
	}
	run := l.start("run", "--json")
	l.await(run, time.Minute, "the start of the run", called("run_started"))
	until(t, 20*time.Second, "it trains", func() bool { return d.trains(t, 0) })
	mustDo(t, d.Bed, "kill", d.name(0))
	died := time.Now()
	if says == "" {
		l.await(run, 75*time.Second, "that nobody knows", func(e map[string]any) bool {
			return e["event"] == "notice" && strings.Contains(fmt.Sprint(e["text"]), "has been heard of for") && strings.Contains(fmt.Sprint(e["text"]), "can't be told")
		})
	} else {
		if code := l.end(run, 2*time.Minute); code == 0 {
			t.Error("the exit code is 0")
		}
		end := l.await(run, time.Second, "the end of the run", called("run_ended"))
		if cause := fmt.Sprint(end["cause"]); end["verdict"] != "lost" || !strings.Contains(cause, says) || !strings.Contains(cause, "rank 0") {
			t.Errorf("it ended with %v: %s", end["verdict"], cause)
		}
		if took := time.Since(died); took > 55*time.Second {
			t.Errorf("the verdict came after %s", took)
		}
	}
	code, text, took := l.down("only")
	if code == 0 || !strings.Contains(text, "could not be looked at") {
		t.Errorf("down ended with %d:\n%s", code, text)
	}
	if took > 25*time.Second {
		t.Errorf("down took %s", took)
	}
	l.end(run, 30*time.Second)
	mustDo(t, d.Bed, "reboot", d.name(0))
	for _, name := range []string{"only", "beside"}[:1+min(1, len(other))] {
		if code, text := l.do(time.Minute, "down", name); code != 0 {
			t.Errorf("down again: %d %s", code, text)
		}
	}
}

// behind is a configuration of ssh in which the first host has a second name, under
// which it is reached through the next one.
func (d deadHosts) behind(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, fmt.Sprintf("Host behind\n HostName %s\n HostKeyAlias %s\n ProxyJump %s\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n"+
		" UserKnownHostsFile %s\nHost *\nInclude %s\n", testbed.Host(d.from), d.name(0), d.name(1), testbed.User, d.KeyFile(),
		filepath.Join(filepath.Dir(d.SSHConfig()), "known_hosts"), d.SSHConfig()))
	return path
}
