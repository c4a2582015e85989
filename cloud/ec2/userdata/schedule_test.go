//go:build unix

package userdata

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
)

// late is by how much the lease may miss a deadline, in seconds.
const late = 120

// schedule is the life of one machine, as a person with a perfect clock sees
// it. Seconds throughout.
type schedule struct {
	bootstrap, idle, lifetime, budget, doubt int
	ticks                                    []moment
	script                                   strings.Builder // the same for the script
}

// moment is one tick of the lease, and what is true then.
type moment struct {
	ran   int // since the machine was first started, over all its boots
	since int // since the tick before, or the boot that was after it
	boot  int
	// live, hands and gpu are what the lease is told; again is a run that
	// begins while it makes up its mind.
	live, hands, gpu byte
	seen, again      bool
	lifetime, budget int // with what was added so far
}

// writer makes a schedule. It knows nothing of how the lease counts.
type writer struct {
	*rand.Rand
	s                *schedule
	ran, up, boot    int
	mode             string
	left             int // of the mode
	seen, booted     bool
	lifetime, budget int
	last             moment
}

// modes are what may go on for a while on a machine.
var modes = []string{"quiet", "quiet", "quiet", "run", "hands", "gpu", "deaf", "blind"}

func newSchedule(r *rand.Rand) *schedule {
	some := func(least, most int) int {
		if r.IntN(8) == 0 {
			return 0
		}
		return least + r.IntN(most-least)
	}
	s := &schedule{bootstrap: some(60, 500), idle: some(60, 400), lifetime: some(200, 1600), budget: some(200, 2000), doubt: 30 + r.IntN(500)}
	w := &writer{Rand: r, s: s, lifetime: s.lifetime, budget: s.budget, mode: "quiet", left: r.IntN(400)}
	w.up = 10 + r.IntN(20) // the kernel and the first part of cloud-init
	w.ran = w.up
	fmt.Fprintf(&s.script, "n %d %d %d %d %d %d\n", s.bootstrap, s.idle, s.lifetime, s.budget, s.doubt, w.up)
	horizon := max(s.lifetime, s.budget, 800) + r.IntN(600)
	for reboots := 0; w.ran < horizon && len(s.ticks) < 500; {
		switch {
		case r.IntN(150) == 0 && reboots < 4:
			reboots++
			w.reboot()
		case r.IntN(150) == 0:
			s.script.WriteString("r\n")
		case r.IntN(150) == 0:
			w.extend()
		}
		w.tick()
	}
	return s
}

// reboot is a crash, a reboot, or a stop and a start much later: what ran
// since the last tick is lost to the lease, and so is nothing else.
func (w *writer) reboot() {
	w.ran += w.IntN(10)
	w.boot++
	w.up = 10 + w.IntN(40)
	w.ran += w.up
	w.last, w.booted = moment{}, true
	if w.mode == "run" || w.mode == "hands" {
		w.left = 0
	}
	fmt.Fprintf(&w.s.script, "b %d\n", w.up)
}

func (w *writer) extend() {
	by, paid := w.IntN(600), 0
	if w.IntN(2) == 0 {
		paid = w.IntN(600)
	}
	w.lifetime, w.budget = w.lifetime+by, w.budget+paid
	fmt.Fprintf(&w.s.script, "x %d %d\n", by, paid)
}

// pause is the time to the next tick: ten seconds, more on a machine that is
// busy, and now and then a freeze of minutes or hours.
func (w *writer) pause() int {
	switch n := w.IntN(200); {
	case n == 0:
		return 60 + w.IntN(4000)
	case n < 10:
		return 18 + w.IntN(60)
	case n < 60:
		return 9 + w.IntN(9)
	}
	return 10
}

