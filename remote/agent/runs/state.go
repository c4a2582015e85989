//go:build linux

package runs

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/wire"
)

// Look is one look at a run. It changes nothing and leaves nothing.
func (r Run) Look() wire.StateAnswer {
	a := wire.StateAnswer{Now: Stamp(), Exits: map[string]string{}}
	if !r.Has("") {
		a.State = "absent"
		return a
	}
	// Alive is looked at before the record: a run that ends in between is seen as
	// ended, never as lost.
	_, alive, rebooted := r.Supervisor()
	switch {
	case r.Ended():
		a.State = "ended"
	case alive:
		a.State = "running"
	case !r.Launched():
		a.State, a.Why = "absent", "it was prepared, but never launched"
	case rebooted: // nothing lives across a boot
		a.State, a.Why, a.Rebooted = "unknown", "the machine was rebooted during the run", true
	default:
		a.Members = len(r.Members())
		a.State = "unknown"
		a.Why = fmt.Sprintf("supervise is gone and has left no exit record; %d processes of the run are still there", a.Members)
	}
	var st unix.Statfs_t
	if unix.Statfs(r.Dir, &st) == nil {
		a.Free = int64(st.Bavail) * int64(st.Bsize)
	}
	a.Full = r.Line("full")
	r.lookAtFiles(&a)
	a.Status, a.StatusSize = r.status()
	return a
}

// lookAtFiles takes in the records and the logs.
func (r Run) lookAtFiles(a *wire.StateAnswer) {
	segment := r.Settings().Segment
	logs := map[string]*wire.StateLog{}
	files, _ := os.ReadDir(r.Dir)
	for _, f := range files {
		if name := f.Name(); name == "exit" || strings.HasPrefix(name, "rank-") && strings.HasSuffix(name, ".exit") {
			if line := r.Line(name); line != "" {
				a.Exits[name] = line
			}
		}
		name, number, ok := segmentOf(f.Name())
		info, err := f.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		l := logs[name]
		if l == nil {
			l = &wire.StateLog{Name: name, First: number * segment}
			logs[name] = l
		}
		l.First = min(l.First, number*segment)
		l.Size = max(l.Size, number*segment+info.Size())
	}
	for _, l := range logs {
		a.Logs = append(a.Logs, *l)
	}
}

// segmentOf tells which log a file is a segment of, and which one.
func segmentOf(file string) (name string, number int64, ok bool) {
	at := strings.LastIndex(file, ".log")
	if at < 0 {
		return "", 0, false
	}
	number, ok = Segment(file, file[:at+4])
	return file[:at+4], number, ok
}

// status gives the end of the status file and how long it is, up to a whole line.
func (r Run) status() (text []byte, size int64) {
	f, err := os.Open(r.Path("status"))
	if err != nil {
		return nil, 0
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0
	}
	size = info.Size()
	_, _ = f.Seek(max(0, size-wire.StatusMost), io.SeekStart)
	text, _ = io.ReadAll(io.LimitReader(f, wire.StatusMost))
	return text, size
}
