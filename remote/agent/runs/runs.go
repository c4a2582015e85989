//go:build linux

// Package runs is what a run leaves on a node's disk, in ~/.dlwb/runs/ID: the
// contract between versions of dlwb, described in docs/agent.md. Here it is
// read and written, and the processes of a run are found.
package runs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/agent/proc"
)

// The environment by which a run's processes are known. Role tells our own
// processes from the training's, which have none. RunDir is unique on a machine,
// an id is not: two nodes may share one.
const (
	EnvID   = "DLWB_RUN"
	EnvDir  = "DLWB_RUN_DIR"
	EnvRole = "DLWB_ROLE"
	EnvBin  = "DLWB_AGENT"
	// EnvLife counts the lives of a part of a scheduler's job: how often it was begun before.
	EnvLife = "DLWB_LIFE"
)

// LifeMark begins the names of the directories by which those lives are known.
const LifeMark = "life-"

// LifeFile is the file of a run that names the life of the cluster that launched it.
const LifeFile = "life"

// OfLife is the name of a file in ~/.dlwb that a life has for itself, where its cluster is
// not the first in the home directory; life is empty where it is.
func OfLife(name, life string) string {
	if life == "" {
		return name
	}
	return name + "." + life
}

// PeerFile is the path of a file by which the run's nodes reach each other.
func (r Run) PeerFile(name string) string {
	dir := r.Home() + "/.dlwb/"
	if life := r.Line(LifeFile); Plain(life) {
		if _, err := os.Stat(dir + OfLife(name, life)); err == nil {
			return dir + OfLife(name, life)
		}
	}
	return dir + name
}

// Run is a run's directory.
type Run struct{ ID, Dir string }

// Open gives the run with an id: a plain file name, and nothing else.
func Open(home, id string) (Run, error) {
	if !Plain(id) {
		return Run{}, fmt.Errorf("%.80q is not a run id", id)
	}
	return Run{id, filepath.Join(home, ".dlwb/runs", id)}, nil
}

// Plain reports whether a word is a plain name for a file.
func Plain(word string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	return word != "" && len(word) <= 200 && !strings.ContainsAny(word[:1], ".-") && strings.IndexFunc(word, odd) < 0
}

// At opens the run of a directory.
func At(dir string) Run { return Run{filepath.Base(dir), dir} }

// Home is the home directory in which the run lies.
func (r Run) Home() string { return strings.TrimSuffix(r.Dir, "/.dlwb/runs/"+r.ID) }

// Path is a file of the run.
func (r Run) Path(name string) string { return filepath.Join(r.Dir, name) }

// Has reports whether a file of the run is there.
func (r Run) Has(name string) bool {
	_, err := os.Lstat(r.Path(name))
	return err == nil
}

// Sees reports whether a file of the run is there that another machine may have written.
// NFS may go on for up to a minute to say that a name is not there; that the directory is
// opened has it ask.
func (r Run) Sees(name string) bool {
	if dir, err := os.Open(r.Dir); err == nil {
		_ = dir.Close()
	}
	return r.Has(name)
}