func (w *writer) tick() {
	since := w.pause()
	w.ran, w.up, w.left = w.ran+since, w.up+since, w.left-since
	if w.left <= 0 {
		w.mode = modes[w.IntN(len(modes))]
		w.left = w.IntN(800)
	}
	if w.last.again {
		w.mode, w.left = "run", max(w.left, 60)
	}
	if w.booted {
		since, w.booted = w.up, false
	}
	m := moment{ran: w.ran, since: since, boot: w.boot, live: '0', hands: '0', gpu: '0', lifetime: w.lifetime, budget: w.budget}
	switch w.mode {
	case "run":
		m.live, w.seen = '1', true
	case "hands":
		w.seen = true
		if w.IntN(3) == 0 {
			m.hands = '1'
		}
	case "gpu":
		m.gpu = "01"[w.IntN(2)]
	case "deaf":
		m.gpu = '?' // nvidia-smi hangs
	case "blind": // the homes can't be read: what was there is still there
		m.hands = '?'
		if w.last.live == '1' {
			m.live = '1'
		}
	}
	m.seen, m.again = w.seen, w.mode != "run" && w.IntN(60) == 0
	w.last = m
	w.s.ticks = append(w.s.ticks, m)
	fmt.Fprintf(&w.s.script, "t %d %c %c %c %d %d\n", w.up, m.live, m.hands, m.gpu, number(m.seen), number(m.again))
	w.seen = w.seen || m.again
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

// quiet is what the lease could know of a machine on which nothing goes on:
// for how long nothing was seen to go on, and for how long that was not sure.
type quiet struct{ sure, unsure int }

func (q quiet) counts(doubt int) int { return q.sure + max(0, q.unsure-doubt) }

// judge says what was wrong with the end of a machine; empty: nothing. end is
// the tick at which the lease ended it, -1 for never.
func (s *schedule) judge(end int, bound string) string {
	var q quiet
	known := false
	for i, m := range s.ticks {
		if i > 0 && m.boot != s.ticks[i-1].boot && known {
			q = quiet{}
		}
		if m.seen && !known {
			known, q = true, quiet{}
		}
		step := min(m.since, 60)
		switch work := string([]byte{m.live, m.hands, m.gpu}); {
		case strings.Contains(work, "1"):
			q = quiet{}
		case strings.Contains(work, "?"):
			q.unsure += step
		default:
			q.sure += step
		}
		name, limit := "bootstrap", s.bootstrap
		if known {
			name, limit = "idle", s.idle
		}
		due := map[string]int{}
		if s.lifetime > 0 {
			due["lifetime"] = m.ran - m.lifetime
		}
		if s.budget > 0 {
			due["budget"] = m.ran - m.budget
		}
		if limit > 0 {
			due[name] = q.counts(s.doubt) - limit
		}
		if i == end {
			over, is := due[bound]
			switch {
			case !is:
				return fmt.Sprintf("tick %d: ended by %s, which is no bound there", i, bound)
			case over < 0:
				return fmt.Sprintf("tick %d: ended by %s %d s before its deadline", i, bound, -over)
			case (bound == "idle" || bound == "bootstrap") && (m.live == '1' || m.again):
				return fmt.Sprintf("tick %d: ended by %s with a live run", i, bound)
			}
			return ""
		}
		for name, over := range due {
			// Work that began in the last moment has saved it.
			if over > late && (!m.again || name == "lifetime" || name == "budget") {
				return fmt.Sprintf("tick %d: not ended %d s after the deadline of %s", i, over, name)
			}
		}
		if m.again && limit > 0 && due[name] >= 0 {
			known, q = true, quiet{}
		}
	}
	return ""
}

// driver runs the very same script with a clock, facts and an end of its own.
// Whoever asks for the time of day breaks it: however that jumps, it changes
// nothing.
const driver = `lease=$1 kept=$2 schedules=$3
set --
. "$lease"
tick_number=0 ended=1
clock() { up=$at; }
date() { echo "the lease asked for the time of day"; exit 1; }
save() { :; }
warn() { :; }
reason() { :; }
extensions() { more=$added paid=$earned; }
facts() {
    live=$f_live hands=$f_hands gpu=$f_gpu seen=$f_seen
    if [ "$looks$f_again" = 11 ]; then live=1 seen=1; fi
    looks=1
}
finish() {
    [ -n "$ended" ] || echo "$tick_number $bound"
    ended=1
}
n() {
    [ -n "$ended" ] || echo "-1 none"
    bootstrap=$1 idle_limit=$2 lifetime=$3 budget=$4 doubt_limit=$5 at=$6
    added=0 earned=0 boots=0 boot=boot-0 tick_number=-1 ended='' warned=''
    clock
    dir=$kept/fresh
    load
    dir=$kept
}
t() {
    tick_number=$((tick_number + 1))
    [ -z "$ended" ] || return
    at=$1 f_live=$2 f_hands=$3 f_gpu=$4 f_seen=$5 f_again=$6 looks=0
    tick
}
b() {
    boots=$((boots + 1))
    at=$1
    r "boot-$boots"
}
r() {
    keep used "$spent $last $idle $doubt $known $boot"
    boot=${1-$boot}
    clock
    load
}
x() { added=$((added + $1)) earned=$((earned + $2)); }
. "$schedules"
[ -n "$ended" ] || echo "-1 none"
`

// run gives the schedules to a shell and returns where it ended each.
func runSchedules(t *testing.T, shell string, script string, all []*schedule) []string {
	t.Helper()
	dir := t.TempDir()
	var text bytes.Buffer
	for _, s := range all {
		text.WriteString(s.script.String())
	}
	must(t, os.WriteFile(filepath.Join(dir, "driver"), []byte(driver), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "lease"), []byte(script), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "schedules"), text.Bytes(), 0o600))
	words := append(strings.Fields(shell), "driver", "./lease", dir, "./schedules")
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("%s: %v: %.2000s %.500s", shell, err, errs.String(), out)
	}
	var ends []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		ends = append(ends, lines.Text())
	}
	if len(ends) != len(all) {
		t.Fatalf("%s ended %d machines of %d: %.200s", shell, len(ends), len(all), out)
	}
	return ends
}

