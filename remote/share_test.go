//go:build linux

package remote

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

const (
	givenDir = "dlwb/c/.wheels.0"
	takenDir = "dlwb/c/.wheels"
)

// given is what the first node has to give.
var given = map[string]string{"big.whl": noise(3, 700_000), "with a blank.whl": "small", "sub/dir/x": "x"}

// sharers are nodes of which the first has something to give.
func sharers(t *testing.T, count int) (from sharing, to []sharing, servers []*sshdtest.Server) {
	t.Helper()
	nodes, servers := family(t, count)
	writeFiles(t, filepath.Join(servers[0].Home, givenDir), given)
	for _, n := range nodes[1:] {
		to = append(to, sharing{n, takenDir})
	}
	return sharing{nodes[0], givenDir}, to, servers
}

func wantGiven(t *testing.T, home string) {
	t.Helper()
	for name, text := range given {
		got, err := os.ReadFile(filepath.Join(home, takenDir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s has %d bytes (%v), want %d", filepath.Join(home, takenDir, name), len(got), err, len(text))
		}
	}
}

// wantNothing waits until a node has cleaned up: what is cut off does it by itself.
func wantNothing(t *testing.T, home string) {
	t.Helper()
	within(t, 10*time.Second, "nothing left in "+home, func() bool {
		left, _ := filepath.Glob(filepath.Join(home, takenDir+"*"))
		pipes, _ := filepath.Glob(filepath.Join(home, ".dlwb/in/*"))
		return len(left)+len(pipes) == 0
	})
}

func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v; it should say %q", err, text)
	}
}

func TestADirectoryOfOneNodeComesWholeToTheOthers(t *testing.T) {
	from, to, servers := sharers(t, 3)
	// What was there before goes.
	writeFiles(t, filepath.Join(servers[1].Home, takenDir), map[string]string{"old.whl": "old"})
	errs := Share(testContext(t), Place{from.node.(*Node), from.dir},
		[]Place{{to[0].node.(*Node), takenDir}, {to[1].node.(*Node), takenDir}}, 8<<20)
	for i, err := range errs {
		check(t, err)
		wantGiven(t, servers[i+1].Home)
		all, _ := filepath.Glob(filepath.Join(servers[i+1].Home, takenDir+"*/*.whl"))
		pipes, _ := filepath.Glob(filepath.Join(servers[i+1].Home, ".dlwb/in/*"))
		if len(all) != 2 || len(pipes) > 0 {
			t.Errorf("there are %q and %q", all, pipes)
		}
	}
}

func TestANodeThatTheSenderCantReachGetsNothingAndTheOthersAll(t *testing.T) {
	from, to, servers := sharers(t, 3)
	known := filepath.Join(servers[0].Home, ".dlwb/peer_known_hosts")
	text, err := os.ReadFile(known)
	check(t, err)
	own := strings.Fields(servers[2].HostKey)[1]
	other := strings.Fields(sshdtest.MakeKey(t, filepath.Join(t.TempDir(), "key")))[1]
	check(t, os.WriteFile(known, bytes.ReplaceAll(text, []byte(own), []byte(other)), 0o600))
	errs := share(testContext(t), from, to, 8<<20)
	check(t, errs[0])
	wantGiven(t, servers[1].Home)
	says(t, errs[1], "could not reach this one")
	wantNothing(t, servers[2].Home)
}

// liar says another checksum than that of what it sends.
type liar struct{ syncNode }

func (l liar) Exec(ctx context.Context, c Cmd) (Result, error) {
	res, err := l.syncNode.Exec(ctx, c)
	res.Stdout = []byte(strings.Repeat("a", 64) + "\n")
	return res, err
}

func TestWhatIsNotWhatTheSenderSaysIsNotTaken(t *testing.T) {
	from, to, servers := sharers(t, 3)
	from.node = liar{from.node}
	for i, err := range share(testContext(t), from, to, 8<<20) {
		says(t, err, "not what the other node says it has sent")
		wantNothing(t, servers[i+1].Home)
	}
}

