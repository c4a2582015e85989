//go:build linux

package follow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote/agent/metricfiles"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/store"
)

// place is the home directory of a node for a test.
type place struct {
	t    testing.TB
	home string
	f    *nodeFiles
	dir  string
	own  Owner
	db   *store.Store
}

const placeCode = "dlwb/c/code/"

func newPlace(t testing.TB) *place {
	t.Helper()
	p := &place{t: t, home: t.TempDir(), dir: t.TempDir()}
	p.own, p.db = newOwner(t)
	p.write("../../../.dlwb/runs/r/dir", "x")
	p.old("../../../.dlwb/runs/r/dir", time.Minute)
	p.open()
	t.Cleanup(func() { p.f.end(false) })
	return p
}

// open is what a dlwb does that begins to watch.
func (p *place) open() {
	if p.f != nil {
		p.f.end(false)
	}
	run := Run{ID: "r", Dir: p.dir, Code: strings.TrimSuffix(placeCode, "/"), Results: []string{"out"}}
	p.f = newNodeFiles(run, p.own, 0, func(ctx context.Context, ask job.FilesQuery, take func(job.FilesNews) error) error {
		r := wire.FilesRequest{Mark: filepath.Join(p.home, ".dlwb/runs/r/dir"), Bases: ask.Bases, Once: ask.Once}
		for _, dir := range ask.Dirs {
			r.Dirs = append(r.Dirs, p.home+"/"+dir)
		}
		for _, at := range ask.Known {
			r.Known = append(r.Known, wire.FileAt(at))
		}
		return metricfiles.Watch(ctx, r, func(m wire.FilesNews) error {
			news := job.FilesNews{Base: (*job.FileBase)(m.Base), Data: m.Data, Pass: m.Pass, Full: m.Full}
			if m.File != nil {
				news.File = &job.FilePiece{FileAt: job.FileAt(m.File.FileAt), Length: m.File.Length, Size: m.File.Size,
					Path: strings.TrimPrefix(m.File.Path, p.home+"/")}
			}
			return take(news)
		})
	})
}

func (p *place) path(name string) string { return filepath.Join(p.home, placeCode, name) }

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.path(name)), 0o755), os.WriteFile(p.path(name), []byte(text), 0o644)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) append(name, text string) {
	p.t.Helper()
	f, err := os.OpenFile(p.path(name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) old(name string, age time.Duration) {
	p.t.Helper()
	if err := os.Chtimes(p.path(name), time.Now().Add(-age), time.Now().Add(-age)); err != nil {
		p.t.Fatal(err)
	}
}

// said is what is stored.
func (p *place) said() string {
	p.t.Helper()
	if err := p.f.flush(0); err != nil {
		p.t.Fatal(err)
	}
	all, err := p.db.Series("r")
	if err != nil {
		p.t.Fatal(err)
	}
	var said []string
	for _, v := range all {
		points, err := p.db.SeriesPoints(v, 0, 0)
		if err != nil {
			p.t.Fatal(err)
		}
		s := v.Source + " " + v.Name
		for _, q := range points {
			s += fmt.Sprintf(" %d:%v", *q.Step, q.Value)
		}
		said = append(said, s)
	}
	slices.Sort(said) // the parsers run beside each other
	return strings.Join(said, "; ")
}

// want reads what is there, and waits until the parsers are done with it.
func (p *place) want(what, want string) {
	p.t.Helper()
	series := strings.Split(want, "; ")
	slices.Sort(series)
	want = strings.Join(series, "; ")
	if err := p.f.read(context.Background(), true); err != nil {
		p.t.Fatal(err)
	}
	for limit := time.Now().Add(60 * time.Second); p.said() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			p.t.Errorf("%s:\n got %s\nwant %s", what, p.said(), want)
			return
		}
	}
}

// scalar is a record of an event file.
func scalar(tag string, step int64, value float32) string {
	v := append([]byte{0x0a, byte(len(tag))}, tag...)
	v = binary.LittleEndian.AppendUint32(append(v, 0x15), math.Float32bits(value))
	summary := append([]byte{0x0a, byte(len(v))}, v...)
	e := binary.LittleEndian.AppendUint64([]byte{0x09}, math.Float64bits(float64(time.Now().Unix())))
	e = binary.AppendUvarint(append(e, 0x10), uint64(step))
	e = append(append(e, 0x2a, byte(len(summary))), summary...)
	sum := func(b []byte) uint32 {
		c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return (c>>15 | c<<17) + 0xa282ead8
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(e)))
	out := binary.LittleEndian.AppendUint32(head, sum(head))
	return string(binary.LittleEndian.AppendUint32(append(out, e...), sum(e)))
}

func TestFilesAreFollowedAsTheyGrow(t *testing.T) {
	p := newPlace(t)
	p.want("nothing", "")
	a, b := scalar("loss", 1, 0.5), scalar("loss", 2, 0.25)
	p.write("out/tb/events.out.tfevents.1", a+b[:20])
	p.want("a record that is not whole", "out/tb/events.out.tfevents.1 loss 1:0.5")
	p.append("out/tb/events.out.tfevents.1", b[20:])
	p.write("out/a dir/metrics.csv", "step,acc\n10,0.7\n20,0.")
	p.want("and now is", "out/tb/events.out.tfevents.1 loss 1:0.5 2:0.25; out/a dir/metrics.csv acc 10:0.7")
	p.append("out/a dir/metrics.csv", "75\n")
	p.write("train_log.jsonl", `{"step": 5, "lr": 0.1}`+"\n")
	p.want("a row that is whole", "out/tb/events.out.tfevents.1 loss 1:0.5 2:0.25; out/a dir/metrics.csv acc 10:0.7 20:0.75; train_log.jsonl lr 5:0.1")
}

