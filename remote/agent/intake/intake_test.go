//go:build linux

package intake

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dlwb/dlwb/remote/wire"
)

// script is a caller that says what it has to say, whatever the answers are.
type script struct {
	from  *bufio.Reader
	said  []any
	limit int
}

func (s *script) Send(v any) error {
	s.said = append(s.said, v)
	if s.limit--; s.limit < 0 {
		return io.ErrClosedPipe
	}
	return nil
}

func (s *script) Recv(v any) error {
	err := wire.ReadFrame(s.from, v)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

func frames(t testing.TB, list ...any) []byte {
	t.Helper()
	var all []byte
	for _, v := range list {
		frame, err := wire.Frame(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, frame...)
	}
	return all
}

func entry(path, text string) wire.SyncEntry {
	sum := sha256.Sum256([]byte(text))
	return wire.SyncEntry{Path: wire.Bytes(path), Kind: wire.SyncFile, Mode: 0o644, Size: int64(len(text)), Mtime: 5, Value: wire.Bytes(sum[:])}
}

func pack(path, text string) wire.SyncStep {
	return wire.SyncStep{Pack: &wire.SyncPack{Paths: []wire.Bytes{wire.Bytes(path)}, Sizes: []int64{int64(len(text))}, Data: []byte(text)}}
}

func batch(list ...wire.SyncEntry) wire.SyncStep {
	return wire.SyncStep{Batch: &wire.SyncBatch{Files: list}}
}

var (
	look     = wire.SyncLook{Dir: "code", ID: "id", Stamp: "now", Large: 1 << 20, Want: make([]byte, sha256.Size)}
	placeAll = wire.SyncStep{Settle: &wire.SyncSettle{Place: true}}
)

// run plays a caller to a node, in whose home there is more than the code.
func run(t testing.TB, text []byte) (home string, s *script, err error) {
	t.Helper()
	top := t.TempDir()
	home = filepath.Join(top, "home")
	for _, name := range []string{"code/mine", ".ssh/authorized_keys", ".dlwb/runs/r"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte("as it was"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, ".ssh"), filepath.Join(home, "code/out")); err != nil {
		t.Fatal(err)
	}
	s = &script{from: bufio.NewReader(bytes.NewReader(text)), limit: 1000}
	err = Serve(context.Background(), home, s)
	for _, name := range []string{".ssh/authorized_keys", ".dlwb/runs/r"} {
		if text, _ := os.ReadFile(filepath.Join(home, name)); string(text) != "as it was" {
			t.Errorf("%s is %q", name, text)
		}
	}
	if left, _ := os.ReadDir(top); len(left) != 1 {
		t.Errorf("beside the home there is %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "code/.dlwb-in*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	return home, s, err
}

func TestACallerThatMakesNoSenseIsRefused(t *testing.T) {
	bad := func(change func(e *wire.SyncEntry)) wire.SyncStep {
		e := entry("a", "1")
		change(&e)
		return batch(e)
	}
	for name, steps := range map[string][]any{
		"a path outside":      {look, bad(func(e *wire.SyncEntry) { e.Path = "../a" })},
		"an absolute path":    {look, bad(func(e *wire.SyncEntry) { e.Path = "/etc/a" })},
		"a long path":         {look, bad(func(e *wire.SyncEntry) { e.Path = wire.Bytes(strings.Repeat("a", 5000)) })},
		"a negative size":     {look, bad(func(e *wire.SyncEntry) { e.Size = -1 })},
		"no checksum":         {look, bad(func(e *wire.SyncEntry) { e.Value = "" })},
		"an unknown kind":     {look, bad(func(e *wire.SyncEntry) { e.Kind = 'x' })},
		"a mode with setuid":  {look, bad(func(e *wire.SyncEntry) { e.Mode = 0o4755 })},
		"a file twice":        {look, batch(entry("a", "1"), entry("a", "1"))},
		"files first":         {look, pack("a", "1")},
		"removes outside":     {look, wire.SyncStep{Batch: &wire.SyncBatch{Remove: []wire.Bytes{"../.ssh/authorized_keys"}}}},
		"listens elsewhere":   {look, wire.SyncStep{Listen: "../x"}},
		"passes on by option": {look, wire.SyncStep{Forward: &wire.SyncForward{Name: "a", Peers: []string{"-oProxyCommand=x"}}}},
		"nothing at all":      {look, wire.SyncStep{}},
		"a state elsewhere":   {wire.SyncLook{Dir: "code", ID: "../x", Stamp: "now", Want: look.Want}},
		"a stamp elsewhere":   {wire.SyncLook{Dir: "code", ID: "id", Stamp: "../../x", Want: look.Want}},
		"no directory":        {wire.SyncLook{ID: "id", Stamp: "now", Want: look.Want}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := run(t, frames(t, steps...)); err == nil {
				t.Error("there is no error")
			}
		})
	}
}

func TestWhatIsNotWhatItShouldBeIsNotPutInPlace(t *testing.T) {
	zip, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := wire.SyncStep{Pack: &wire.SyncPack{
		Paths: []wire.Bytes{"a"}, Sizes: []int64{64 << 20}, Size: wire.SyncDataMost, Data: zip.EncodeAll(make([]byte, 64<<20), nil),
	}}
	piece := func(at int64, text string) wire.SyncStep {
		return wire.SyncStep{Piece: &wire.SyncPiece{Path: "a", At: at, Data: []byte(text)}}
	}
	for name, steps := range map[string][]any{
		"other content":                 {pack("a", "2")},
		"longer":                        {pack("a", "11")},
		"a bomb":                        {bomb},
		"nothing":                       {},
		"a gap":                         {piece(1, "1")},
		"a negative place":              {piece(-1, "1")},
		"too much":                      {piece(0, "2222")},
		"an old file that is not there": {wire.SyncStep{Piece: &wire.SyncPiece{Path: "a", Len: 1, From: -7}}},
		"sizes that are too few":        {wire.SyncStep{Pack: &wire.SyncPack{Paths: []wire.Bytes{"a", "b"}, Data: []byte("1")}}},
	} {
		t.Run(name, func(t *testing.T) {
			all := append([]any{look, batch(entry("a", "1"))}, append(steps, placeAll)...)
			home, s, err := run(t, frames(t, all...))
			if err != nil {
				t.Fatal(err)
			}
			last, ok := s.said[len(s.said)-1].(wire.SyncAnswer)
			if !ok || last.Done == nil || len(last.Done.Lacks) != 1 {
				t.Errorf("the answer is %+v", s.said[len(s.said)-1])
			}
			if _, err := os.Stat(filepath.Join(home, "code/a")); err == nil {
				t.Error("it was put in place")
			}
		})
	}
}

func TestALinkOutOfTheCodeDirectoryIsMovedAsideAndNotFollowed(t *testing.T) {
	home, _, err := run(t, frames(t, look, batch(entry("out/authorized_keys", "evil")), pack("out/authorized_keys", "evil"), placeAll))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(home, "code/out/authorized_keys")); string(text) != "evil" {
		t.Errorf("%q, %v", text, err)
	}
	if kept, err := os.Readlink(filepath.Join(home, ".dlwb/kept/id/now/out")); err != nil {
		t.Errorf("%q, %v", kept, err)
	}
}

func TestWhatLiesThereWithTheSameContentDoesNotMakeWay(t *testing.T) {
	_, first, err := run(t, frames(t, look, batch(entry("mine", "as it was")), pack("mine", "as it was"), placeAll))
	if err != nil || len(first.said[len(first.said)-1].(wire.SyncAnswer).Done.Kept) != 1 { // its mode is another one
		t.Errorf("%v %+v", err, first.said)
	}
	e := entry("mine", "as it was")
	e.Mode = 0o600
	home, s, err := run(t, frames(t, look, batch(e), pack("mine", "as it was"), placeAll))
	if err != nil || len(s.said[len(s.said)-1].(wire.SyncAnswer).Done.Kept) != 0 {
		t.Errorf("%v %+v in %s", err, s.said, home)
	}
}

// Whatever a caller says, nothing outside is changed and nothing is left.
func FuzzCallers(f *testing.F) {
	f.Add(frames(f, look, batch(entry("a", "1"), entry("d/b", "2")), pack("a", "1"), pack("d/b", "2"), placeAll))
	f.Add(frames(f, look, batch(entry("a", "1")), wire.SyncStep{Piece: &wire.SyncPiece{Path: "a", Data: []byte("1")}}, wire.SyncStep{Cut: "a"}, placeAll))
	f.Add(frames(f, look, wire.SyncStep{Batch: &wire.SyncBatch{Remove: []wire.Bytes{"mine"}, Rmdirs: []wire.Bytes{"out"}}}, placeAll))
	f.Fuzz(func(t *testing.T, text []byte) { _, _, _ = run(t, text) })
}

// Records that lie on the disk may be of anybody.
func FuzzRecords(f *testing.F) {
	good, err := recordEncoding.Marshal(records{Version: recordsVersion, List: []record{{Entry: entry("a", "1")}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(oldMagic + "0\nf 644 1 5 \"" + strings.Repeat("0", 64) + "\" \"a\\nb\"\nd 0 0 0 \"\" \"d\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		if err := os.WriteFile(filepath.Join(dir, recordsFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRecords(root, recordsFile)
		if err != nil {
			return
		}
		for _, r := range r.List {
			if !r.Entry.Valid() {
				t.Errorf("%+v is believed", r.Entry)
			}
		}
	})
}
