package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/slurm/options"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
)

// lacks are what no job here can do.
var lacks = []job.Lack{
	{Capability: job.Suspend, Why: "the machines of a job can't be stopped and kept", Next: "stop the run; one that is run again goes on from its checkpoint"},
}

// refOf is how a job is found again: the number that Slurm gave it, the run, and
// how many replicas it has.
func refOf(id, run string, replicas int) string { return fmt.Sprintf("%s/%d/%s", id, replicas, run) }

func cutRef(ref string) (id, run string, replicas int, err error) {
	parts := strings.SplitN(ref, "/", 3)
	if len(parts) != 3 {
		return "", "", 0, fmt.Errorf("%q is no job of Slurm's", ref)
	}
	_, err = fmt.Sscanf(parts[1], "%d", &replicas)
	return parts[0], parts[2], replicas, err
}

// Submit brings a job's parts to the shared disk and hands its script in.
func (p *Provider) Submit(ctx context.Context, life cloud.Life, j cloud.Job, enter func(step, text string), progress cloud.Progress) (cloud.Submitted, error) {
	enter(stepSubmit, units.Count(j.Replicas, "node"))
	if err := p.addRun(life, j.Run); err != nil {
		return cloud.Submitted{}, err
	}
	found, err := p.Find(ctx, life, j.Run, progress)
	if err != nil || found.Ref != "" {
		return found, err
	}
	r, err := p.read(life)
	if err != nil {
		return found, err
	}
	m, err := p.At(ctx, life)
	if err != nil {
		return found, err
	}
	agent, err := m.Agent(ctx, ".dlwb/jobs/"+j.Run)
	if err != nil {
		return found, err
	}
	all, err := ask(ctx, m, question{"config", configLine}, question{"partitions", partitionsLine})
	if err != nil {
		return found, err
	}
	if j.Grace, err = grace(all["config"], j.Grace); err != nil {
		return found, err
	}
	for i := range j.Replicas {
		part, err := partOfJob(j, i, r.Home)
		if err == nil {
			err = m.Hold(ctx, part)
		}
		if err != nil {
			return found, err
		}
	}
	o := orderOf(j, life.ID, r.Home, agent)
	o.port, o.ports, o.resumes = portOf(j), j.Ports, resumes(j)
	if part, is := partitionOf(partitionsOf(all["partitions"]), o.Partition); is {
		o = o.endless(j.Spec, part)
	}
	id, err := sbatch(ctx, m, life, o, progress)
	if err != nil {
		return found, err
	}
	progress(-1, "job "+id)
	return cloud.Submitted{Ref: refOf(id, j.Run, j.Replicas), Lacks: lacks}, nil
}

// portOf is the port that the profile fixes; 0: none.
func portOf(j cloud.Job) int {
	for _, proc := range j.Procs {
		if strings.Contains(strings.Join(append(proc.Argv, proc.Env...), " "), job.Port) {
			return 0
		}
	}
	return 1 // nothing asks for one
}

// resumes reports whether a later life of a job is another than its first.
func resumes(j cloud.Job) bool {
	return slices.ContainsFunc(j.Procs, func(p cloud.JobProc) bool { return len(p.Again) > 0 })
}

// spare is what is left of the time between TERM and KILL for the records.
const spare = 2 * time.Second

// grace is what ranks may have to end, within what Slurm gives the whole step.
func grace(config answer, wanted time.Duration) (time.Duration, error) {
	if err := config.failed(); err != nil {
		return wanted, err
	}
	var seconds int
	if _, err := fmt.Sscanf(settings(config)["KillWait"], "%d", &seconds); err != nil || seconds == 0 {
		return wanted, nil
	}
	if wanted == 0 {
		wanted = 10 * time.Second
	}
	return max(min(wanted, time.Duration(seconds)*time.Second-spare), time.Second), nil
}

// partOfJob is what one node does.
func partOfJob(j cloud.Job, replica int, home string) (part cloud.Part, err error) {
	id := partOf(j.Run, replica)
	own := strings.NewReplacer("~/.dlwb/runs/"+j.Run, "~/.dlwb/runs/"+id)
	gpus := about.Own[options.Machines](j.Spec.Own).GPUs
	part = cloud.Part{ID: id, Node: fmt.Sprintf("node%d", replica), Dir: j.Dir, Results: j.Results, Env: j.Env, Grace: j.Grace, LogMost: j.LogMost, Restarts: j.Restarts}
	leads(j, replica, &part)
	for _, proc := range j.Procs {
		if proc.Replica != replica {
			continue
		}
		if proc.Argv, err = inImage(j.Spec.Image, home, gpus, replaced(proc.Argv, own)); err != nil {
			return part, err
		}
		if proc.Again, err = inImage(j.Spec.Image, home, gpus, replaced(proc.Again, own)); err != nil {
			return part, err
		}
		if proc.After != nil {
			after := *proc.After
			if after.Argv, err = inImage(j.Spec.Image, home, gpus, replaced(after.Argv, own)); err != nil {
				return part, err
			}
			proc.After = &after
		}
		part.Procs = append(part.Procs, proc)
	}
	return part, nil
}

