package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
)

// cipher is the one that dlwb and sshd agree on; the peers are told to use it.
const cipher = "aes128-gcm@openssh.com"

// noise writes a file that can't be compressed.
func noise(path string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), size)
	return err
}

// measureFile takes one large file to one node on the LAN, and to 8 over the
// WAN. There it is 64 MB: of 1 GB, parallel scp would need eleven minutes a
// round, and the ratio is the line's.
func measureFile(b *bench) error {
	size, far := int64(1<<30), int64(64<<20)
	if b.quick {
		size, far = 64<<20, 4<<20
	}
	return firstError(func() error { return b.fileLAN(size) }, func() error { return b.fileWAN(far) })
}

func firstError(do ...func() error) error {
	for _, f := range do {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) fileLAN(size int64) error {
	name := fmt.Sprintf("lan-1-of-%dMB", size>>20)
	if !b.wants(name) {
		return nil
	}
	dir := filepath.Join(b.dir, "large")
	path := filepath.Join(dir, "weights.bin")
	if err := noise(path, size); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	clear := func() error { return b.onHosts(1, "rm -rf dlwb large .dlwb/sync .dlwb/kept .dlwb/manifests") }
	config, host := b.bed.SSHConfig(), lan.host(0)
	took := b.race(name,
		racer{name: "remote", ready: clear, run: func() error {
			return b.fresh(lan, 1, func(nodes []*remote.Node) error { return b.send(nodes, dir) })
		}},
		racer{name: "ssh-cat", ready: clear, least: 0.9, run: func() error {
			_, err := b.shell(nil, "sh", "-c", `mkdir -p "$4" && ssh -F "$1" -c `+cipher+` "$2" 'cat >large' <"$3"`, "sh", config, host, path, dir)
			return err
		}},
		// What dlwb does besides, done by OpenSSL: the digest of what is to be sent, and of what has come.
		racer{name: "ssh-cat-checked", ready: clear, run: func() error {
			_, err := b.shell(nil, "sh", "-c", `want=$(openssl dgst -sha256 -r <"$3") && `+
				`have=$(ssh -F "$1" -c `+cipher+` "$2" 'tee large | openssl dgst -sha256 -r' <"$3") && [ "$have" = "$want" ]`, "sh", config, host, path)
			return err
		}},
		racer{name: "scp", ready: clear, least: 0.9, run: func() error {
			_, err := b.shell(nil, "scp", "-q", "-F", config, "-c", cipher, path, host+":large")
			return err
		}})
	for by, t := range took {
		b.told(name+".rate."+by, float64(size)/1e6/t.Seconds(), "MB/s")
	}
	return b.onHosts(1, "rm -rf dlwb large .dlwb/sync")
}

// send syncs a directory to nodes.
func (b *bench) send(nodes []*remote.Node, dir string) error {
	t, err := transfer.Scan(b.ctx, dir, transfer.Rules{})
	if err == nil {
		_, err = transfer.Sync(b.ctx, nodes, t, "dlwb/bench/code", nil)
	}
	return err
}

func (b *bench) fileWAN(size int64) error {
	n := b.least(8)
	name := fmt.Sprintf("wan-%d-of-%dMB", n, size>>20)
	if !b.wants(name) {
		return nil
	}
	if err := b.use(wan); err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "far")
	path := filepath.Join(dir, "weights.bin")
	if err := noise(path, size); err != nil {
		return err
	}
	nodes, err := b.syncNodes(n)
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	clear := func() error { return b.onHosts(n, "rm -rf dlwb large .dlwb/sync .dlwb/kept .dlwb/manifests") }
	script := `cfg=$1 file=$2; shift 2; fail=$(mktemp)
for h; do scp -q -F "$cfg" -c ` + cipher + ` "$file" "$h:large" || echo "$h" >>"$fail" & done; wait
[ ! -s "$fail" ]; r=$?; rm -f "$fail"; exit $r`
	slow := max(1, b.rounds/3)
	b.race(name,
		racer{name: "remote", ready: clear, rounds: slow, run: func() error { return b.send(nodes, dir) }},
		racer{name: "scp", ready: clear, rounds: slow, least: 3, run: func() error {
			_, err := b.shell(nil, "sh", append([]string{"-c", script, "sh", b.bed.SSHConfig(), path}, wan.hosts(n)...)...)
			return err
		}})
	return clear()
}
