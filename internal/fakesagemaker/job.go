//go:build unix

package fakesagemaker

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Request is what of a CreateTrainingJob the fake acts on.
type Request struct {
	TrainingJobName, RoleArn string
	AlgorithmSpecification   struct {
		TrainingImage, TrainingInputMode        string
		ContainerEntrypoint, ContainerArguments []string
	}
	HyperParameters, Environment map[string]string
	InputDataConfig              []struct {
		ChannelName, InputMode string
		DataSource             struct {
			S3DataSource *struct{ S3DataType, S3Uri, S3DataDistributionType string }
		}
	}
	OutputDataConfig struct{ S3OutputPath string }
	CheckpointConfig *struct{ S3Uri, LocalPath string }
	ResourceConfig   struct {
		InstanceType             string
		InstanceCount            int
		VolumeSizeInGB           int
		KeepAlivePeriodInSeconds int
	}
	StoppingCondition         struct{ MaxRuntimeInSeconds, MaxWaitTimeInSeconds int }
	RemoteDebugConfig         *struct{ EnableRemoteDebug bool }
	EnableNetworkIsolation    bool
	EnableManagedSpotTraining bool
	Tags                      []tag
}

type tag struct{ Key, Value string }

// Job is a training job.
type Job struct {
	Request
	raw    json.RawMessage
	made   time.Time
	status string
	second string
	moves  []move
	reason string
	tags   map[string]string

	trainStart, trainEnd time.Time
	warm                 bool          // its machines stay for another
	pool                 string        // what became of them
	kept                 time.Duration // and for how long they stayed

	procs   []*exec.Cmd
	stop    chan struct{} // closed when it is to stop
	stopped bool
	again   chan struct{} // its spot machines are taken
	why     string        // the secondary status that it is to end with
}

type move struct {
	status, message string
	at, end         time.Time
}

var nameForm = regexp.MustCompile(`^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$`)

// check is what the service itself looks at before it takes a job.
func (f *Fake) check(in *Request) *Error {
	bad := func(format string, args ...any) *Error {
		return &Error{400, "ValidationException", fmt.Sprintf(format, args...)}
	}
	switch {
	case !nameForm.MatchString(in.TrainingJobName):
		return bad("1 validation error detected: Value '%s' at 'trainingJobName' failed to satisfy constraint", in.TrainingJobName)
	case f.jobs[in.TrainingJobName] != nil:
		return &Error{400, "ResourceInUse", "Training job names must be unique within an AWS account and region, and a training job with this name already exists"}
	case !strings.HasPrefix(in.RoleArn, "arn:aws:iam::"+Account+":role/"):
		return bad("Could not assume role %s.", in.RoleArn)
	case in.StoppingCondition.MaxRuntimeInSeconds <= 0:
		return bad("no time limit") // the real one has a default; whoever tests here always sets it
	case in.EnableManagedSpotTraining && in.StoppingCondition.MaxWaitTimeInSeconds < in.StoppingCondition.MaxRuntimeInSeconds:
		return bad("Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds")
	case !in.EnableManagedSpotTraining && in.StoppingCondition.MaxWaitTimeInSeconds > 0:
		return bad("MaxWaitTimeInSeconds can only be set for managed spot training")
	case in.ResourceConfig.InstanceCount < 1 || !strings.HasPrefix(in.ResourceConfig.InstanceType, "ml.") || in.ResourceConfig.VolumeSizeInGB < 1:
		return bad("1 validation error detected at 'resourceConfig'")
	case in.AlgorithmSpecification.TrainingImage == "" || !strings.HasPrefix(in.OutputDataConfig.S3OutputPath, "s3://"):
		return bad("an image and an output path are required")
	}
	if used, more := f.used(in.ResourceConfig.InstanceType), in.ResourceConfig.InstanceCount; used+more > f.Quota && f.pool(in) == nil {
		return &Error{400, "ResourceLimitExceeded", fmt.Sprintf("The account-level service limit '%s for training job usage' is %d Instances, with current utilization of %d Instances and a request delta of %d Instances. "+
			"Please use AWS Service Quotas to request an increase for this quota.", in.ResourceConfig.InstanceType, f.Quota, used, more)}
	}
	return nil
}

