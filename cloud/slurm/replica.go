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
