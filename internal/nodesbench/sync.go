package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
)

// The tree of the sync figures: like source code, it compresses to a third.
const (
	treeFiles = 5000
	treeBytes = 50 << 20
)

// tree writes the project that is synced and says how large it is as tar.gz.
func (b *bench) tree(dir string) (gz int64, err error) {
	files, size := treeFiles, treeBytes
	if b.quick {
		files, size = files/10, size/10
	}
	seed := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		words[i] = strconv.FormatUint(seed.Uint64(), 36)[:3+seed.IntN(6)]
	}
	for i := range files {
		var text strings.Builder
		for text.Len() < size/files {
			text.WriteString(words[min(seed.IntN(len(words)), seed.IntN(len(words)))])
			text.WriteByte(" \n\t(="[seed.IntN(5)])
		}
		path := filepath.Join(dir, fmt.Sprintf("pkg%02d/part%d", i%50, i%7), fmt.Sprintf("module_%d.py", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return 0, err
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			return 0, err
		}
	}
	return compressed(dir)
}

// compressed is the size of `tar c | gzip` of a directory.
func compressed(dir string) (int64, error) {
	var size counter
	zip := gzip.NewWriter(&size)
	archive := tar.NewWriter(zip)
	err := errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close(), zip.Close())
	return int64(size), err
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)

// syncNodes are 8 nodes behind the WAN, which know each other as `dlwb up` has
// them know.
func (b *bench) syncNodes(n int) ([]*remote.Node, error) {
	nodes, err := b.nodes(wan, n)
	if err != nil {
		return nil, err
	}
	peers := make([]remote.Peer, n)
	for i := range peers {
		key, err := b.bed.HostKey(i)
		if err != nil {
			return nil, err
		}
		host, port, err := net.SplitHostPort(testbed.Addr(i))
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		peers[i] = remote.Peer{Name: testbed.Name(i), Host: host, Port: number, User: testbed.User, HostKey: key}
	}
	err = each(nodes, func(_ int, n *remote.Node) error { return n.Install(b.ctx) })
	if err == nil {
		err = remote.Pair(b.ctx, nodes, nil, peers, filepath.Join(b.dir, "peer_key"))
	}
	return nodes, err
}

// left is how many bytes went into the WAN from here.
func left() int64 {
	text, err := os.ReadFile("/sys/class/net/tbw0/statistics/tx_bytes")
	if err != nil {
		return 0
	}
	count, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return count
}

// rsync brings a directory to all nodes by one rsync a node, all at once.
func (b *bench) rsync(options, dir string, hosts []string) error {
	_, err := b.shell(nil, "sh", append([]string{"-c", `cfg=$1 opt=$2 dir=$3; shift 3; fail=$(mktemp)
for h; do rsync $opt -e "ssh -F $cfg" "$dir/" "$h:rsynced/" || echo "$h" >>"$fail" & done; wait
[ ! -s "$fail" ]; r=$?; rm -f "$fail"; exit $r`, "sh", b.bed.SSHConfig(), options, dir}, hosts...)...)
	return err
}

// measureSync takes a project to 8 nodes over the WAN: for the first time,
// unchanged, and with ten files changed. rsync runs once a node, all at once,
// compressed (the better of its two ways on that line) and, told for the
// record, plain. Connections of both begin cold where the tree is new; dlwb's
// are open and rsync's go over ControlMasters after that.
func measureSync(b *bench) error {
	if err := b.use(wan); err != nil {
		return err
	}
	n := b.least(8)
	dir := filepath.Join(b.dir, "project")
	gz, err := b.tree(dir)
	if err != nil {
		return err
	}
	nodes, err := b.syncNodes(n)
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	b.told("tree.gz", float64(gz)/1e6, "MB")
	var sent []float64
	sync := func() error {
		before := left()
		t, err := transfer.Scan(b.ctx, dir, transfer.Rules{})
		if err == nil {
			_, err = transfer.Sync(b.ctx, nodes, t, "dlwb/bench/code", nil)
		}
		sent = append(sent, float64(left()-before))
		return err
	}
	hosts := wan.hosts(n)
	slow := max(1, b.rounds/2)
	clear := func() error { return b.onHosts(n, "rm -rf dlwb rsynced .dlwb/sync .dlwb/kept .dlwb/manifests") }
	gone := absent("rsync")
	packed := filepath.Join(b.dir, "project.tar.gz")
	if _, err := b.shell(nil, "tar", "-czf", packed, "-C", dir, "."); err != nil {
		return err
	}
	here := filepath.Join(b.dir, "unpacked")
	clearHere := func() error { return errors.Join(os.RemoveAll(here), os.MkdirAll(here, 0o755)) }
	b.race(fmt.Sprintf("first-wan-%d", n),
		racer{name: "remote", ready: clear, run: sync, rounds: slow},
		racer{name: "rsync-z", missing: gone, ready: clear, rounds: slow, least: 3, run: func() error { return b.rsync("-az", dir, hosts) }},
		racer{name: "rsync", missing: gone, ready: clear, rounds: 1, run: func() error { return b.rsync("-a", dir, hosts) }},
		// What the nodes, which share this machine, unpack: as often here, no network.
		racer{name: "no-network", ready: clearHere, rounds: slow, run: func() error {
			_, err := b.shell(nil, "sh", "-c", `cd "$1" || exit; for i in $(seq "$3"); do mkdir "$i"; gzip -dc "$2" | tar -xf - -C "$i" & done; wait`,
				"sh", here, packed, strconv.Itoa(n))
			return err
		}})
	if err := os.RemoveAll(here); err != nil {
		return err
	}
	if len(sent) > 0 {
		b.atMost("first-wan.remote-bytes-left/tar.gz", median(sent)/float64(gz), "x", 1.1)
	}
	if err := errors.Join(sync(), b.rsync("-az", dir, hosts)); err != nil {
		return err
	}
	b.race(fmt.Sprintf("unchanged-wan-%d", n),
		racer{name: "remote", run: sync},
		racer{name: "rsync-z", missing: gone, least: 2, run: func() error { return b.rsync("-az", dir, hosts) }})
	b.race(fmt.Sprintf("ten-changed-wan-%d", n),
		racer{name: "remote", ready: func() error { return edit(dir) }, run: sync},
		racer{name: "rsync-z", missing: gone, least: 2, ready: func() error { return edit(dir) }, run: func() error { return b.rsync("-az", dir, hosts) }})
	return nil
}

// edits makes every edit another one.
var edits int

// edit changes ten files.
func edit(dir string) error {
	edits++
	files, err := filepath.Glob(filepath.Join(dir, "pkg*", "part1", "module_*.py"))
	if err != nil || len(files) < 10 {
		return fmt.Errorf("there are no files to change: %w", err)
	}
	for _, path := range files[:10] {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("# edit %d at %v\n", edits, time.Now())
		if err := os.WriteFile(path, append([]byte(line), bytes.TrimPrefix(text, []byte("#"))...), 0o644); err != nil {
			return err
		}
	}
	return nil
}