// leads gives a part the files of its replica, and its place among the others: the first
// has them started that a launcher wants, and ends those that have no end of their own.
func leads(j cloud.Job, replica int, part *cloud.Part) {
	for _, f := range j.Files {
		if f.Replica == replica {
			part.Files = append(part.Files, f)
		}
	}
	part.Led, part.Leads = j.Leads && replica > 0, j.Leads && replica == 0
	if replica == 0 && (j.Leads || len(j.Files) > 0) {
		for i := 1; i < j.Replicas; i++ {
			part.Others = append(part.Others, partOf(j.Run, i))
		}
	}
}

func replaced(words []string, by *strings.Replacer) (all []string) {
	for _, w := range words {
		all = append(all, by.Replace(w))
	}
	return all
}

// sbatch hands a script in. It is on the disk before, and the number of the job
// behind: who comes later finds either.
func sbatch(ctx context.Context, m cloud.Machine, life cloud.Life, o order, progress cloud.Progress) (string, error) {
	dir := words(jobDir(o.home, o.run))
	// Once begun it is seen to its end: a job that nobody knows of would be worse.
	ctx = context.WithoutCancel(ctx)
	r, err := m.Run(ctx, sbatchLine(dir, life.ID, o.resumes), []byte(o.script()))
	if err == nil && r.Code == 0 {
		return strings.TrimSpace(string(r.Out)), nil
	}
	// Its answer may have been lost, or sbatch gave up waiting for one. Until its time is
	// over, that there is no job yet is no proof.
	id, _, lookErr := settled(ctx, m, o.home, o.run, progress)
	if lookErr == nil && id != "" {
		return id, nil
	}
	if err == nil {
		err = fmt.Errorf("sbatch: %s", said(string(r.Err)))
	}
	if lookErr == nil {
		// What comes later all the same must not train for nobody.
		_, lookErr = m.Run(ctx, `: >`+dir+`/revoked`, nil)
	}
	if lookErr != nil {
		return "", fmt.Errorf("%w; and whether there is a job is not known: %w", err, lookErr)
	}
	return "", err
}

// sbatchLine hands in the script that comes in. What sbatch was refused is no longer
// on its way; what it waited for in vain may still come. It is out of the reach of the
// signals that end a command whose caller is gone: an sbatch that is killed would leave
// it open for a minute whether there is a job. That it is on its way is on the disk
// before it has a process of its own, whose number is put there then.
func sbatchLine(dir, life string, resumes bool) string {
	marks := `printf '%s %s\n' "$$" "$(uname -n)" >trying`
	if resumes {
		marks += " && : >resume"
	}
	handsIn := marks + ` || exit 70; ` +
		`out=$(sbatch --parsable <script 2>errors) || { cat errors >&2; grep -qi -e 'timed out' -e 'zero bytes' -e 'receive failure' -e 'reset by peer' errors || rm -f trying; exit 71; }; ` +
		`id=$(printf '%s\n' "$out" | sed -n '` + jobNumber + `' | tail -n 1); [ -z "$id" ] || { printf '%s\n' "$id" >id.tmp && mv id.tmp id; }; cat errors >&2; ` +
		`[ -n "$id" ] || { printf 'it named no job: %s\n' "$out" >&2; exit 71; }; printf %s "$id"`
	return clean + `umask 077; cd ` + dir + ` && cat >script.tmp && mv script.tmp script && printf '%s\n' ` + words(life) + ` >life && : >trying || exit 70; ` +
		`own=$(command -v setsid); $own sh -c ` + words(handsIn) + ` </dev/null; exit $?` // a shell that became setsid itself would not wait
}

// jobNumber is the script of sed that finds the number of a job in what sbatch prints:
// "17", "17;cluster" where there are several, and what a site's own script around it
// makes of that, with a banner before or behind.
const jobNumber = `s/^\([0-9][0-9]*\)\(;[^ ]*\)\{0,1\}$/\1/p; s/^Submitted batch job \([0-9][0-9]*\).*/\1/p`

// Find looks for the job of a run: by what lies on the shared disk, and in the
// queue by its name.
func (p *Provider) Find(ctx context.Context, life cloud.Life, run string, progress cloud.Progress) (cloud.Submitted, error) {
	r, err := p.read(life)
	if errors.Is(err, errNothing) {
		return cloud.Submitted{}, nil
	}
	if err != nil {
		return cloud.Submitted{}, err
	}
	m, err := p.At(ctx, life)
	if err != nil {
		return cloud.Submitted{}, err
	}
	id, replicas, err := settled(ctx, m, r.Home, run, progress)
	if err != nil {
		return cloud.Submitted{}, err
	}
	return submittedAs(id, run, replicas), nil
}

