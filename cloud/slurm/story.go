package slurm

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
)

var errOver = errors.New("the replica is over")

// story is a watch of the statuses of a replica.
type story struct {
	replica
	records cloud.Records
	sink    func(job.Status) error
	looked  func(job.State)

	held    []job.Status // that may be those of a life that is not the last
	begun   bool
	lives   int  // of which it was told
	waiting bool // that it waits again was told
	quiet   int  // looks since the last status
}

// pause is how long nothing must come before the next look at the job.
func (s *story) pause() time.Duration {
	if len(s.held) > 0 || s.quiet < 5 {
		return lookSoon
	}
	return lookLate
}

// take takes the next status. What comes behind a stop by a signal, and each end,
// is held until Slurm has said what it means.
func (s *story) take(status job.Status) error {
	s.quiet = 0
	switch status.Kind {
	case job.Started:
		s.held, s.begun, s.waiting = nil, true, false // what an earlier life came to is no end
		s.lives++
		return s.sink(status)
	case job.RankStarted, job.RankStarved, job.RankFailed, job.RankTold, job.RankFree, job.RankGone, job.Left:
		return s.sink(status)
	case job.Stopping, job.RankEnded, job.Ended:
		if status.Kind == job.RankEnded && status.Code == 0 && len(s.held) == 0 {
			return s.sink(status)
		}
		s.held = append(s.held, status)
	}
	return nil
}

// resumes says what the next life of the job begins with.
func (s *story) resumes(ctx context.Context) string {
	m, _, home, err := s.at(ctx)
	if err != nil {
		return ""
	}
	if r, err := m.Run(ctx, `[ -e `+words(jobDir(home, s.run)+"/resume")+` ]`, nil); err != nil || r.Code != 0 {
		return ""
	}
	return "; when it begins again, run.resume is added to its command"
}

// heldFor is how long the end of a rank is held while the job runs on and nobody
// is about to take its nodes.
const heldFor = 2 * time.Second

// see looks at the job.
func (s *story) see(ctx context.Context) error {
	s.quiet++
	young := lookSoon / 2
	now, err := s.look(ctx, young)
	if err != nil {
		return nil // nothing is known until somebody answers
	}
	if state, err := s.records.Look(ctx); err == nil && s.looked != nil {
		state.Clock, state.Phase = time.Time{}, job.Running
		s.looked(state)
	}
	switch {
	case now.over() || now.state == "":
		return s.end(ctx, now)
	case now.waits() && s.begun && !s.waiting:
		s.waiting, s.held = true, nil
		why, _ := wordsOf(now.reason)
		return s.sink(job.Status{Time: time.Now(), Kind: job.Waiting, Rank: -1, Why: "Slurm has put job " + s.id + " back into the queue: " + why + s.resumes(ctx)})
	case now.keeps() && len(s.held) > 0 && !s.released() && s.quiet > int(heldFor/lookSoon):
		return s.release(ctx)
	}
	return nil
}

// release tells what was held of a job that runs on: a rank has failed, and the
// others may not know.
func (s *story) release(ctx context.Context) error {
	m, _, home, err := s.at(ctx)
	if err != nil {
		return nil
	}
	all, err := ask(ctx, m, question{"job", "scontrol --oneliner show job " + words(s.id)},
		question{"part", "ls " + words(home+"/.dlwb/runs/"+partOf(s.run, s.number))},
		question{"script", "ls " + words(jobDir(home, s.run))})
	if err != nil || all["job"].code != 0 || all["part"].code != 0 || all["script"].code != 0 {
		return nil
	}
	var now seen
	if now.fromControl(all["job"]); !now.keeps() || !s.isPresent(now.restarts, all["script"].out, all["part"].out) {
		return nil
	}
	var rest []job.Status
	for _, status := range s.held {
		if status.Kind != job.RankEnded { // that is for Slurm to explain
			rest = append(rest, status)
			continue
		}
		if err := s.sink(status); err != nil {
			return err
		}
	}
	s.held = rest
	return nil
}

// isPresent reports whether what was told is of the job's present life. A job that is put
// back into the queue can run again before anybody saw it wait, and long before its part
// has told that it has begun: Slurm's word that it runs is none on what its ranks came to
// in its last life. The script and each part leave a mark of a life before they begin it;
// the script's numbers run ahead of Slurm's where a controller has lost one.
func (s *story) isPresent(restarts int, script, part string) bool {
	begun, _ := livesOf(script, "begun-")
	newest, lives := livesOf(part, "life-") // docs/agent.md
	return begun >= restarts && newest == begun && lives == s.lives
}

