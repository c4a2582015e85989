package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
)

// replica is the part of a job that one node carries. Its logs and its story are
// read on the shared disk; whether it lives, and who ended it, Slurm says.
type replica struct {
	p       *Provider
	life    cloud.Life
	id, run string
	number  int
}

// Open gives the replicas of a job.
func (p *Provider) Open(life cloud.Life, ref string) []job.Replica {
	id, run, n, err := cutRef(ref)
	if err != nil {
		return nil
	}
	all := make([]job.Replica, n)
	for i := range all {
		r := replica{p, life, id, run, i}
		if all[i] = r; i == 0 {
			all[i] = reader{r} // all write to the same disk
		}
	}
	return all
}

// reader is the replica through which the files of a run are read.
type reader struct{ replica }

// MetricFiles reads the files of metrics on the shared disk.
func (r reader) MetricFiles(ctx context.Context, ask job.FilesQuery, take func(job.FilesNews) error) error {
	_, records, _, err := r.at(ctx)
	if err != nil {
		return err
	}
	return records.MetricFiles(ctx, ask, take)
}

// at is where the replica's records are.
func (r replica) at(ctx context.Context) (cloud.Machine, cloud.Records, string, error) {
	rec, err := r.p.read(r.life)
	if err != nil {
		return nil, nil, "", err
	}
	m, err := r.p.At(ctx, r.life)
	if err != nil {
		return nil, nil, "", err
	}
	return m, m.Records(partOf(r.run, r.number)), rec.Home, nil
}

// FollowLog follows a log on the shared disk.
func (r replica) FollowLog(ctx context.Context, log string, from job.Cursor, sink func(job.Chunk) error) error {
	_, records, _, err := r.at(ctx)
	if err != nil {
		return err
	}
	return records.FollowLog(ctx, log, from, sink)
}

// HasAll compares with what the logs measure there.
func (r replica) HasAll(ctx context.Context, logs map[string]job.Cursor) (bool, error) {
	_, records, _, err := r.at(ctx)
	if err != nil {
		return false, err
	}
	return records.HasAll(ctx, logs)
}

// look looks at the job.
func (r replica) look(ctx context.Context, young time.Duration) (seen, error) {
	m, _, home, err := r.at(ctx)
	if err != nil {
		return seen{}, err
	}
	return r.p.look(ctx, m, home, r.run, r.id, young)
}

// State is what the records and Slurm say together.
func (r replica) State(ctx context.Context) (job.State, error) {
	_, records, _, err := r.at(ctx)
	if err != nil {
		return job.State{}, err
	}
	s, err := r.look(ctx, lookSoon)
	if err != nil {
		return job.State{}, err
	}
	state, err := records.Look(ctx)
	if err != nil {
		return state, err
	}
	switch {
	case s.state == "":
		state.Phase, state.Why = job.Unknown, forgotten(r.id)
	case s.over():
		state.Phase = job.Over
	default:
		state.Phase = job.Running // or it waits
	}
	state.Clock = time.Time{} // it is the login node's
	return state, nil
}

// Reach tells whether the login node can be reached.
func (r replica) Reach(ctx context.Context, news func(connected bool, why string)) {
	m, _, _, err := r.at(ctx)
	if err != nil {
		news(false, err.Error())
		<-ctx.Done()
		return
	}
	m.Reach(ctx, news)
}

