package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// looks are the looks at one job, which all its replicas share: a scheduler that
// serves a thousand people is not asked by each of them.
type looks struct {
	mu   sync.Mutex
	last seen
	err  error
	at   time.Time

	doubt string // the end that the looks since a moment have shown, and that is not believed yet
	since time.Time
}

const (
	// lookSoon is how old a look may be of a job of which something is expected.
	lookSoon = time.Second
	// lookLate is the pause between looks at a job that goes on as it is.
	lookLate = 10 * time.Second
	// askAgain is for how long an answer that says that a job is gone is asked for
	// again: a job that is put back into the queue is gone for a moment, and accounting
	// hears of an end after the controller.
	askAgain = 3 * time.Second
	// sharedLate is how late what a node made in the shared home may be seen: NFS keeps
	// what it knows of a directory for a minute (acdirmax of nfs(5)).
	sharedLate = 65 * time.Second
)

// look gives a look at a job that is not older than young.
func (p *Provider) look(ctx context.Context, m cloud.Machine, home, run, id string, young time.Duration) (seen, error) {
	p.mu.Lock()
	l := p.looks[run]
	if l == nil {
		l = &looks{}
		p.looks[run] = l
	}
	p.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && (time.Since(l.at) < young || l.err == nil && l.last.over()) {
		return l.last, l.err
	}
	s, err := lookAt(ctx, m, home, run, id)
	if err != nil && ctx.Err() != nil {
		return s, err // who asked went away: that says nothing about the job
	}
	wait := askAgain
	if s.unbegun {
		wait = sharedLate
	}
	switch doubtful := s.state == "NODE_FAIL" || s.state == "PREEMPTED" || s.behind || s.unbegun; {
	case err != nil:
		s = l.last
	case !doubtful:
		l.doubt = ""
	default:
		// It may be on its way back into the queue, or who cancelled it is about to be
		// on record: it is not over while other looks may show that.
		if l.doubt != s.state {
			l.doubt, l.since = s.state, time.Now()
		}
		if time.Since(l.since) < wait {
			s.state = "COMPLETING"
		}
	}
	l.last, l.err, l.at = s, err, time.Now()
	return s, err
}

// lookAt asks Slurm for a job, and where that has forgotten it, the shared disk.
func lookAt(ctx context.Context, m cloud.Machine, home, run, id string) (seen, error) {
	a, err := askOne(ctx, m, "squeue "+queueFormat+" --jobs="+words(id))
	if err != nil {
		return seen{id: id}, err
	}
	if q := queuedOf(a); len(q) > 0 && !over[q[0].state] {
		return seen{id: id, state: q[0].state, nodes: q[0].nodes, start: q[0].start, reason: q[0].reason}, nil
	}
	if err := a.failed(); err != nil && !strings.Contains(err.Error(), "Invalid job id") {
		return seen{id: id}, fmt.Errorf("squeue: %w", err)
	}
	all, err := ask(ctx, m, question{"job", "scontrol --oneliner show job " + words(id)},
		question{"sacct", "soon sacct --noheader --parsable2 --allocations --duplicates --jobs=" + words(id) + " --format=State,ExitCode,End,Restarts 2>/dev/null || [ $? = 124 ] || soon sacct --noheader --parsable2 --allocations --duplicates --jobs=" + words(id) + " --format=State,ExitCode"},
		question{"end", `cd ` + words(jobDir(home, run)) + ` && { grep -l begun- script; ls -d begun-*; } 2>/dev/null; for f in end-*; do [ ! -f "$f" ] || { printf '%s ' "$f"; cat "$f"; }; done; [ ! -e stop ] || echo stop`})
	if err != nil {
		return seen{id: id}, err
	}
	return endOf(id, all["job"], all["sacct"], all["end"])
}

// endOf is what is known of a job that is not in the queue any more.
func endOf(id string, job, sacct, end answer) (seen, error) {
	s := seen{id: id}
	if job.code == 0 {
		s.fromControl(job)
		newest, _ := livesOf(end.out, "begun-") // and "script" where that leaves such marks, which an older one did not
		s.unbegun = s.state == "FAILED" && s.code == 1 && s.signal == 0 && newest < s.restarts && slices.Contains(strings.Fields(end.out), "script")
	} else if text := job.failed().Error(); !strings.Contains(text, "Invalid job id") {
		return s, fmt.Errorf("scontrol: %s", text)
	}
	if lines := sacct.lines(); sacct.code == 0 && len(lines) > 0 {
		f := strings.Split(lines[len(lines)-1], "|")
		state, who, _ := strings.Cut(f[0], " by ")
		if s.by = strings.TrimSpace(who); s.by != "" {
			s.by = "user " + s.by
		}
		if s.state == "" && len(f) > 1 {
			s.state = state
			s.code, s.signal = codes(f[1])
		}
		s.behind = s.state == "CANCELLED" && !over[state]
	}
	if !s.over() && job.code != 0 {
		// Accounting goes on to call a job running that a controller has lost.
		s.state = ""
		s.fromDisk(end)
	}
	return s, nil
}

// fromControl reads scontrol show job.
func (s *seen) fromControl(a answer) {
	f := fields(strings.ReplaceAll(a.out, "\n", " "))
	s.state, s.reason, s.nodes = f["JobState"], f["Reason"], f["NodeList"]
	s.code, s.signal = codes(f["ExitCode"])
	s.restarts, _ = strconv.Atoi(f["Restarts"])
	s.preempt = f["PreemptTime"] != "" && f["PreemptTime"] != "None"
}

// fromDisk reads what the script has left: Slurm has forgotten the job.
func (s *seen) fromDisk(a answer) {
	for _, line := range a.lines() {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			continue
		}
		s.code, s.state = n, "FAILED"
		if n == 0 {
			s.state = "COMPLETED"
		}
	}
}

// codes reads "EXIT:SIGNAL".
func codes(text string) (code, signal int) {
	c, sig, _ := strings.Cut(text, ":")
	code, _ = strconv.Atoi(c)
	signal, _ = strconv.Atoi(sig)
	return code, signal
}