// livesOf reads the marks of lives among the names of files: the newest, and how many.
func livesOf(names, mark string) (newest, lives int) {
	newest = -1
	for _, name := range strings.Fields(names) {
		number, is := strings.CutPrefix(name, mark)
		if n, err := strconv.Atoi(number); is && err == nil {
			newest, lives = max(newest, n), lives+1
		}
	}
	return newest, lives
}

// forgotten says that nobody knows how a job ended.
func forgotten(id string) string {
	return "Slurm has forgotten job " + id + ", and its script has left no word of its end"
}

// end tells the end of the job: first who made it, then what the part has
// written of it, at last that it is over.
func (s *story) end(ctx context.Context, now seen) error {
	state, err := s.records.Look(ctx)
	if err != nil {
		return nil // again with the next look
	}
	s.catchUp(ctx, now)
	if now.state == "" && !s.wrote(job.Ended) {
		return &job.UnrecordedError{State: state, Err: errors.New(forgotten(s.id))}
	}
	why, err := s.reason(ctx, now)
	if err != nil {
		return nil
	}
	at := time.Now()
	if len(s.held) > 0 {
		at = s.held[0].Time
	}
	if why != "" {
		if err := s.sink(job.Status{Time: at, Kind: job.Stopping, Rank: -1, Why: why}); err != nil {
			return err
		}
	}
	code := now.code
	if now.signal != 0 {
		code = 128 + now.signal
	}
	ended := job.Status{Time: at, Kind: job.Ended, Rank: -1, Code: code}
	for _, status := range s.held {
		if status.Kind == job.Ended {
			ended = status
			continue
		}
		if status.Kind == job.Stopping && why != "" {
			continue
		}
		if err := s.sink(status); err != nil {
			return err
		}
	}
	if err := s.sink(ended); err != nil {
		return err
	}
	return errOver
}

// released reports whether the part was ended because all has ended well where the run is
// led: what its ranks came to then fails nothing, and the job is about to be over.
func (s *story) released() bool {
	return s.held[0].Kind == job.Stopping && strings.HasPrefix(s.held[0].Why, job.RunOver)
}

// wrote reports whether a status of a kind is held.
func (s *story) wrote(kind job.Kind) bool {
	for _, status := range s.held {
		if status.Kind == kind {
			return true
		}
	}
	return false
}

// catchLimit bounds the wait for what a part wrote last: a shared disk shows it
// to others a little late.
const catchLimit = 5 * time.Second

// catchUp waits until the last words of the part are read, where it had a chance
// to write any.
func (s *story) catchUp(ctx context.Context, now seen) {
	if !s.begun || s.wrote(job.Ended) || now.state == "NODE_FAIL" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catchLimit)
	defer cancel()
	var last []job.Status
	_ = s.records.Told(ctx, func(status job.Status) error {
		switch status.Kind {
		case job.Started:
			last = nil
		case job.RankEnded, job.Stopping:
			last = append(last, status)
		case job.Ended:
			last = append(last, status)
			return errOver
		}
		return nil
	})
	if len(last) > len(s.held) {
		s.held = last
	}
}

// reason is why the job ended, where its program did not end it; what dlwb asked
// for comes before what Slurm says.
func (s *story) reason(ctx context.Context, now seen) (string, error) {
	m, _, home, err := s.at(ctx)
	if err != nil {
		return "", err
	}
	r, err := m.Run(ctx, `cat `+words(jobDir(home, s.run)+"/stop")+` 2>/dev/null`, nil)
	if err != nil {
		return "", err
	}
	if why := strings.TrimSpace(string(r.Out)); why != "" {
		return why, nil
	}
	why := now.why()
	if why == "" && !s.begun {
		why = now.early()
	}
	if strings.HasPrefix(why, job.Cancelled) && strings.HasPrefix(now.by, "user ") {
		if r, err := m.Run(ctx, `id -nu -- `+words(strings.TrimPrefix(now.by, "user ")), nil); err == nil && r.Code == 0 {
			why = strings.Replace(why, now.by, strings.TrimSpace(string(r.Out)), 1)
		}
	}
	return why, nil
}
