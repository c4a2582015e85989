package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// downLimit bounds the wait for a job to leave the queue.
const downLimit = 60 * time.Second

// Down cancels the jobs of a life, waits until Slurm shows each of them ended, and
// removes what they left on the shared disk.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	receipt := cloud.Receipt{Cluster: life.Name, Provider: p.Kind(), Lived: cloud.Lived(life.Began, time.Now())}
	r, err := p.read(life)
	if errors.Is(err, errNothing) {
		return receipt, nil
	}
	if err != nil {
		return receipt, err
	}
	add := func(kind, id string, proof string, err error) {
		res := cloud.Resource{Kind: kind, ID: id, State: cloud.Gone, Proof: proof, Lived: receipt.Lived}
		if err != nil {
			res.State, res.Proof = cloud.Unknown, err.Error()
		}
		receipt.Resources = append(receipt.Resources, res)
	}
	m, err := p.At(ctx, life)
	if err != nil {
		for _, run := range r.Runs {
			add("job", nameOf(run), "", err)
		}
		return receipt, err
	}
	var failed error
	for _, run := range r.Runs {
		progress(-1, "ending the job of run "+run)
		id, proof, err := p.cancel(ctx, m, life, r.Home, run, progress)
		if id == "" {
			id = nameOf(run)
		}
		add("job", id, proof, err)
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return receipt, failed
	}
	left, err := clear(ctx, m, life, r)
	if err == nil && left != "" {
		err = fmt.Errorf("still there: %s", left)
	}
	add("files", r.Node.Name+":"+r.Home+"/dlwb/"+life.Name, "they are removed, and nothing of this cluster is found there", err)
	if err == nil {
		err = os.Remove(p.path(life))
	}
	return receipt, err
}

// cancel ends the job of a run, where there is one, and gives the proof.
func (p *Provider) cancel(ctx context.Context, m cloud.Machine, life cloud.Life, home, run string, progress cloud.Progress) (id, proof string, err error) {
	id, _, err = settled(ctx, m, home, run, progress)
	if err != nil {
		return id, "", err
	}
	if id == "" {
		return "", "squeue has no job of this name, and none is on record", nil
	}
	p.mu.Lock()
	delete(p.looks, run) // a look of before is no proof
	p.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, downLimit, fmt.Errorf("it did not end within %v", downLimit))
	defer cancel()
	for asked := false; ; {
		s, err := p.look(ctx, m, home, run, id, lookSoon/2)
		switch {
		case err == nil && s.state == "":
			return id, "Slurm has forgotten it: squeue and scontrol know no such job", nil
		case err == nil && s.over():
			return id, "Slurm shows it ended: " + s.state, nil
		case err == nil && !asked:
			asked = true
			if _, err := m.Run(ctx, clean+`scancel --quiet `+words(id), nil); err != nil {
				return id, "", err
			}
		}
		if e := sleep(ctx, lookSoon/2); e != nil {
			return id, "", fmt.Errorf("job %s is not proven gone: %w", id, errors.Join(e, err))
		}
	}
}

// sbatchMost is how long an sbatch is waited for: the minute for which one that was begun
// may still bring a job into the queue, whatever became of whoever began it, and some.
var sbatchMost = 70 * time.Second

// settled gives the job of a run; empty: there is none. An sbatch that was begun a
// moment ago may still be waiting for the controller: that there is no job yet is no
// proof, and its time is waited for.
func settled(ctx context.Context, m cloud.Machine, home, run string, progress cloud.Progress) (id string, replicas int, err error) {
	began := time.Now()
	for told := false; ; told = true {
		id, trying, replicas, err := find(ctx, m, home, run)
		if err != nil || id != "" || !trying {
			return id, replicas, err
		}
		if time.Since(began) > sbatchMost {
			return "", 0, fmt.Errorf("an sbatch of run %s goes on, and may still bring a job into the queue: look again in a minute", run)
		}
		if !told {
			progress(-1, "an sbatch of run "+run+" was begun less than a minute ago; whether it brings a job into the queue is seen when its minute is over")
		}
		if err := sleep(ctx, time.Second); err != nil {
			return "", 0, fmt.Errorf("an sbatch of run %s was begun less than a minute ago, and may still bring a job into the queue: %w", run, err)
		}
	}
}

// clear removes what a life has on the shared disk, and says what is still there.
// The agent goes with the last job of anybody's dlwb, and the place of the code stays
// while another cluster has the same: its runs have their code there, or the claim of a
// host is of that name.
func clear(ctx context.Context, m cloud.Machine, life cloud.Life, r record) (left string, err error) {
	var b strings.Builder
	b.WriteString(`cd ` + words(r.Home) + ` || exit 66; `)
	var own []string
	for _, run := range r.Runs {
		own = append(own, ".dlwb/jobs/"+words(run), ".dlwb/runs/"+words(run)+".n*")
	}
	runs := strings.Join(own, " ")
	b.WriteString(`rm -rf ` + runs + `; code=` + words("dlwb/"+life.Name) + `; `)
	b.WriteString(`if grep -qsF ` + words("/dlwb/"+life.Name+"/") + ` .dlwb/runs/*/dir || grep -qsxF ` + words("cluster "+life.Name) + ` .dlwb/cluster .dlwb/claims/*; then code=; else rm -rf "$code"; fi; `)
	b.WriteString(`rmdir .dlwb/jobs .dlwb/runs dlwb 2>/dev/null; `)
	b.WriteString(`[ -e .dlwb/jobs ] || [ -e .dlwb/runs ] || [ -e .dlwb/cluster ] || [ -e .dlwb/claims ] || [ -e .dlwb/dlwb.db ] || rm -rf .dlwb; `)
	b.WriteString(`for f in ` + runs + ` $code; do [ ! -e "$f" ] || printf '%s ' "$f"; done`)
	said_, err := m.Run(ctx, b.String(), nil)
	if err != nil {
		return "", err
	}
	if said_.Code != 0 {
		return "", fmt.Errorf("remove the files of the jobs: %s", said(string(said_.Err)))
	}
	return strings.TrimSpace(string(said_.Out)), nil
}
