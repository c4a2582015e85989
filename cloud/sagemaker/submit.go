package sagemaker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ownimage"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// time30 is the time that so many bytes need on a slow line.
func time30(bytes int) time.Duration { return time.Duration(bytes/(256<<10)) * time.Second }

// Submit puts the code into S3 and makes the job, each after the ledger has it. What
// a call before has made is found by its name, and made no second time.
func (p *Provider) Submit(ctx context.Context, life cloud.Life, j cloud.Job, enter func(step, text string), progress cloud.Progress) (cloud.Submitted, error) {
	name := nameOf(j.Run)
	made, code, err := entryOf(life, name)
	if err != nil {
		return cloud.Submitted{}, err
	}
	s := submission{p: p, life: life, job: j, progress: progress}
	if err := s.build(ctx, enter); err != nil {
		return cloud.Submitted{}, err
	}
	if err := s.prepare(ctx, name, made, code); err != nil {
		return cloud.Submitted{}, err
	}
	enter(stepUpload, fmt.Sprintf("%s to s3://%s/%s", units.Count(len(j.Code.Paths), "file"), s.ref.Bucket, s.ref.Prefix))
	if err := s.upload(ctx, code); err != nil {
		return cloud.Submitted{}, err
	}
	if err := s.create(ctx, made); err != nil {
		return cloud.Submitted{}, err
	}
	return s.ref.submitted(j.Spec), nil
}

// submitted is what is told of a job.
func (r ref) submitted(spec cloud.Spec) cloud.Submitted {
	s := cloud.Submitted{Ref: r.String(), Lacks: lacks(r), PricePerHour: r.PerHour, Stay: time.Duration(r.Stay * float64(time.Second))}
	if r.PerHour > 0 {
		s.Costs = []cloud.Cost{{What: fmt.Sprintf("%d × %s", len(r.Ranks), spec.Instance), PerHour: r.PerHour, Source: priceSource}}
	}
	return s
}

// submission makes one job.
type submission struct {
	p        *Provider
	door     *door
	life     cloud.Life
	job      cloud.Job
	ref      ref
	settings settings
	objects  []object
	progress cloud.Progress
	built    *ownimage.Built // of the profile's Dockerfile; nil: it has none
}

// prepare finds out all that is needed, packs, and makes nothing.
func (s *submission) prepare(ctx context.Context, name string, made, code *cloud.Entry) (err error) {
	spec := s.job.Spec
	if s.door, err = s.p.doors.Open(ctx, regionOf(spec)); err != nil {
		return err
	}
	if err := s.again(ctx, made, code); err != nil {
		return err
	}
	m := about.Own[options.Machines](spec.Own)
	s.settings.life = s.life
	if s.settings.role, err = s.door.roleOf(ctx, m.Role); err != nil {
		return err
	}
	if s.settings.image, err = imageOf(spec.Image, m.Estimator, s.door.region, spec.Instance); err != nil {
		return err
	}
	if made == nil {
		err = s.name(ctx, name, m)
	}
	if err != nil {
		return err
	}
	if s.settings.limit, err = cloud.PaidFor(spec, s.ref.PerHour, m.Keep(), longest); err != nil {
		return err
	}
	if m.Estimator != "" {
		s.settings.env = map[string]string{}
		for _, pair := range s.job.Env {
			key, value, _ := strings.Cut(pair, "=")
			s.settings.env[key] = value
		}
	}
	s.objects, err = objectsOf(s.job, s.ref)
	return err
}

// again takes what a submission before has left in the ledger, if the credentials
// are of the account in which it was.
func (s *submission) again(ctx context.Context, left ...*cloud.Entry) error {
	for _, e := range left {
		if e == nil {
			continue
		}
		r, err := ownerOf(e)
		if err != nil {
			return fmt.Errorf("read what the ledger has of %s: %w", e.Token, err)
		}
		if err := s.door.belongs(ctx, r); err != nil {
			return err
		}
		if e.Kind == kindJob {
			s.ref = r
		}
	}
	return nil
}