// used is how many machines of a type there are, those of warm pools with them.
func (f *Fake) used(instance string) (n int) {
	for _, j := range f.jobs {
		if j.ResourceConfig.InstanceType == instance && (j.live() || j.warm) {
			n += j.ResourceConfig.InstanceCount
		}
	}
	return n
}

func (j *Job) live() bool { return j.status == "InProgress" || j.status == "Stopping" }

// pool is the job whose machines stay for one like this; nil: there is none.
func (f *Fake) pool(in *Request) *Job {
	for _, name := range f.order {
		j := f.jobs[name]
		if has, asks := j.ResourceConfig, in.ResourceConfig; j.warm && asks.KeepAlivePeriodInSeconds > 0 && has.InstanceType == asks.InstanceType && has.InstanceCount == asks.InstanceCount {
			return j
		}
	}
	return nil
}

// cool ends a warm pool, by the word for how.
func (j *Job) cool(how string) {
	j.warm, j.pool, j.kept = false, how, time.Since(j.trainEnd)
}

func (f *Fake) create(body []byte) (any, *Error) {
	in, e := read[Request](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.check(&in); e != nil {
		return nil, e
	}
	j := &Job{Request: in, raw: body, made: time.Now(), status: "InProgress", tags: map[string]string{}, stop: make(chan struct{}), again: make(chan struct{}, 1)}
	for _, t := range in.Tags {
		j.tags[t.Key] = t.Value
	}
	if pool := f.pool(&in); pool != nil {
		pool.cool("Reused")
	}
	j.to("Starting", "Starting the training job")
	f.jobs[in.TrainingJobName] = j
	f.order = append(f.order, in.TrainingJobName)
	f.most = max(f.most, f.used(in.ResourceConfig.InstanceType))
	f.runs.Go(func() { f.run(j) })
	return map[string]string{"TrainingJobArn": j.arn(f)}, nil
}

func (j *Job) arn(f *Fake) string {
	return "arn:aws:sagemaker:" + f.Region + ":" + Account + ":training-job/" + j.TrainingJobName
}

// to is the next secondary status.
func (j *Job) to(status, message string) {
	now := time.Now()
	if n := len(j.moves); n > 0 {
		j.moves[n-1].end = now
	}
	j.second = status
	j.moves = append(j.moves, move{status: status, message: message, at: now})
}

// Jobs are the names of all jobs that were made, in order.
func (f *Fake) Jobs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.order...)
}

// Running are those that have not ended, or whose machines are kept.
func (f *Fake) Running() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range f.order {
		if j := f.jobs[name]; j.live() || j.warm {
			names = append(names, name)
		}
	}
	return names
}

// Status is that of a job.
func (f *Fake) Status(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.jobs[name]; j != nil {
		return j.status
	}
	return ""
}

func (f *Fake) named(body []byte) (*Job, *Error) {
	in, e := read[struct{ TrainingJobName string }](body)
	if e != nil {
		return nil, e
	}
	j := f.jobs[in.TrainingJobName]
	if j == nil {
		return nil, &Error{400, "ValidationException", "Requested resource not found."}
	}
	return j, nil
}

func (f *Fake) describe(body []byte) (any, *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, e := f.named(body)
	if e != nil {
		return nil, e
	}
	out := map[string]any{}
	_ = json.Unmarshal(j.raw, &out)
	delete(out, "Tags")
	var moves []any
	for _, m := range j.moves {
		one := map[string]any{"Status": m.status, "StatusMessage": m.message, "StartTime": epoch(m.at)}
		if !m.end.IsZero() {
			one["EndTime"] = epoch(m.end)
		}
		moves = append(moves, one)
	}
	for key, value := range map[string]any{"TrainingJobArn": j.arn(f), "TrainingJobStatus": j.status, "SecondaryStatus": j.second, "CreationTime": epoch(j.made),
		"TrainingStartTime": epoch(j.trainStart), "TrainingEndTime": epoch(j.trainEnd), "SecondaryStatusTransitions": moves,
		"ModelArtifacts": map[string]string{"S3ModelArtifacts": j.OutputDataConfig.S3OutputPath + "/" + j.TrainingJobName + "/output/model.tar.gz"}} {
		if value != nil {
			out[key] = value
		}
	}
	if j.reason != "" {
		out["FailureReason"] = j.reason
	}
	if !j.trainEnd.IsZero() && !j.trainStart.IsZero() {
		out["TrainingTimeInSeconds"], out["BillableTimeInSeconds"] = j.trained(), j.billable()
	}
	if j.ResourceConfig.KeepAlivePeriodInSeconds > 0 && j.status == "Completed" {
		out["WarmPoolStatus"] = map[string]any{"Status": "Available"}
		if !j.warm {
			out["WarmPoolStatus"] = map[string]any{"Status": j.pool, "ResourceRetainedBillableTimeInSeconds": j.retained()}
		}
	}
	return out, nil
}