func submittedAs(id, run string, replicas int) cloud.Submitted {
	if id == "" {
		return cloud.Submitted{}
	}
	return cloud.Submitted{Ref: refOf(id, run, replicas), Lacks: lacks}
}

// onItsWay is sh that holds where an sbatch was begun less than a minute ago, or goes on
// on this login node. A number of a process says nothing after a while.
const onItsWay = `{ [ -n "$(find trying -mmin -1 2>/dev/null)" ] || { [ -n "$(find trying -mmin -15 2>/dev/null)" ] && read -r pid host <trying && ` +
	`[ "$host" = "$(uname -n)" ] && kill -0 "$pid" 2>/dev/null; }; }`

// find looks once. trying: somebody began to hand it in a moment ago.
func find(ctx context.Context, m cloud.Machine, home, run string) (id string, trying bool, replicas int, err error) {
	all, err := ask(ctx, m,
		question{"disk", `cd ` + words(jobDir(home, run)) + ` 2>/dev/null && { cat id 2>/dev/null; ` + onItsWay + ` && echo trying; }; cd ` + words(home) + `; ls -d .dlwb/runs/` + words(run) + `.n* 2>/dev/null; true`},
		question{"queue", `squeue ` + queueFormat + ` --user="$(id -un)" --name=` + words(nameOf(run))})
	if err != nil {
		return "", false, 0, err
	}
	for _, line := range all["disk"].lines() {
		switch {
		case line == "trying":
			trying = true
		case strings.HasPrefix(line, ".dlwb/"):
			replicas++
		case id == "":
			id = line
		}
	}
	if id != "" {
		return id, false, replicas, nil
	}
	if err := all["queue"].failed(); err != nil {
		return "", false, 0, fmt.Errorf("look for the job of run %s: squeue: %w", run, err)
	}
	for _, q := range queuedOf(all["queue"]) {
		if q.name == nameOf(run) {
			return q.id, false, replicas, nil
		}
	}
	return "", trying, replicas, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Await tells where a job stands in the queue, and why it waits, until it has
// begun or is over.
func (p *Provider) Await(ctx context.Context, life cloud.Life, ref string, enter func(step, text string), progress cloud.Progress) error {
	id, run, _, err := cutRef(ref)
	if err != nil {
		return err
	}
	r, err := p.read(life)
	if err != nil {
		return err
	}
	m, err := p.At(ctx, life)
	if err != nil {
		return err
	}
	enter(stepQueue, "job "+id)
	told, pause := "", lookSoon
	for {
		s, err := p.look(ctx, m, r.Home, run, id, lookSoon/2)
		text := ""
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			text = "Slurm does not answer: " + err.Error()
		case s.over() || s.runs() && s.state != "CONFIGURING" && s.nodes != "":
			return nil
		case s.state == "CONFIGURING":
			text = "its nodes are being made ready: " + s.nodes
		case s.state == "":
			text = "Slurm knows no job " + id
		default:
			text = p.standing(ctx, m, s)
		}
		if text != told {
			progress(-1, text)
			told, pause = text, lookSoon
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(pause*3/2, lookLate)
	}
}

// standing is where a job stands in the queue, and why.
func (p *Provider) standing(ctx context.Context, m cloud.Machine, s seen) string {
	text, hopeless := wordsOf(s.reason)
	if hopeless {
		return "it will not begin as it is: " + text
	}
	if place := placeOf(ctx, m, s.id); place != "" {
		text = place + "; " + text
	}
	if s.start != "" && s.start != "N/A" {
		text += "; expected to begin at " + strings.Replace(s.start, "T", " ", 1)
	}
	return text
}

// placeOf is the place of a job among those that wait in its partition; empty where it
// is not known, as on a cluster that shows nobody the jobs of others.
func placeOf(ctx context.Context, m cloud.Machine, id string) string {
	all, err := ask(ctx, m, question{"config", configLine},
		question{"queue", `squeue --noheader --states=PENDING --partition="$(squeue --noheader --format=%P --jobs=` + words(id) + ` | tail -n 1)" --format='%i|%Q'`})
	if err != nil || all["queue"].code != 0 || hides(all["config"], "jobs") {
		return ""
	}
	return placeAmong(id, all["queue"])
}

// placeAmong is the place of a job in a list of jobs with their priorities.
func placeAmong(id string, a answer) string {
	mine, before, all := int64(-1), 0, 0
	priorities := map[string]int64{}
	for _, line := range a.lines() {
		name, priority, _ := strings.Cut(line, "|")
		var n int64
		if _, err := fmt.Sscan(priority, &n); err == nil {
			priorities[name] = n
		}
		if name == id {
			mine = n
		}
	}
	for _, n := range priorities {
		if all++; n > mine {
			before++
		}
	}
	if mine < 0 {
		return ""
	}
	return fmt.Sprintf("place %d of %d", before+1, all)
}
