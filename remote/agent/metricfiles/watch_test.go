//go:build linux

package metricfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// tree is a directory in which a run writes.
type tree struct {
	t     *testing.T
	dir   string
	known map[uint64]wire.FileAt
}

func newTree(t *testing.T) *tree {
	t.Helper()
	r := &tree{t: t, dir: t.TempDir(), known: map[uint64]wire.FileAt{}}
	r.write("mark", "x")
	r.age("mark", time.Minute)
	return r
}

func (r *tree) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *tree) age(name string, age time.Duration) {
	r.t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(filepath.Join(r.dir, name), at, at); err != nil {
		r.t.Fatal(err)
	}
}

// read is what a Watch that goes once over everything tells: "name+offset:bytes".
func (r *tree) read(bases bool, dirs ...string) string {
	r.t.Helper()
	request := wire.FilesRequest{Mark: filepath.Join(r.dir, "mark"), Once: true, Bases: bases}
	for _, d := range dirs {
		request.Dirs = append(request.Dirs, filepath.Join(r.dir, d)+"/")
	}
	for _, at := range r.known {
		request.Known = append(request.Known, at)
	}
	var said strings.Builder
	var now wire.FileAt
	if err := Watch(r.t.Context(), request, func(n wire.FilesNews) error {
		switch {
		case n.Base != nil:
			fmt.Fprintf(&said, "base %d %s|", n.Base.Size, n.Base.End)
		case n.File != nil:
			now = n.File.FileAt
			fmt.Fprintf(&said, "%s+%d:", strings.TrimPrefix(n.File.Path, r.dir+"/"), now.Next)
			r.known[now.Inode] = now
		case n.Full:
			said.WriteString("full")
		case n.Pass:
			said.WriteString("pass")
		default:
			now.Next += int64(len(n.Data))
			r.known[now.Inode] = now
			if len(n.Data) > 100 {
				n.Data = fmt.Appendf(nil, "[%d]", len(n.Data))
			}
			said.Write(n.Data)
		}
		said.WriteString(" ")
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(strings.Fields(said.String()), " ")
}

func (r *tree) want(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestFilesOfMetricsAreKnownByTheirNames(t *testing.T) {
	r := newTree(t)
	for _, name := range []string{"a/metrics.csv", "a/events.out.tfevents.1", "1/2/3/4/5/6/7/log.txt", "train_log.jsonl", "x.log.json"} {
		r.write(name, "x")
	}
	for _, name := range []string{"data.csv", "readme.md", "1/2/3/4/5/6/7/8/log.txt", "wandb/metrics.csv", "a/.venv/lib/log.csv", "node_modules/x/log.txt"} {
		r.write(name, "x")
	}
	if err := errors.Join(os.Symlink("a/metrics.csv", filepath.Join(r.dir, "results.csv")), os.Symlink("a", filepath.Join(r.dir, "link")), os.Mkdir(filepath.Join(r.dir, "log.csv"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r.want("all", r.read(false, ""), "1/2/3/4/5/6/7/log.txt+0: x a/events.out.tfevents.1+0: x a/metrics.csv+0: x train_log.jsonl+0: x x.log.json+0: x pass")
	r.known = map[uint64]wire.FileAt{}
	r.want("a link to a directory, and one that is not there", r.read(false, "link", "nowhere", "a"), "a/events.out.tfevents.1+0: x a/metrics.csv+0: x pass")
}

func TestOnlyWhatIsNewIsTold(t *testing.T) {
	r := newTree(t)
	r.write("log.jsonl", "one\n")
	r.write("metrics.csv", "a,b\n1,2\n")
	r.write("trainer_state.json", "{}")
	r.read(false, "")
	r.want("nothing new", r.read(false, ""), "pass")
	r.write("log.jsonl", "one\ntwo\n")
	r.write("metrics.csv", "a,b,c\n1,2,3\n")
	r.write("trainer_state.json", "{1}")
	r.want("a longer one, a table with another header, a state", r.read(false, ""), "log.jsonl+4: two metrics.csv+0: a,b,c 1,2,3 trainer_state.json+0: {1} pass")
	r.write("log.jsonl", "3\n")
	r.want("a shorter one", r.read(false, ""), "log.jsonl+0: 3 pass")
	r.write("new", "a,b,c\n1,2,3\n4,5,6\n")
	if err := os.Rename(filepath.Join(r.dir, "new"), filepath.Join(r.dir, "metrics.csv")); err != nil {
		t.Fatal(err)
	}
	r.want("another one in its place", r.read(false, ""), "metrics.csv+0: a,b,c 1,2,3 4,5,6 pass")
}

func TestWhatWasThereBeforeTheRunIsTold(t *testing.T) {
	r := newTree(t)
	r.write("log.jsonl", strings.Repeat("-", 50)+strings.Repeat("+", 64))
	r.write("metrics.csv", "")
	r.write("events.out.tfevents.1", "x")
	for _, name := range []string{"log.jsonl", "metrics.csv", "events.out.tfevents.1"} {
		r.age(name, time.Hour)
	}
	r.want("at first", r.read(true, ""), "base 114 "+strings.Repeat("+", 64)+"| base 0 | pass")
	if err := os.Remove(filepath.Join(r.dir, "mark")); err != nil {
		t.Fatal(err)
	}
	r.write("log.txt", "new")
	r.want("nothing is a run's that has not begun", r.read(false, ""), "pass")
}

func TestLongFilesComeInPiecesAndNotWithoutEnd(t *testing.T) {
	r := newTree(t)
	r.write("log.jsonl", strings.Repeat("x", pieceMost+wire.ChunkMost+1))
	r.write("log.txt", "short")
	got := r.read(false, "")
	want := "log.jsonl+0: " + strings.Repeat("[65536] ", pieceMost/wire.ChunkMost) + "log.txt+0: short pass log.jsonl+1048576: [65536] x pass"
	r.want("a long one", got, want)
	for name, size := range map[string]int64{"out/events.tfevents": fileMost + pieceMost, "out/trainer_state.json": wire.FilePieceMost + 1} {
		r.write(name, "")
		if err := os.Truncate(filepath.Join(r.dir, name), size); err != nil {
			t.Fatal(err)
		}
	}
	r.read(false, "out")
	if len(r.known) != 3 || !strings.HasPrefix(r.read(false, "out"), "pass") {
		t.Errorf("known are %+v", r.known)
	}
}

func TestAWatchGoesOnUntilNobodyListens(t *testing.T) {
	r := newTree(t)
	r.write("log.txt", "one")
	ctx, stop := context.WithCancel(t.Context())
	var got []byte
	err := Watch(ctx, wire.FilesRequest{Dirs: []string{r.dir}, Mark: filepath.Join(r.dir, "mark")}, func(n wire.FilesNews) error {
		if got = append(got, n.Data...); n.Pass && string(got) == "one" {
			r.write("log.txt", "onetwo")
		} else if string(got) == "onetwo" {
			stop()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || string(got) != "onetwo" {
		t.Errorf("it told %q and ended with %v", got, err)
	}
	enough := errors.New("enough")
	if err := Watch(t.Context(), wire.FilesRequest{Dirs: []string{r.dir}}, func(wire.FilesNews) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("it ended with %v", err)
	}
}