// The script gets each schedule as a list of facts; whether it was right is
// judged by what was true.
func TestTheLeaseEndsEveryMachineInTimeAndNoRunBeforeIt(t *testing.T) {
	const batch = 100
	most := sample.Part(t, 1400, sample.Of(t, 3500, 10500, "schedules"), "schedules")
	shares := map[string]int{"dash": most - 2*(most/7), "busybox sh": most / 7, "bash": most / 7}
	bounds := map[string]int{}
	ticks, count := 0, 0
	var mu sync.Mutex
	t.Run("schedules", func(t *testing.T) {
		for shell, share := range shares {
			for from := 0; from < share; from += batch {
				t.Run(fmt.Sprintf("%s from %d", shell, from), func(t *testing.T) {
					t.Parallel()
					r := rand.New(rand.NewPCG(uint64(len(shell)), uint64(from)))
					all := make([]*schedule, batch)
					for i := range all {
						all[i] = newSchedule(r)
					}
					ends := runSchedules(t, shell, script("lease.sh"), all)
					mu.Lock()
					defer mu.Unlock()
					for i, s := range all {
						var at int
						var bound string
						_, err := fmt.Sscan(ends[i], &at, &bound)
						must(t, err)
						if wrong := s.judge(at, bound); wrong != "" {
							t.Fatalf("schedule %d: %s\n%s", i, wrong, numbered(s.script.String()))
						}
						bounds[bound]++
						count++
						ticks += len(s.ticks)
					}
				})
			}
		}
	})
	t.Logf("%d schedules with %d ticks; ended by %v", count, ticks, bounds)
	for _, bound := range []string{"bootstrap", "idle", "lifetime", "budget", "none"} {
		if bounds[bound] < most/100 {
			t.Errorf("only %d machines were ended by %s: the schedules prove too little", bounds[bound], bound)
		}
	}
	if count != most && !t.Failed() {
		t.Errorf("%d schedules, want %d", count, most)
	}
}

// numbered puts the number of the tick before each.
func numbered(text string) string {
	var out strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if line[0] == 't' {
			fmt.Fprintf(&out, "%4d ", n)
			n++
		} else {
			out.WriteString("     ")
		}
		out.WriteString(line)
	}
	return out.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