// WatchStatus tells the story that the part has written, with what Slurm says of
// its end. How a rank ended is held back while the job may be on its way back into
// the queue: a run that is preempted and goes on has not failed.
func (r replica) WatchStatus(ctx context.Context, sink func(job.Status) error, looked func(job.State)) error {
	_, records, _, err := r.at(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told, failed := make(chan job.Status), make(chan error, 1)
	go func() {
		failed <- records.Told(ctx, func(s job.Status) error {
			select {
			case told <- s:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	s := story{replica: r, records: records, sink: sink, looked: looked}
	for {
		select {
		case status := <-told:
			err = s.take(status)
		case err = <-failed:
		case <-time.After(s.pause()):
			err = s.see(ctx)
		}
		if errors.Is(err, errOver) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

var errOver = errors.New("the replica is over")

// story is a watch of the statuses of a replica.
type story struct {
	replica
	records cloud.Records
	sink    func(job.Status) error
	looked  func(job.State)

	held    []job.Status // that may be those of a life that is not the last
	begun   bool
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
		return s.sink(status)
	case job.RankStarted, job.RankStarved:
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
	m, _, _, err := s.at(ctx)
	if err != nil {
		return nil
	}
	a, err := askOne(ctx, m, "scontrol --oneliner show job "+words(s.id))
	if err != nil || a.code != 0 {
		return nil
	}
	var now seen
	if now.fromControl(a); !now.keeps() {
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

// stopSlack is what a part gets beyond the grace of its ranks.
const stopSlack = 5 * time.Second

// Stop ends the job: its ranks get TERM and the grace, and then Slurm ends what
// is left. One that waits is taken out of the queue. The replicas of a job have
// one end.
func (r replica) Stop(ctx context.Context, grace time.Duration, why string) (int, error) {
	m, _, home, err := r.at(ctx)
	if err != nil {
		return 0, err
	}
	reason := strings.Join(strings.Fields(strings.ToValidUTF8(why, "?")), " ")
	dir := words(jobDir(home, r.run))
	s, err := r.look(ctx, lookSoon/2)
	if err != nil {
		return 0, err
	}
	if s.over() || s.state == "" {
		return 0, nil
	}
	// The first reason is kept. TERM to the step alone lets the script go on to
	// its own last words.
	line := clean + `cd ` + dir + ` && { [ -e stop ] || { printf '%s\n' ` + words(reason) + ` >stop.tmp && mv stop.tmp stop; }; }; `
	if s.waits() {
		line += `scancel --quiet ` + words(r.id)
	} else {
		line += `scancel --quiet --signal=TERM ` + words(r.id) + ` || scancel --quiet ` + words(r.id)
	}
	if _, err := m.Run(ctx, line, nil); err != nil {
		return 0, err
	}
	return r.awaitGone(ctx, m, grace+stopSlack)
}

// awaitGone waits until the job is over, and cancels it as a whole when the grace
// is.
func (r replica) awaitGone(ctx context.Context, m cloud.Machine, grace time.Duration) (int, error) {
	began, forced := time.Now(), false
	for {
		s, err := r.look(ctx, lookSoon/2)
		switch {
		case err == nil && (s.over() || s.state == ""):
			return 0, nil
		case ctx.Err() != nil:
			return 1, fmt.Errorf("job %s does not end: %w", r.id, context.Cause(ctx))
		case !forced && time.Since(began) > grace || err == nil && s.waits() && time.Since(began) > 2*time.Second:
			forced = true
			if _, err := m.Run(ctx, clean+`scancel --quiet `+words(r.id), nil); err != nil {
				return 1, err
			}
		}
		if err := sleep(ctx, lookSoon/2); err != nil {
			return 1, fmt.Errorf("job %s does not end: %w", r.id, err)
		}
	}
}

// Enter is the command that runs a line on the node of a replica, beside what
// runs there.
func (p *Provider) Enter(ctx context.Context, life cloud.Life, ref string, number int) ([]string, error) {
	id, run, _, err := cutRef(ref)
	if err != nil {
		return nil, err
	}
	r := replica{p, life, id, run, number}
	s, err := r.look(ctx, lookLate)
	if err != nil {
		return nil, err
	}
	switch {
	case s.over() || s.state == "":
		return nil, fmt.Errorf("job %s is over: it has no nodes any more", id)
	case !s.runs() || s.nodes == "":
		return nil, fmt.Errorf("job %s waits in the queue: it has no nodes yet", id)
	}
	m, _, _, err := r.at(ctx)
	if err != nil {
		return nil, err
	}
	a, err := askOne(ctx, m, "scontrol show hostnames "+words(s.nodes))
	if err != nil {
		return nil, err
	}
	hosts := a.lines()
	if err := a.failed(); err != nil || number >= len(hosts) {
		return nil, fmt.Errorf("the nodes of job %s are %q: %w", id, s.nodes, errors.Join(err, errors.New("there are fewer than it has replicas")))
	}
	// Without --overlap it would wait for the end of the job; without --unbuffered
	// bytes would wait for the end of a line.
	return []string{"sh", "-c", clean + `exec srun --jobid=` + words(id) + ` --overlap ` + plain + ` --nodes=1 --ntasks=1 --nodelist=` + words(hosts[number]) +
		` --unbuffered --quiet --export=ALL sh -c "$1"`, "dlwb"}, nil
}
