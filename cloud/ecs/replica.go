package ecs

import (
	"context"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// replica is one machine of a job: the first has the ranks from 0 on.
type replica struct {
	p      *Provider
	life   cloud.Life
	ref    ref
	number int
}

var _ job.Replica = (*replica)(nil)

func (r *replica) mine() []int { return r.ref.Ranks[r.number] }

// story looks once. early: the job is over, and the last line of its log, by which the
// driver tells how the ranks ended, may still come.
func (r *replica) story(ctx context.Context) (all []job.Status, early bool, err error) {
	g, err := r.p.gateOf(ctx, r.life, r.ref)
	if err != nil {
		return nil, false, err
	}
	j, err := g.see(ctx, r.ref.Name)
	if err != nil {
		return r.fate(ctx, g, err)
	}
	if j == nil {
		return lost(time.Now(), job.Lost+"Ray has no such job any more: its head was started again, and with it the job ended"), false, nil
	}
	var ends map[int]int
	why := ""
	if j.Over() {
		s, err := r.p.spool(r.ref)
		if err != nil {
			return nil, false, err
		}
		if j.Driven() {
			ends, early = s.ends(g), !s.settled(j.Ended())
		}
		why = g.whyOf(ctx, r.ref.Name)
	}
	return storyOf(r.mine(), j, why, ends), early, nil
}

// fate says what became of a job whose dashboard is not reached. The machines are
// gone where their groups have none: by the end of their time, or by somebody. Any
// other fault says nothing.
func (r *replica) fate(ctx context.Context, g *gate, fault error) ([]job.Status, bool, error) {
	if r.ref.There {
		if _, err := g.door.theirs(ctx, r.ref.Cluster); err != nil && permanent(err) {
			return lost(time.Now(), job.Lost+err.Error()+"; dlwb did not end it"), false, nil
		}
		return nil, false, fault
	}
	entries, err := r.life.Ledger.Entries()
	if err != nil {
		return nil, false, fault
	}
	e := entry(entries, kindScaling, r.ref.Cluster+"-"+head)
	if e == nil {
		return nil, false, fault
	}
	d, err := detailOf(e)
	if err != nil {
		return nil, false, fault
	}
	left, err := g.door.instancesOf(ctx, r.life.ID, notEnded...)
	if err != nil || len(left) > 0 {
		return nil, false, fault
	}
	if time.Now().After(d.Ends) {
		return lost(d.Ends, job.LeaseOver+"the machines have had their time; limits.lifetime asks for more"), false, nil
	}
	return lost(time.Now(), job.Lost+"no machine of the cluster is left, and dlwb did not end them"), false, nil
}

// State looks once.
func (r *replica) State(ctx context.Context) (job.State, error) {
	all, early, err := r.story(ctx)
	if err != nil {
		return job.State{Phase: job.Unknown}, err
	}
	state := stateOf(all)
	if early {
		state.Phase, state.Ranks = job.Running, map[int]job.Exit{}
	}
	return state, nil
}

// WatchStatus tells the story as it becomes known, by looking.
func (r *replica) WatchStatus(ctx context.Context, sink func(job.Status) error, looked func(job.State)) error {
	told := 0
	for wait := firstLook; ; wait = min(wait*2, lookEvery) {
		all, early, err := r.story(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && permanent(err):
			return err
		case err == nil && !early:
			looked(stateOf(all))
			for ; told < len(all); told++ {
				if err := sink(all[told]); err != nil || all[told].Kind == job.Ended {
					return err
				}
			}
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// Stop ends the whole job, whichever of its replicas is asked, and notes why in a tag
// of the cluster. Ray gives the driver 30 seconds behind SIGTERM.
func (r *replica) Stop(ctx context.Context, grace time.Duration, why string) (int, error) {
	g, err := r.p.gateOf(ctx, r.life, r.ref)
	if err != nil {
		return len(r.mine()), err
	}
	j, err := g.see(ctx, r.ref.Name)
	if err != nil {
		if all, _, other := r.fate(ctx, g, err); other == nil && len(all) > 0 {
			return 0, nil
		}
		return len(r.mine()), gateError(err)
	}
	if j == nil || j.Over() {
		return 0, nil
	}
	g.note(ctx, r.ref.Name, why)
	if err := g.Stop(ctx, r.ref.Name); err != nil {
		return len(r.mine()), gateError(err)
	}
	for until := time.Now().Add(grace + stopLimit); ; {
		j, err := g.see(ctx, r.ref.Name)
		if err == nil && (j == nil || j.Over()) {
			return 0, nil
		}
		if time.Now().After(until) {
			return len(r.mine()), err
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return len(r.mine()), err
		}
	}
}

// stopLimit is longer than Ray waits for a driver.
const stopLimit = time.Minute

// note keeps why dlwb stopped a job, where another dlwb finds it. That it can't be
// kept keeps nobody from stopping what costs money.
func (g *gate) note(ctx context.Context, name, why string) {
	if why == "" {
		return
	}
	if g.notes != "" {
		_ = wholefile.Write(g.notes+name, []byte(name+" "+why), 0o600)
		return
	}
	arn, err := findCluster(ctx, g.door, g.cluster)
	if err != nil || arn == "" {
		return
	}
	_, _ = g.door.ecs.TagResource(ctx, &awsecs.TagResourceInput{ResourceArn: &arn, Tags: []ecstypes.Tag{{Key: aws.String(tagWhy), Value: aws.String(tagText(name + " " + why))}}})
}

// whyOf reads why dlwb stopped a job; empty: it did not, or nobody may see it.
func (g *gate) whyOf(ctx context.Context, name string) string {
	if g.notes != "" {
		text, _ := os.ReadFile(g.notes + name)
		return cutNote(string(text), name)
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := g.door.ecs.DescribeClusters(ctx, &awsecs.DescribeClustersInput{Clusters: []string{g.cluster}, Include: []ecstypes.ClusterField{ecstypes.ClusterFieldTags}})
	if err != nil || len(out.Clusters) == 0 {
		return ""
	}
	for _, t := range out.Clusters[0].Tags {
		if aws.ToString(t.Key) == tagWhy {
			return cutNote(aws.ToString(t.Value), name)
		}
	}
	return ""
}

// Reach tells whether Ray can be asked.
func (r *replica) Reach(ctx context.Context, news func(connected bool, why string)) {
	job.Reach(ctx, func(ctx context.Context) error {
		g, err := r.p.gateOf(ctx, r.life, r.ref)
		if err == nil {
			_, err = g.see(ctx, r.ref.Name)
		}
		return err
	}, news)
}
