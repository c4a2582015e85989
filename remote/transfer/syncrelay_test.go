//go:build linux

package transfer

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote"
)

// peerable starts an sshd that honours its home's authorized_keys with the
// commands in it, as an ordinary one does.
func peerable(t *testing.T, opts ...sshdtest.Option) (*sshdtest.Server, remote.Peer) {
	t.Helper()
	dir := t.TempDir()
	keys := filepath.Join(dir, "authorized_keys")
	s := sshdtest.Start(t, append(opts, sshdtest.Plain(), sshdtest.Config("AuthorizedKeysFile "+keys))...)
	public, err := remote.GenerateKey(s.KeyFile, "")
	check(t, err)
	check(t, os.WriteFile(keys, []byte(public+"\n"), 0o600))
	check(t, os.Symlink(dir, filepath.Join(s.Home, ".ssh")))
	host, port, err := net.SplitHostPort(s.Addr)
	check(t, err)
	number, err := strconv.Atoi(port)
	check(t, err)
	return s, remote.Peer{Host: host, Port: number, User: s.User, HostKey: s.HostKey}
}

// family are nodes on real sshd that know each other.
func family(t *testing.T, count int, opts ...sshdtest.Option) (nodes []*remote.Node, servers []*sshdtest.Server) {
	t.Helper()
	var peers []remote.Peer
	for i := range count {
		s, peer := peerable(t, opts...)
		target := targetOf(s)
		target.Name = fmt.Sprintf("node%d", i)
		peer.Name = target.Name
		n := remote.Open(target)
		t.Cleanup(func() { _ = n.Close() })
		check(t, n.Install(testContext(t)))
		nodes, servers, peers = append(nodes, n), append(servers, s), append(peers, peer)
	}
	check(t, remote.Pair(testContext(t), nodes, nil, peers, filepath.Join(t.TempDir(), "peer")))
	return nodes, servers
}

// relayTree is a project of which every half megabyte is passed on.
func relayTree(t *testing.T, dir string) *Tree {
	t.Helper()
	tree := scanTest(t, dir)
	tree.relay = relayPolicy{from: 512 << 10}
	return tree
}

// noise is a text that hardly compresses.
func noise(seed uint64, size int) string {
	text := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	return string(text)
}

// tells collects what a sync says.
type tells struct {
	mu   sync.Mutex
	said []string
}

func (p *tells) tell(node int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, fmt.Sprintf("%d: %s", node, text))
}

func (p *tells) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(strings.Join(p.said, "\n"), text)
}

// zipped is how long a project is that is compressed the usual way.
func zipped(t *testing.T, files map[string]string) (size int64) {
	t.Helper()
	var to bytes.Buffer
	zip := gzip.NewWriter(&to)
	for _, text := range files {
		_, err := zip.Write([]byte(text))
		check(t, err)
	}
	check(t, zip.Close())
	return int64(to.Len())
}

func TestOneNodePassesTheFilesOnToTheOthers(t *testing.T) {
	nodes, servers := family(t, 4)
	dir := t.TempDir()
	files := map[string]string{"big": noise(1, 600_000), "text": strings.Repeat("all work and no play\n", 20_000)}
	writeFiles(t, dir, files)
	writeFiles(t, dir, oddProject)
	var said tells
	res, err := Sync(testContext(t), nodes, relayTree(t, dir), codeDir, said.tell)
	check(t, err)
	for _, s := range servers {
		wantCode(t, s, dir)
	}
	if most := zipped(t, files)*11/10 + 20_000; res.Wire > most || res.Changed != 4 {
		t.Errorf("%d bytes were sent for %v, want at most %d\n%s", res.Wire, res, most, strings.Join(said.said, "\n"))
	}
	if !said.has("which go on to 3 nodes from there") || !said.has(" from node") {
		t.Errorf("nobody was told that files are passed on:\n%s", strings.Join(said.said, "\n"))
	}
	// A node that has other files than the rest gets what it lacks by the same stream.
	writeFiles(t, dir, map[string]string{"big": noise(2, 700_000)})
	check(t, os.Remove(filepath.Join(servers[2].Home, codeDir, "text")))
	writeFiles(t, filepath.Join(servers[3].Home, codeDir), map[string]string{"train.py": "edited"})
	res, err = Sync(testContext(t), nodes, relayTree(t, dir), codeDir, said.tell)
	check(t, err)
	for _, s := range servers[:3] {
		wantCode(t, s, dir)
	}
	if text, _ := os.ReadFile(filepath.Join(servers[3].Home, codeDir, "train.py")); string(text) != "edited" || len(res.Edited) != 1 {
		t.Errorf("what was edited there is %q, and told: %q", text, res.Edited)
	}
	if res.Wire > 800_000 || res.Files != 2 {
		t.Errorf("%v took %d bytes; it said\n%s", res, res.Wire, strings.Join(said.said, "\n"))
	}
	res, err = Sync(testContext(t), nodes, relayTree(t, dir), codeDir, said.tell)
	check(t, err)
	if res.Changed != 0 || res.Wire != 0 {
		t.Errorf("nothing has changed: %v, %d bytes", res, res.Wire)
	}
	for _, s := range servers {
		if left, _ := filepath.Glob(filepath.Join(s.Home, ".dlwb/in/*")); len(left) > 0 {
			t.Errorf("%q is left behind", left)
		}
	}
}