// name says where everything of the job is.
func (s *submission) name(ctx context.Context, name string, m options.Machines) error {
	account, err := s.door.account(ctx)
	if err != nil {
		return err
	}
	bucket, err := s.door.bucketOf(ctx, m.Bucket)
	if err != nil {
		return err
	}
	s.ref = ref{Region: s.door.region, Account: account, Name: name, Bucket: bucket, Prefix: prefixOf(s.life, name), Output: strings.TrimRight(m.Output, "/")}
	if s.ref.Output == "" {
		s.ref.Output = "s3://" + bucket + "/dlwb/output"
	}
	s.ref.Built = s.built
	s.ref.Ranks, s.ref.Tagged = pack.Ranks(s.job)
	s.ref.Told, s.ref.Debug, s.ref.Stay = m.Estimator == "", m.RemoteDebug, m.Keep().Seconds()
	s.ref.Tagged = s.ref.Tagged && s.ref.Told
	s.ref.Unwatched = s.door.unwatched(ctx, name+"/algo-1")
	price := s.door.price(ctx, s.job.Spec.Instance)
	s.ref.PerHour = price.PerHour * float64(s.job.Replicas)
	return nil
}

// regionOf is the region of a profile; empty: that of the user's configuration.
func regionOf(spec cloud.Spec) string {
	if len(spec.Regions) > 0 {
		return spec.Regions[0]
	}
	return ""
}

// upload puts the code into S3.
func (s *submission) upload(ctx context.Context, code *cloud.Entry) error {
	token := codeToken(s.ref.Name)
	if code == nil {
		if err := s.life.Ledger.Intend(kindCode, token, s.ref); err != nil {
			return err
		}
	}
	if err := s.door.put(ctx, s.ref, s.objects); err != nil {
		return err
	}
	return s.life.Ledger.Resolve(token, "s3://"+s.ref.Bucket+"/"+s.ref.Prefix)
}

// create makes the job, or takes the one that is there: its name is the run's.
func (s *submission) create(ctx context.Context, made *cloud.Entry) error {
	in, err := requestOf(s.job, s.ref, s.settings)
	if err != nil {
		return err
	}
	if made == nil {
		if err := s.life.Ledger.Intend(kindJob, s.ref.Name, s.ref); err != nil {
			return err
		}
	} else if there, err := s.take(ctx); err != nil || there {
		return err
	}
	out, err := s.ask(ctx, in)
	if err != nil {
		return s.failed(ctx, err)
	}
	return s.life.Ledger.Resolve(s.ref.Name, aws.ToString(out.TrainingJobArn))
}

// ask sends the call that makes the job. It is sent once: of a call that is repeated
// only the last answer is known, and that says nothing about the first. Only where
// SageMaker has said itself that it did not look at the call, another is sent.
func (s *submission) ask(ctx context.Context, in *sagemaker.CreateTrainingJobInput) (*sagemaker.CreateTrainingJobOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for wait := time.Second; ; wait *= 2 {
		out, err := s.door.sm.CreateTrainingJob(ctx, in, func(o *sagemaker.Options) { o.Retryer = aws.NopRetryer{} })
		if err == nil || !throttled(err) || wait > slowest || waits.Pause(ctx, wait) != nil {
			return out, err
		}
	}
}

// slowest is the longest wait for calls to be taken again.
const slowest = 8 * time.Second

// failed says what became of a call that failed. The entry is closed where the call
// was refused and no such job is there; else nobody knows, and it stays open.
func (s *submission) failed(ctx context.Context, err error) error {
	there, lookErr := s.take(context.WithoutCancel(ctx))
	switch {
	case there:
		return lookErr
	case lookErr != nil || taken(err) || !certain(err):
		return s.door.explain(err)
	}
	if closed := s.life.Ledger.Close(s.ref.Name, "SageMaker refused it: "+firstLine(err)); closed != nil {
		return closed
	}
	if crowded(err) {
		return &cloud.NoRoom{Err: s.door.explain(err)}
	}
	return s.door.explain(err)
}