func TestFilesThatAreReplacedAreReadAgain(t *testing.T) {
	p := newPlace(t)
	p.write("metrics.csv", "step,loss\n1,4\n2,3\n")
	p.write("out/checkpoint-2/trainer_state.json", `{"global_step":2,"log_history":[{"step":1,"loss":4.5},{"step":2,"loss":3.5}]}`)
	p.want("at first", "metrics.csv loss 1:4 2:3; out/trainer_state.json loss 1:4.5 2:3.5")
	// Lightning writes the whole table anew when a column comes.
	p.write("metrics.csv", "step,loss,val_loss\n1,4,\n2,3,\n2,,2.5\n3,2,\n")
	p.write("out/checkpoint-4/trainer_state.json", `{"global_step":4,"log_history":[{"step":1,"loss":4.5},{"step":2,"loss":3.5},{"step":4,"loss":1.5}]}`)
	p.want("a new column", "metrics.csv loss 1:4 2:3 3:2; out/trainer_state.json loss 1:4.5 2:3.5 4:1.5; metrics.csv val/loss 2:2.5")
	p.write("new", "step,loss,val_loss\n1,4,\n2,9,\n")
	if err := os.Rename(p.path("new"), p.path("metrics.csv")); err != nil {
		t.Fatal(err)
	}
	p.want("renamed into place, with other values", "metrics.csv loss 1:4 2:9; out/trainer_state.json loss 1:4.5 2:3.5 4:1.5; metrics.csv val/loss 2:2.5")
	p.open() // another dlwb goes on
	p.append("metrics.csv", "3,1,\n")
	p.want("by another dlwb", "metrics.csv loss 1:4 2:9 3:1; out/trainer_state.json loss 1:4.5 2:3.5 4:1.5; metrics.csv val/loss 2:2.5")
}

func TestFilesOfEarlierRunsAreNotThisRuns(t *testing.T) {
	p := newPlace(t)
	for name, text := range map[string]string{"out/events.out.tfevents.1": scalar("loss", 1, 0.5),
		"metrics.csv": "step,loss\n1,4\n2,3\n", "log.jsonl": "{\"step\": 1, \"loss\": 4}\n", "history.csv": "step,loss\n1,9\n2,9\n"} {
		p.write(name, text)
		p.old(name, time.Hour)
	}
	p.want("before it writes", "")
	p.append("metrics.csv", "3,2\n")
	p.append("log.jsonl", "{\"step\": 2, \"loss\": 3}\n")
	p.write("history.csv", "step,loss\n1,8\n2,7\n3,6\n")
	p.want("appended, and written anew", "history.csv loss 1:8 2:7 3:6; log.jsonl loss 2:3; metrics.csv loss 3:2")
	p.open()
	p.append("log.jsonl", "{\"step\": 3, \"loss\": 2}\n")
	p.want("by another dlwb", "history.csv loss 1:8 2:7 3:6; log.jsonl loss 2:3 3:2; metrics.csv loss 3:2")
}

func TestAStreamOfFilesIsLiveAndEndsWithItsReader(t *testing.T) {
	p := newPlace(t)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); p.f.follow(ctx) }()
	p.write("metrics.csv", "step,loss\n1,4\n")
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, err := p.db.Series("r")
		if err == nil && len(all) == 1 && all[0].Count == 1 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the row did not come: %v, %v", all, err)
		}
	}
	stop()
	<-over
	p.append("metrics.csv", "2,3")
	if err := p.f.read(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	p.f.end(true) // the last row has no end
	if all, err := p.db.Series("r"); err != nil || len(all) != 1 || all[0].Last.Value != 3 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Whatever a node tells, what is kept of it is bounded and stays sound.
func FuzzAnyNewsOfFilesAreTaken(f *testing.F) {
	f.Add(uint64(1), int64(0), int64(9), int64(9), "dlwb/c/code/metrics.csv", []byte("step,loss\n1,2\n"), uint32(1))
	f.Add(uint64(1), int64(-1), int64(1)<<62, int64(-9), "/../trainer_state.json", []byte("{"), uint32(0))
	p := newPlace(f)
	f.Fuzz(func(t *testing.T, inode uint64, next, length, size int64, path string, data []byte, sum uint32) {
		p.f.ask = func(_ context.Context, _ job.FilesQuery, take func(job.FilesNews) error) error {
			for _, m := range []job.FilesNews{{Data: data}, {Base: &job.FileBase{Inode: inode, Size: size, End: data}},
				{File: &job.FilePiece{FileAt: job.FileAt{Inode: inode, Next: max(next, 0), Sum: sum}, Length: length, Size: size, Path: path}},
				{Data: data}, {Pass: true}, {}} {
				if err := take(m); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		if err := p.f.read(t.Context(), true); err != nil {
			t.Error(err)
		}
		if len(p.f.files) > mostNodeFiles || len(p.f.bases) > mostBases {
			t.Errorf("%d files and %d bases are kept", len(p.f.files), len(p.f.bases))
		}
	})
}
