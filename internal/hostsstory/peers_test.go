//go:build linux

package hostsstory

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
)

// meets has all ranks meet where the environment says that the first one is.
const meets = `import os, socket, time
at, rank, size = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
print("rank", rank, "master", at[0], flush=True)
if rank == 0:
    s = socket.create_server(("", at[1]))
    s.settimeout(30)
    for _ in range(size - 1):
        c, who = s.accept()
        c.sendall(b"ok")
        c.close()
else:
    for _ in range(300):
        try:
            c = socket.create_connection(at, 2)
            break
        except OSError:
            time.sleep(0.1)
    assert c.recv(2) == b"ok"
print("rank", rank, "has met the others", flush=True)
`

// forwarded leads from a port of this machine's loopback to a host's sshd, as a
// provider of rented machines or a person's own ssh does.
func forwarded(t *testing.T, host int) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				there, err := net.Dial("tcp", testbed.Addr(host))
				if err != nil {
					return
				}
				defer func() { _ = there.Close() }()
				go func() { _, _ = io.Copy(there, c); _ = there.Close() }()
				_, _ = io.Copy(c, there)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// namedConfig is an ssh configuration in which hosts have names of their own. way gives
// for each of them the lines that lead there, and the name that its host key is known by.
func namedConfig(t *testing.T, bed *testbed.Bed, n int, way func(host int) (lines, known string)) string {
	t.Helper()
	dir := t.TempDir()
	var config, known strings.Builder
	for i := range n {
		key, err := bed.HostKey(i)
		if err != nil {
			t.Fatal(err)
		}
		lines, name := way(i)
		config.WriteString(lines)
		fmt.Fprintf(&known, "%s %s\n", name, strings.Join(strings.Fields(key)[:2], " "))
	}
	fmt.Fprintf(&config, "Host *\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s/known_hosts\n", testbed.User, bed.KeyFile(), dir)
	write(t, filepath.Join(dir, "config"), config.String())
	write(t, filepath.Join(dir, "known_hosts"), known.String())
	return filepath.Join(dir, "config")
}

// forwardedConfig is the ssh configuration of somebody who reaches hosts by
// forwarded ports.
func forwardedConfig(t *testing.T, bed *testbed.Bed, n int) string {
	t.Helper()
	return namedConfig(t, bed, n, func(i int) (lines, known string) {
		return fmt.Sprintf("Host rented%d\n HostName 127.0.0.1\n Port %d\n HostKeyAlias rented%d\n", i, forwarded(t, i), i), fmt.Sprint("rented", i)
	})
}

// commandConfig is the ssh configuration of somebody whose ssh calls a program, here
// another ssh, for machines whose names lead nowhere.
func commandConfig(t *testing.T, bed *testbed.Bed, n int) string {
	t.Helper()
	return namedConfig(t, bed, n, func(i int) (lines, known string) {
		name := fmt.Sprintf("i-0%d.invalid", i)
		return fmt.Sprintf("Host called%d\n HostName %s\n ProxyCommand ssh -F %s -o BatchMode=yes -W %s %s\n", i, name, bed.SSHConfig(), testbed.Addr(i), testbed.Name(0)), name
	})
}

// meet runs a training whose ranks have to meet, and gives what dlwb said.
func meet(t *testing.T, config, name, hosts string, want int) string {
	t.Helper()
	l := newLaptop(t, config, fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\n", name, hosts), meets)
	run := l.start("run", "--json")
	code := l.end(run, 3*time.Minute)
	text := run.text()
	if code != want {
		t.Errorf("%s ended with %d:\n%s", name, code, text)
	}
	logs, _ := filepath.Glob(filepath.Join(l.home, "state", "runs", "*", "rank-*.log"))
	for _, log := range logs {
		b, _ := os.ReadFile(log)
		text += string(b)
	}
	if code, said := l.do(time.Minute, "down", name); code != 0 {
		t.Errorf("down: %d %s", code, said)
	}
	return text
}

// Hosts that are reached by forwarded ports, or at addresses before a NAT, reach each
// other elsewhere. That is found, and the ranks meet there.
func TestRanksMeetWhereTheHostsReachEachOther(t *testing.T) {
	bed := realHosts(t, 3)
	config := forwardedConfig(t, bed, 3)
	if err := bed.WAN(5*time.Millisecond, "1gbit"); err != nil {
		t.Fatal(err)
	}
	wan := filepath.Join(t.TempDir(), "config")
	text, err := os.ReadFile(bed.SSHConfig())
	if err != nil {
		t.Fatal(err)
	}
	write(t, wan, string(text))
	for name, c := range map[string][2]string{
		"forwarded": {config, "rented0, rented1, rented2"},
		"nat":       {wan, "node1-wan, node2-wan, node3-wan"},
		"command":   {commandConfig(t, bed, 3), "called0, called1, called2"},
		"given":     {config, "{host: rented0, peer: " + testbed.Host(0) + "}, {host: rented1, peer: \"" + testbed.Addr(1) + "\"}, rented2"},
	} {
		said := meet(t, c[0], name, c[1], 0)
		for rank := range 3 {
			if want := fmt.Sprintf("rank %d master %s\n", rank, testbed.Host(0)); !strings.Contains(said, want) {
				t.Errorf("%s: it is not so that %q:\n%s", name, want, said)
			}
		}
		if strings.Contains(said, "is not reached from") {
			t.Errorf("%s: somebody is said not to be reached:\n%s", name, said)
		}
	}
}

// Where hosts don't reach each other, that is said before training, by the names that
// their user has for them, and code goes to each of them straight.
func TestHostsThatDoNotReachEachOtherAreNamedBeforeTraining(t *testing.T) {
	bed := realHosts(t, 3)
	config := forwardedConfig(t, bed, 3)
	for _, other := range []int{0, 1} {
		mustDo(t, bed, "cut", testbed.Name(2), testbed.Name(other))
	}
	l := newLaptop(t, config, "name: apart\nprovider: hosts\nmachines: {hosts: [rented0, rented1, rented2]}\nenvironment: system\n"+
		"run: {engine: plain, command: train.py}\n", `print("done")`)
	if err := os.WriteFile(filepath.Join(l.home, "code", "large"), randomBytes(12<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	mustDo(t, bed, "lanrate", "all", "40mbit")
	run := l.start("run", "--json")
	if code := l.end(run, 3*time.Minute); code != 0 {
		t.Fatalf("it ended with %d:\n%s", code, run.text())
	}
	said := run.text()
	warned, trained := strings.Index(said, "node2 (rented2) is not reached from node0 (rented0)"), strings.Index(said, `"event":"run_started"`)
	if warned < 0 || trained < warned {
		t.Errorf("it was not said before training:\n%s", said)
	}
	if strings.Contains(said, "node1 (rented1) is not reached") {
		t.Errorf("one that is reached is said not to be:\n%s", said)
	}
	if strings.Contains(said, "not reached from node0: sending from here") {
		t.Errorf("the files went by a node that does not reach the others, and were sent again:\n%s", said)
	}
	if code, text := l.do(time.Minute, "down", "apart"); code != 0 {
		t.Errorf("down: %d %s", code, text)
	}
}