// take looks for a job of the run's name, and takes it if it is this run's.
func (s *submission) take(ctx context.Context) (there bool, err error) {
	job, err := s.door.describe(ctx, s.ref.Name)
	if err != nil || job == nil {
		return false, err
	}
	return true, s.found(ctx, aws.ToString(job.TrainingJobArn))
}

func firstLine(err error) string {
	_, says := awsapi.CodeOf(err)
	if says == "" {
		says = err.Error()
	}
	line, _, _ := strings.Cut(says, "\n")
	return line[:min(len(line), 200)]
}

// found takes a job that is there, if it is this run's.
func (s *submission) found(ctx context.Context, arn string) error {
	if err := s.door.ours(ctx, s.life, s.ref.Name, arn); err != nil {
		return err
	}
	return s.life.Ledger.Resolve(s.ref.Name, arn)
}

// whoseError is that the tags of a job can't be read.
type whoseError struct {
	name string
	err  error
}

func (e *whoseError) Error() string {
	return "whose training job " + e.name + " is, is not known: " + e.err.Error()
}

func (e *whoseError) Unwrap() error { return e.err }

// ours is an error unless the tags of a job say that it is of a life. Tags that can't
// be read say nothing: the job may be anybody's.
func (d *door) ours(ctx context.Context, life cloud.Life, name, arn string) error {
	tags, err := d.tagsOf(ctx, arn)
	if err != nil {
		return &whoseError{name, err}
	}
	if tags[tagLife] != tagText(life.ID) {
		return &plainError{"there is a training job " + name + " in " + d.region + " that is not of this run", "run it again: each run has a name of its own"}
	}
	return nil
}

// Find looks for the job of a run by its name. One that was asked for a moment ago
// may be about to be seen.
func (p *Provider) Find(ctx context.Context, life cloud.Life, run string, _ cloud.Progress) (cloud.Submitted, error) {
	name := nameOf(run)
	made, _, err := entryOf(life, name)
	if err != nil || made == nil || made.ClosedAt != nil && made.ID == "" {
		return cloud.Submitted{}, err
	}
	r, err := ownerOf(made)
	if err != nil {
		return cloud.Submitted{}, err
	}
	d, err := p.enter(ctx, r)
	if err != nil {
		return cloud.Submitted{}, err
	}
	there, err := d.sight(ctx, life, made)
	if err != nil || !there {
		return cloud.Submitted{}, err
	}
	return r.submitted(cloud.Spec{Instance: "machines"}), nil
}

// sight reports whether the job of an entry exists, and waits where it may be about
// to be seen. A job of that name that is not of the life is an error.
func (d *door) sight(ctx context.Context, life cloud.Life, e *cloud.Entry) (bool, error) {
	for {
		job, err := d.describe(ctx, e.Token)
		if err != nil {
			return false, err
		}
		if job != nil {
			if err := d.ours(ctx, life, e.Token, aws.ToString(job.TrainingJobArn)); err != nil {
				return false, err
			}
			if e.ID != "" || e.ClosedAt != nil {
				return true, nil
			}
			return true, life.Ledger.Resolve(e.Token, aws.ToString(job.TrainingJobArn))
		}
		if e.ID != "" && e.Open() {
			return false, &plainError{"SageMaker shows no job " + e.Token + ", and it has made " + e.ID + ": a job does not vanish", "is AWS_ENDPOINT_URL set? https://health.aws.amazon.com/health/status"}
		}
		if e.ID != "" || time.Since(e.IntentAt) > awsapi.Settle() {
			return false, nil
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return false, err
		}
	}
}