func TestMoreThanWasAgreedIsNotTaken(t *testing.T) {
	from, to, servers := sharers(t, 2)
	err := share(testContext(t), from, to, 300_000)[0]
	says(t, err, "tar")
	wantNothing(t, servers[1].Home)
}

// onTheWay puts a script in the place of relay on a node; the real one is $0.real.
func onTheWay(t *testing.T, s *sshdtest.Server, script string) {
	t.Helper()
	relay := filepath.Join(s.Home, ".dlwb/bin/relay")
	check(t, os.Rename(relay, relay+".real"))
	check(t, os.WriteFile(relay, []byte(script), 0o700))
}

func TestWhatIsCutShortOnTheWayIsNotTaken(t *testing.T) {
	from, to, servers := sharers(t, 2)
	onTheWay(t, servers[0], `head -c 200000 | sh "$0.real" "$@"; cat >/dev/null`)
	if err := share(testContext(t), from, to, 8<<20)[0]; err == nil {
		t.Error("nobody was told")
	}
	wantNothing(t, servers[1].Home)
}

func TestWhenTheSenderIsCutOffNothingIsLeftAnywhere(t *testing.T) {
	from, to, servers := sharers(t, 3)
	gone, over := filepath.Join(servers[0].Home, "gone"), filepath.Join(servers[0].Home, "over")
	onTheWay(t, servers[0], `{ head -c 200000; until [ -e "$HOME/gone" ]; do sleep 0.05; done; } | sh "$0.real" "$@"; : >"$HOME/over"`)
	done := make(chan []error)
	go func() { done <- share(testContext(t), from, to, 8<<20) }()
	within(t, 20*time.Second, "the sender at both nodes", func() bool {
		first, _ := filepath.Glob(filepath.Join(servers[1].Home, ".dlwb/in/*/came"))
		second, _ := filepath.Glob(filepath.Join(servers[2].Home, ".dlwb/in/*/came"))
		return len(first)+len(second) == 2
	})
	servers[0].KillConnections()
	for i, err := range <-done {
		says(t, err, "node0 could not send it")
		wantNothing(t, servers[i+1].Home)
	}
	check(t, os.WriteFile(gone, nil, 0o600))
	within(t, 10*time.Second, "the sender's end", func() bool { _, err := os.Stat(over); return err == nil })
}

// besideSSH stands for ssh to a home on this machine.
const besideSSH = `#!/bin/sh
for word; do
	case $word in me@*) home=${word#me@} ;; esac
	command=$word
done
HOME=$home SSH_ORIGINAL_COMMAND=$command exec sh "$home/.dlwb/bin/peer"
`

func TestADirectoryIsSharedUnderEveryShell(t *testing.T) {
	for name, node := range shellsOfNodes(t) {
		if strings.Contains(name, "without") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			check(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte(besideSSH), 0o700))
			var nodes []*shellNode
			var peers strings.Builder
			for i := range 3 {
				n := node(t)
				n.name = fmt.Sprintf("node%d", i)
				n.path = bin + ":" + n.path
				text, _ := install()
				res, err := n.Exec(t.Context(), Cmd{Line: "sh", Stdin: strings.NewReader(text)})
				if err != nil || res.ExitCode != 0 {
					t.Fatalf("%v %s", err, res.Stderr)
				}
				nodes = append(nodes, n)
				fmt.Fprintf(&peers, "%s %s 22 me\n", n.name, n.home)
			}
			for _, n := range nodes {
				check(t, os.WriteFile(filepath.Join(n.home, ".dlwb/peers"), []byte(peers.String()), 0o600))
			}
			writeFiles(t, filepath.Join(nodes[0].home, givenDir), given)
			errs := share(t.Context(), sharing{nodes[0], givenDir}, []sharing{{nodes[1], takenDir}, {nodes[2], takenDir}}, 8<<20)
			for i, err := range errs {
				check(t, err)
				wantGiven(t, nodes[i+1].home)
			}
		})
	}
}