func (f *Fake) stopJob(body []byte) (any, *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, e := f.named(body)
	if e != nil {
		return nil, e
	}
	if j.status != "InProgress" {
		return nil, &Error{400, "ValidationException", "The request was rejected because the training job is in status " + j.status + "."}
	}
	j.halt("Stopped")
	return map[string]any{}, nil
}

// halt makes a job end, with a secondary status.
func (j *Job) halt(why string) {
	if j.stopped {
		return
	}
	j.stopped, j.why, j.status = true, why, "Stopping"
	j.to("Stopping", "Stopping the training job")
	close(j.stop)
}

// StopElsewhere stops a job as somebody in the console does.
func (f *Fake) StopElsewhere(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[name].halt("Stopped")
}

// Interrupt takes the spot machines of a job back.
func (f *Fake) Interrupt(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.jobs[name].again <- struct{}{}:
	default:
	}
}

func (f *Fake) update(body []byte) (any, *Error) {
	in, e := read[struct {
		ResourceConfig struct{ KeepAlivePeriodInSeconds *int }
	}](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j, e := f.named(body)
	if e != nil {
		return nil, e
	}
	if k := in.ResourceConfig.KeepAlivePeriodInSeconds; k != nil && *k == 0 {
		j.cool("Terminated")
	}
	return map[string]string{"TrainingJobArn": j.arn(f)}, nil
}

func (f *Fake) ofArn(arn string) (*Job, *Error) {
	j := f.jobs[arn[strings.LastIndex(arn, "/")+1:]]
	if j == nil {
		return nil, &Error{400, "ValidationException", "Requested resource not found."}
	}
	return j, nil
}

var tagForm = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}$`)

func (f *Fake) addTags(body []byte) (any, *Error) {
	in, e := read[struct {
		ResourceArn string
		Tags        []tag
	}](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j, e := f.ofArn(in.ResourceArn)
	if e != nil {
		return nil, e
	}
	for _, t := range in.Tags {
		if !tagForm.MatchString(t.Value) {
			return nil, &Error{400, "ValidationException", "Value '" + t.Value + "' at 'tags' failed to satisfy constraint"}
		}
		j.tags[t.Key] = t.Value
	}
	return map[string]any{"Tags": in.Tags}, nil
}

func (f *Fake) listTags(body []byte) (any, *Error) {
	in, e := read[struct{ ResourceArn string }](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j, e := f.ofArn(in.ResourceArn)
	if e != nil {
		return nil, e
	}
	all := []tag{}
	for key, value := range j.tags {
		all = append(all, tag{key, value})
	}
	return map[string]any{"Tags": all}, nil
}

// kill ends what runs, by force.
func (j *Job) kill() {
	for _, c := range j.procs {
		if c.Process != nil {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		}
	}
	if !j.stopped {
		j.stopped, j.why = true, "Stopped"
		close(j.stop)
	}
}

// Most is how many machines of a type there were at once.
func (f *Fake) Most() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

// Billed is for how many seconds each machine of a job is paid, by now.
func (f *Fake) Billed(name string) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[name]
	if j.trainEnd.IsZero() {
		return 0
	}
	all := j.billable()
	if j.pool != "" {
		all += j.retained()
	}
	return float64(all)
}

func (j *Job) trained() int { return int(j.trainEnd.Sub(j.trainStart).Seconds()) + 1 }

func (j *Job) billable() int {
	if j.EnableManagedSpotTraining {
		return (j.trained()*3 + 9) / 10
	}
	return j.trained()
}

func (j *Job) retained() int { return int(j.kept.Seconds()) + 1 }