func TestANodeThatTheOthersCantReachIsServedFromHere(t *testing.T) {
	nodes, servers := family(t, 3)
	// Another key than the paired one: to the other nodes it is a stranger.
	text, err := os.ReadFile(filepath.Join(servers[0].Home, ".dlwb/peer_known_hosts"))
	check(t, err)
	for _, s := range servers {
		own := strings.Fields(servers[2].HostKey)[1]
		other := strings.Fields(sshdtest.MakeKey(t, filepath.Join(t.TempDir(), "key")))[1]
		check(t, os.WriteFile(filepath.Join(s.Home, ".dlwb/peer_known_hosts"), bytes.ReplaceAll(text, []byte(own), []byte(other)), 0o600))
	}
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"big": noise(1, 600_000), "a": "1"})
	var said tells
	res, err := Sync(testContext(t), nodes, relayTree(t, dir), codeDir, said.tell)
	check(t, err)
	for _, s := range servers {
		wantCode(t, s, dir)
	}
	if !said.has("2: not reached from node0") || res.Changed != 3 || res.Wire < 1_200_000 {
		t.Errorf("%v, %d bytes; it said\n%s", res, res.Wire, strings.Join(said.said, "\n"))
	}
}

func TestWhenTheNodeDiesThatPassesFilesOnTheOthersGetThemAllTheSame(t *testing.T) {
	t.Parallel()
	nodes, servers := family(t, 3)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"big": noise(1, 600_000), "a": "1"})
	// Whichever node is fed from here first dies of it, once.
	var died atomic.Int64
	var list []syncPeer
	for i, n := range nodes {
		list = append(list, &dyingNode{Node: n, after: 200_000, die: func() {
			if died.Add(1) == 1 {
				servers[i].KillConnections()
			}
		}})
	}
	var said tells
	res, err := syncNodes(testContext(t), list, relayTree(t, dir), codeDir, said.tell)
	if err != nil {
		t.Fatalf("%v; it said\n%s", err, strings.Join(said.said, "\n"))
	}
	for _, s := range servers {
		// What was cut off cleans up by itself.
		runbox.Within(t, runbox.Patience, "nothing left in "+s.Home, func() bool {
			left, _ := filepath.Glob(filepath.Join(s.Home, codeDir, ".dlwb-in*"))
			pipes, _ := filepath.Glob(filepath.Join(s.Home, ".dlwb/in/*"))
			return len(left)+len(pipes) == 0
		})
		wantCode(t, s, dir)
	}
	if res.Changed != 3 || died.Load() < 2 || len(res.MadeWay) > 0 {
		t.Errorf("%v, %q; %d nodes were fed from here; it said\n%s", res, res.MadeWay, died.Load(), strings.Join(said.said, "\n"))
	}
	if most := int64(2_000_000); res.Wire > most {
		t.Errorf("%d bytes were sent, want at most %d: the others were to be served together again", res.Wire, most)
	}
}