// Line is the first line of a file of the run; empty when there is none.
func (r Run) Line(name string) string {
	f, err := os.OpenFile(r.Path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	line, _ := bufio.NewReaderSize(f, lineMost).ReadSlice('\n')
	return strings.TrimSpace(string(line))
}

const lineMost = 4 << 10

// Write writes a file of the run whole or not at all, for the user only. Two that
// write it at once, as when a run is launched twice, do not take each other's half.
func (r Run) Write(name string, text []byte) error {
	temp := r.Path(fmt.Sprintf("%s.%d.tmp", name, os.Getpid()))
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return os.Rename(temp, r.Path(name))
}

// Say appends a line to the run's status file.
func (r Run) Say(format string, args ...any) error { return r.SayOf(Stamp(), format, args...) }

// SayOf says what was at a moment before: who says it may have had no processor since.
func (r Run) SayOf(at, format string, args ...any) error {
	f, err := os.OpenFile(r.Path("status"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", at, oneLine(fmt.Sprintf(format, args...)))
	return errors.Join(err, f.Close())
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// recordRoom is how long an exit record can get.
const recordRoom = 64

// Reserve takes the room for a record now, so that it can still be written when
// the disk is full.
func (r Run) Reserve(name string) error {
	_ = os.Remove(r.Path(name))
	return os.WriteFile(r.Path(name+".tmp"), fmt.Appendf(nil, "%*s\n", recordRoom-1, ""), 0o600)
}

// Record writes a record into the room that was reserved for it.
func (r Run) Record(name, text string) error {
	f, err := os.OpenFile(r.Path(name+".tmp"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(r.Path(name+".tmp"), r.Path(name))
}

// Exit is how a process or a run has ended: the code is 128+n after signal n,
// whose name is "-" where there was none.
type Exit struct {
	Code   int
	Signal string
}

// Killed is what is recorded where nobody has seen the end.
var Killed = Exit{137, "KILL"}

// Outcome is an exit as a person says it.
func (e Exit) Outcome() string {
	if e.Signal == "-" {
		return fmt.Sprintf("exited with code %d", e.Code)
	}
	return "was killed by SIG" + e.Signal
}

func (e Exit) String() string { return fmt.Sprintf("%d %s", e.Code, e.Signal) }

// End writes an exit record. start is a Stamp.
func (r Run) End(name string, e Exit, start string) error { return r.EndOf(name, e, start, Stamp()) }

// EndOf writes the record of an end that was seen at a moment before.
func (r Run) EndOf(name string, e Exit, start, end string) error {
	return r.Record(name, fmt.Sprintf("%s %s %s", e, start, end))
}

// RankExit is the name of a rank's exit record.
func RankExit(rank string) string { return "rank-" + rank + ".exit" }

// Stamp is this moment: the time of day in seconds and, behind a "+", the time
// since the boot in hundredths. The time of day may be wrong, and set at any
// moment.
func Stamp() string {
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	text, _ := os.ReadFile("/proc/uptime")
	up, _, _ := strings.Cut(string(text), " ")
	if whole, part, ok := strings.Cut(up, "."); ok {
		stamp += "+" + whole + part
	}
	return stamp
}

// IsStamp reports whether a word is a Stamp.
func IsStamp(word string) bool {
	at, up, _ := strings.Cut(word, "+")
	number := func(text string) bool {
		_, err := strconv.ParseUint(text, 10, 63)
		return err == nil
	}
	return number(at) && (up == "" || number(up))
}

// Settings is what those go by who look after a run.
type Settings struct {
	Node            string
	Grace, Patience time.Duration
	Segment, Keep   int64
}

const (
	defaultSegment = 64 << 20
	defaultKeep    = 64
	defaultGrace   = 10 * time.Second
)

// Settings reads the file settings: lines of shell assignments.
func (r Run) Settings() Settings {
	s := Settings{Grace: defaultGrace, Segment: defaultSegment, Keep: defaultKeep}
	text, _ := os.ReadFile(r.Path("settings"))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, "'")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case key == "node":
			s.Node = value
		case err != nil || n < 0 || n > 1e15:
		case key == "grace_ms":
			s.Grace = time.Duration(n) * time.Millisecond
		case key == "fail_grace":
			s.Patience = time.Duration(n * float64(time.Second))
		case key == "segment" && n >= 1:
			s.Segment = int64(n)
		case key == "keep" && n >= 2:
			s.Keep = int64(n)
		}
	}
	return s
}

// WriteSettings writes the file. Shells of older versions read it with ".".
func (r Run) WriteSettings(s Settings) error {
	return r.Write("settings", fmt.Appendf(nil, "node='%s'\ngrace_ms=%d\nfail_grace=%.1f\nsegment=%d\nkeep=%d\n",
		strings.ReplaceAll(s.Node, "'", ""), s.Grace.Milliseconds(), s.Patience.Seconds(), s.Segment, s.Keep))
}

// Segment gives the number of a log's segment by its file name.
func Segment(file, name string) (number int64, ok bool) {
	rest, ok := strings.CutPrefix(file, name)
	if !ok || rest == "" {
		return 0, ok
	}
	digits, ok := strings.CutPrefix(rest, ".")
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, ok && err == nil && number > 0
}

// Boot tells this boot of the machine from others; process numbers start again
// there. A container that was restarted has the machine's boot id, and another
// process number 1.
func Boot() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "-"
	}
	boot := strings.TrimSpace(string(text)) + "/"
	if first, ok := proc.Read(1); ok {
		boot += strconv.FormatUint(first.Start, 10)
	}
	return boot
}

// SupervisedBy records that this process supervises the run.
func (r Run) SupervisedBy(p proc.Process) error {
	return r.Write("pid", fmt.Appendf(nil, "%d %d %s\n", p.PID, p.Start, Boot()))
}

// Supervisor is the process that supervises the run; ok is false when it is not
// there any more. rebooted says that it ran before the machine's last boot.
func (r Run) Supervisor() (p proc.Process, ok, rebooted bool) {
	f := strings.Fields(r.Line("pid"))
	if len(f) < 2 {
		return p, false, false
	}
	// The first versions wrote only the first half of a boot's name.
	boot := Boot()
	if half, _, _ := strings.Cut(boot, "/"); len(f) == 3 && f[2] != boot && f[2] != half {
		return p, false, f[2] != "-"
	}
	pid, _ := strconv.Atoi(f[0])
	p, ok = proc.Read(pid)
	return p, ok && f[1] == strconv.FormatUint(p.Start, 10), false
}

// Launched reports whether the run was started here.
func (r Run) Launched() bool { return r.Has("lock") }

// Ended reports whether the end is on record.
func (r Run) Ended() bool { return r.Has("exit") }

// Programs are the processes of the ranks that have begun and of whose end nothing is on
// record, with the ranks' numbers. In a container they have other numbers there.
func (r Run) Programs() map[int]string {
	text, _ := r.status()
	programs := map[int]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 5 || f[1] != "rank" || f[3] != "started" && f[3] != "failed" && f[3] != "ended" {
			continue
		}
		maps.DeleteFunc(programs, func(_ int, number string) bool { return number == f[2] })
		if pid, err := strconv.Atoi(f[4]); err == nil && f[3] == "started" {
			programs[pid] = f[2]
		}
	}
	return programs
}

// CloseRanks writes the records of ranks whose end nobody has seen.
func (r Run) CloseRanks(start string) {
	left, _ := fs.Glob(os.DirFS(r.Dir), "rank-*.exit.tmp")
	for _, name := range left {
		name = strings.TrimSuffix(name, ".tmp")
		if r.End(name, Killed, start) == nil {
			_ = r.Say("rank %s ended %s", strings.TrimSuffix(strings.TrimPrefix(name, "rank-"), ".exit"), Killed)
		}
	}
}
