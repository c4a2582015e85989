//go:build linux

package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/wire"
)

// place is a code directory with what is known of it.
type place struct {
	look    wire.SyncLook
	home    string
	dir     string   // the code directory
	code    *os.Root // nil where there is none yet
	codeFD  int
	had     records
	pending records
	byPath  map[wire.Bytes]*record // of had
	halfway map[wire.Bytes]*record // of pending
	kept    []wire.Bytes           // what has had to make way and was not told
	learnt  atomic.Bool            // had knows more than what lies on the disk
}

// open reads what is known of a code directory, and changes nothing.
func open(home string, look wire.SyncLook) (*place, error) {
	if !plainWord(look.ID) || !plainWord(look.Stamp) || look.Dir == "" || strings.ContainsAny(look.Dir, "\x00\n") || len(look.Want) != sha256.Size {
		return nil, wire.Faultf(wire.Wrong, "%.60q with the state %.60q is no directory for code", look.Dir, look.ID)
	}
	p := &place{look: look, home: home, dir: look.Dir}
	if !filepath.IsAbs(p.dir) {
		p.dir = filepath.Join(home, p.dir)
	}
	if err := p.readAll(); err != nil {
		return nil, err
	}
	if err := p.openCode(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return p, nil
}

// plainWord reports whether a word can be a file's name and nothing else.
func plainWord(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

func (p *place) readAll() error {
	dir, err := stateDir(p.home, p.look.ID, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if p.had, err = readRecords(dir, recordsFile); err != nil {
		return err
	}
	if p.pending, err = readRecords(dir, pendingFile); err != nil {
		return err
	}
	p.byPath, p.halfway = index(p.had.List), index(p.pending.List)
	return nil
}

func index(list []record) map[wire.Bytes]*record {
	m := make(map[wire.Bytes]*record, len(list))
	for i := range list {
		m[list[i].Entry.Path] = &list[i]
	}
	return m
}

func (p *place) openCode() error {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	f, err := root.Open(".")
	if err != nil {
		_ = root.Close()
		return err
	}
	defer func() { _ = f.Close() }()
	p.codeFD, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	p.code = root
	return err
}

func (p *place) close() {
	if p.code != nil {
		_ = p.code.Close()
		_ = unix.Close(p.codeFD)
	}
}

// state is how a thing is now; false: it is gone.
func (p *place) state(name wire.Bytes) (state, bool) {
	var st unix.Stat_t
	if p.code == nil || unix.Fstatat(p.codeFD, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return state{}, false
	}
	return stateOf(&st), true
}

// odd compares a thing with its record, and updates the state in that where
// only the state has changed. Nil: it is as dlwb has put it there.
func (p *place) odd(r *record) *wire.SyncOdd {
	now, there := p.state(r.Entry.Path)
	odd := &wire.SyncOdd{Now: wire.SyncEntry{Path: r.Entry.Path}}
	switch {
	case !there || r.Entry.Kind == wire.SyncFile && r.State.torn(now) && r.State.Size != now.Size:
		return odd
	case r.Entry.Kind == wire.SyncDir && now.kind() == wire.SyncDir:
		return nil
	}
	odd.Now = wire.SyncEntry{Path: r.Entry.Path, Kind: now.kind(), Mode: now.perm(), Size: now.Size, Mtime: now.Mtime}
	was := r.State.perm()
	if r.State == (state{}) {
		was = r.Entry.Mode
	}
	switch {
	case now == r.State && r.Value == "":
		return nil
	case now == r.State:
		odd.Now.Value = r.Value
	case now.kind() == wire.SyncLink || now.kind() == wire.SyncFile && now.Size == r.Entry.Size:
		if odd.Now.Value = p.content(r.Entry.Path, now.kind()); odd.Now.Value == "" {
			return odd
		}
		if now.kind() == r.Entry.Kind && odd.Now.Value == r.Entry.Value && now.perm() == was {
			r.State, r.Value = now, ""
			p.learnt.Store(true)
			return nil
		}
		if now.perm() == was {
			r.State, r.Value = now, odd.Now.Value
			p.learnt.Store(true)
		}
	}
	return odd
}

// content reads a file's checksum, or where a link points to; empty: it can't be read.
func (p *place) content(name wire.Bytes, kind byte) wire.Bytes {
	if kind == wire.SyncLink {
		target, _ := p.code.Readlink(string(name))
		return wire.Bytes(target)
	}
	f, err := p.code.OpenFile(string(name), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return wire.Bytes(sum.Sum(nil))
}

// halfDone is what a stopped sync has put there, if that is what lies there.
func (p *place) halfDone(name wire.Bytes) *wire.SyncOdd {
	r := p.halfway[name]
	if r == nil {
		return nil
	}
	now, there := p.state(name)
	if !there || !now.moved(r.State) {
		return nil
	}
	return &wire.SyncOdd{Now: r.Entry, Ours: true}
}

// survey compares everything with its record, on several processors.
func (p *place) survey(ctx context.Context) (list []wire.SyncOdd, err error) {
	const part = 256
	found := make([]*wire.SyncOdd, len(p.had.List))
	var all sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), 1+len(found)/part) {
		all.Go(func() {
			for from := range next {
				for i := from; i < min(from+part, len(found)) && ctx.Err() == nil; i++ {
					r := &p.had.List[i]
					if found[i] = p.odd(r); found[i] != nil {
						if half := p.halfDone(r.Entry.Path); half != nil {
							found[i] = half
						}
					}
				}
			}
		})
	}
	for from := 0; from < len(found); from += part {
		next <- from
	}
	close(next)
	all.Wait()
	for _, odd := range found {
		if odd != nil {
			list = append(list, *odd)
		}
	}
	for _, r := range p.pending.List {
		if half := p.halfDone(r.Entry.Path); half != nil && p.byPath[r.Entry.Path] == nil {
			list = append(list, *half)
		}
	}
	return list, ctx.Err()
}

// views are what the caller is told.
func (p *place) views(ctx context.Context) ([]wire.SyncView, error) {
	odd, err := p.survey(ctx)
	if err != nil {
		return nil, err
	}
	halfway := p.pending.file != fileID{}
	if bytes.Equal(p.had.Digest, p.look.Want) && len(odd) == 0 && !halfway && p.code != nil {
		return []wire.SyncView{{Same: true}}, nil
	}
	first := wire.SyncView{Digest: p.had.Digest, Halfway: halfway, Parts: p.parts(), Pairing: pairing(p.home), Sends: sends()}
	views := []wire.SyncView{first}
	for _, part := range wire.SyncLists(odd, func(o wire.SyncOdd) int { return wire.SyncSize(o.Now) }) {
		views = append(views, wire.SyncView{Odd: part})
	}
	if !bytes.Equal(p.had.Digest, p.look.Heart) {
		list := make([]wire.SyncEntry, len(p.had.List))
		for i, r := range p.had.List {
			list[i] = r.Entry
		}
		for _, part := range wire.SyncLists(list, wire.SyncSize) {
			views = append(views, wire.SyncView{Entries: part})
		}
	}
	for i := range views[:len(views)-1] {
		views[i].More = true
	}
	return views, nil
}

const (
	largeDir = ".dlwb-large"
	partEnd  = ".part"
)

// parts are the large files that have come in part.
func (p *place) parts() (list []wire.SyncPart) {
	if p.code == nil {
		return nil
	}
	for _, name := range namesIn(p.code, largeDir) {
		sum, ok := strings.CutSuffix(name, partEnd)
		info, err := p.code.Lstat(path.Join(largeDir, name))
		if ok && err == nil && info.Mode().IsRegular() && rawSum(sum) != "" && len(list) < 1000 {
			list = append(list, wire.SyncPart{Sum: rawSum(sum), Size: info.Size()})
		}
	}
	return list
}

// rawSum is a SHA-256 that is written in hex; empty: it is none.
func rawSum(text string) wire.Bytes {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != sha256.Size {
		return ""
	}
	return wire.Bytes(raw)
}

// pairing names the nodes that this one takes files from.
func pairing(home string) string {
	text, err := os.ReadFile(filepath.Join(home, ".dlwb/peers"))
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(home, ".dlwb/peer_key")); err != nil {
		return ""
	}
	sum := fnv.New64a()
	_, _ = sum.Write(text)
	return strconv.FormatUint(sum.Sum64(), 16)
}

// sends reports whether this node can send to others.
func sends() bool {
	_, err := exec.LookPath(sshProgram())
	return err == nil
}

func sshProgram() string {
	if name := os.Getenv("DLWB_SSH"); name != "" {
		return name
	}
	return "ssh"
}

// wrap says what was tried.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
