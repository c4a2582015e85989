//go:build unix

package localjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/localjob/options"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// The names of the steps of Submit.
const (
	stepUpload = "upload"
	stepQueue  = "queue"
)

// Part is the name under which the program is the supervisor of a job.
const Part = "__localjob"

// Provider runs jobs below a directory.
type Provider struct {
	dir, exe string
	// Submitted, where it is set, is called when a job was handed in and before
	// anybody was told: a test ends the process there.
	Submitted func()
}

// New makes a provider; exe is the program that becomes the supervisor of each
// job.
func New(dir, exe string) *Provider {
	p := &Provider{dir: dir, exe: exe}
	if os.Getenv("DLWB_LOCALJOB_DIE") != "" {
		p.Submitted = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	}
	return p
}

// Kind is "local-job".
func (*Provider) Kind() string { return options.Provider.Name }

// Check finds nothing in the way.
func (*Provider) Check(context.Context, cloud.Spec) cloud.Preflight {
	return cloud.Preflight{Findings: []cloud.Finding{{OK: true, What: "queue", Text: "jobs run one after another"}}}
}

// Steps are those of Submit.
func (*Provider) Steps() []string { return []string{stepUpload, stepQueue} }

func (p *Provider) life(life cloud.Life) string { return filepath.Join(p.dir, life.ID) }

// lacks are what no job here can do.
var lacks = []job.Lack{
	{Capability: job.Exec, Why: "local-job runs no command in a job", Next: "the job's output is what there is: l"},
	{Capability: job.Dial, Why: "no port of a local-job can be reached", Next: "write event files and read them here, or provider: local"},
	{Capability: job.Telemetry, Why: "local-job tells nothing of its machine", Next: "provider: local shows processors and GPUs"},
	{Capability: job.Files, Why: "local-job gives no files back", Next: "have the script copy what it writes"},
	{Capability: job.Suspend, Why: "a job can't be suspended", Next: "stop it and run it again"},
}

// Submit hands a job in; the run's directory is what makes it one.
func (p *Provider) Submit(ctx context.Context, life cloud.Life, j cloud.Job, enter func(step, text string), _ cloud.Progress) (cloud.Submitted, error) {
	dir := filepath.Join(p.life(life), j.Run)
	enter(stepUpload, units.Count(len(j.Code.Paths), "file"))
	if err := p.handIn(dir, j); err != nil {
		return cloud.Submitted{}, err
	}
	cmd := exec.Command(p.exe, Part, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return cloud.Submitted{}, err
	}
	go func() { _ = cmd.Wait() }()
	if p.Submitted != nil {
		p.Submitted()
	}
	return cloud.Submitted{Ref: j.Run, Lacks: lacks}, nil
}

// Await waits until the supervisor has told of a beginning.
func (p *Provider) Await(ctx context.Context, life cloud.Life, ref string, enter func(step, text string), _ cloud.Progress) error {
	enter(stepQueue, "behind the job that runs")
	for r := (replica{dir: filepath.Join(p.life(life), ref)}); ; {
		if state, err := r.State(ctx); err != nil || state.Begun {
			return err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// handIn puts a job into its directory; one that is there stays as it is.
func (p *Provider) handIn(dir string, j cloud.Job) error {
	if _, err := os.Stat(filepath.Join(dir, "job.json")); err == nil {
		return nil
	}
	for _, path := range j.Code.Paths {
		to := filepath.Join(dir, "code", filepath.FromSlash(path))
		text, err := os.ReadFile(filepath.Join(j.Code.Dir, filepath.FromSlash(path)))
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600))
		}
		if err != nil {
			return err
		}
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Join(dir, "code"), 0o700), wholefile.Write(filepath.Join(dir, "job.json"), text, 0o600))
}

// Find looks for the directory of a run.
func (p *Provider) Find(_ context.Context, life cloud.Life, run string, _ cloud.Progress) (cloud.Submitted, error) {
	_, err := os.Stat(filepath.Join(p.life(life), run, "job.json"))
	if errors.Is(err, os.ErrNotExist) {
		return cloud.Submitted{}, nil
	}
	return cloud.Submitted{Ref: run, Lacks: lacks}, err
}

// Open gives the replicas of a job.
func (p *Provider) Open(life cloud.Life, ref string) []job.Replica {
	dir := filepath.Join(p.life(life), ref)
	j, err := readJob(dir)
	if err != nil {
		return nil
	}
	all := make([]job.Replica, j.Replicas)
	for i := range all {
		all[i] = replica{dir, i}
	}
	return all
}

func readJob(dir string) (j cloud.Job, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "job.json"))
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	return j, err
}

// downLimit bounds the wait for the supervisor of a job to end.
const downLimit = 15 * time.Second

// Down ends the jobs of a life and removes what they left.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	r := cloud.Receipt{Cluster: life.Name, Provider: p.Kind(), Lived: time.Since(life.Began)}
	found, err := os.ReadDir(p.life(life))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	for _, d := range found {
		if !d.IsDir() {
			continue // the queue
		}
		progress(-1, "ending job "+d.Name())
		dir := filepath.Join(p.life(life), d.Name())
		gone := cloud.Resource{Kind: "job", ID: d.Name(), State: cloud.Gone, Proof: "its supervisor holds no lock", Lived: r.Lived}
		if err := end(ctx, dir); err != nil {
			gone.State, gone.Proof = cloud.Unknown, err.Error()
			r.ProcessesLeft++
		}
		r.Resources = append(r.Resources, gone)
	}
	if r.Proven() {
		err = os.RemoveAll(p.life(life))
		r.Resources = append(r.Resources, cloud.Resource{Kind: "directory", ID: p.life(life), State: cloud.Gone, Proof: "it is removed", Lived: r.Lived})
	}
	return r, err
}

// end stops a job and waits until its supervisor is gone.
func end(ctx context.Context, dir string) error {
	if _, err := (replica{dir: dir}).Stop(ctx, time.Second, "the cluster was taken down"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downLimit)
	defer cancel()
	lock := flock.New(filepath.Join(dir, "lock"))
	if ok, err := lock.TryLockContext(ctx, pollEvery); !ok {
		return fmt.Errorf("its supervisor does not end: %w", err)
	}
	return lock.Unlock()
}
