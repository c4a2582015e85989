//go:build unix

package fakesagemaker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopGrace is what a container has after SIGTERM.
const stopGrace = 3 * time.Second

// run is the life of a job.
func (f *Fake) run(j *Job) {
	deadline := time.NewTimer(time.Duration(j.StoppingCondition.MaxRuntimeInSeconds) * time.Second)
	defer deadline.Stop()
	for {
		for _, s := range [][2]string{{"Pending", "Preparing the instances for training"}, {"LaunchingMLInstances", ""}, {"Downloading", "Downloading input data"}, {"DownloadingTrainingImage", "Downloading the training image"}} {
			if !f.rest(j, s[0], s[1]) {
				f.finish(j, "Stopped", j.why, "")
				return
			}
			if f.NeverBegins != "" && s[0] == "LaunchingMLInstances" {
				f.finish(j, "Failed", "Failed", f.NeverBegins)
				return
			}
		}
		code, said, what := f.train(j, deadline.C)
		switch what {
		case "again":
			f.saveCheckpoints(j)
			f.set(func() { j.to("Interrupted", "Training job interrupted") })
			time.Sleep(f.Pace)
			f.set(func() { j.to("Starting", "Preparing the instances for training") })
			continue
		case "stopped":
			f.finish(j, "Stopped", j.why, "")
		default:
			if code == 0 {
				f.finish(j, "Completed", "Completed", "")
			} else {
				f.finish(j, "Failed", "Failed", fmt.Sprintf("AlgorithmError: %s, exit code: %d", said, code))
			}
		}
		return
	}
}

func (f *Fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// rest is a state that lasts for a while; false: the job is to stop.
func (f *Fake) rest(j *Job, status, message string) bool {
	f.mu.Lock()
	stopped := j.stopped
	if !stopped {
		j.to(status, message)
	}
	f.mu.Unlock()
	if stopped {
		return false
	}
	select {
	case <-j.stop:
		return false
	case <-time.After(f.Pace):
		return true
	}
}

func (f *Fake) finish(j *Job, status, second, reason string) {
	f.set(func() {
		if j.trainStart.IsZero() {
			j.trainStart = j.made
		}
		j.trainEnd = time.Now()
		j.to("Uploading", "Uploading generated training model")
	})
	f.upload(j)
	time.Sleep(f.Pace)
	f.set(func() {
		j.status, j.reason = status, reason
		j.warm = status == "Completed" && j.ResourceConfig.KeepAlivePeriodInSeconds > 0
		j.to(second, "")
	})
}

func (f *Fake) host(n int) string {
	if f.Hosts != nil {
		return f.Hosts(n)
	}
	return fmt.Sprintf("algo-%d", n+1)
}

func (f *Fake) base(j *Job, n int) string {
	return filepath.Join(f.dir, j.TrainingJobName, fmt.Sprintf("algo-%d", n+1))
}

// end is that of the container of a host.
type end struct{ host, code int }

// train runs the containers until all have ended, one has failed, or they are ended.
func (f *Fake) train(j *Job, deadline <-chan time.Time) (code int, said, what string) {
	var procs []*exec.Cmd
	f.mu.Lock()
	for n := range j.ResourceConfig.InstanceCount {
		c, err := f.container(j, n)
		if err != nil {
			f.mu.Unlock()
			return 1, err.Error(), ""
		}
		procs = append(procs, c)
	}
	j.to("Training", "Training image download completed. Training in progress.")
	if j.trainStart.IsZero() {
		j.trainStart = time.Now()
	}
	j.procs = nil
	f.mu.Unlock()
	ends, stamp := make(chan end, len(procs)), time.Now().UnixMilli()
	for n, c := range procs {
		if err := f.begin(j, n, c, fmt.Sprintf("%s/algo-%d-%d", j.TrainingJobName, n+1, stamp), ends); err != nil {
			return 1, err.Error(), ""
		}
	}
	return f.await(j, procs, ends, deadline)
}

// begin starts the container of a host, whose output goes to a stream of its log.
func (f *Fake) begin(j *Job, n int, c *exec.Cmd, stream string, ends chan<- end) (err error) {
	out, in := io.Pipe()
	c.Stdout, c.Stderr = in, in
	f.set(func() { // who kills them finds each whole
		if err = c.Start(); err == nil {
			j.procs = append(j.procs, c)
		}
	})
	if err != nil {
		return err
	}
	read := make(chan struct{})
	go func() { f.collect(stream, out); close(read) }()
	go func() {
		err := c.Wait()
		_ = in.Close()
		<-read
		code := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			if code = exit.ExitCode(); code < 0 {
				code = 137
			}
		}
		ends <- end{n, code}
	}()
	return nil
}

// saveEvery is how often checkpoints are copied to S3 while a job runs.
const saveEvery = time.Second

// await waits for the ends of all containers, and ends them when one has failed or they
// are to stop.
func (f *Fake) await(j *Job, procs []*exec.Cmd, ends <-chan end, deadline <-chan time.Time) (code int, said, what string) {
	signal := func(s syscall.Signal) {
		for _, c := range procs {
			_ = syscall.Kill(-c.Process.Pid, s)
		}
	}
	var force <-chan time.Time
	left, stop := len(procs), j.stop
	save := time.NewTicker(saveEvery)
	defer save.Stop()
	for left > 0 {
		select {
		case <-save.C:
			f.saveCheckpoints(j)
		case e := <-ends:
			if left--; e.code != 0 && code == 0 && what == "" {
				code = e.code
				text, _ := os.ReadFile(filepath.Join(f.base(j, e.host), "output", "failure"))
				said = string(text)
				if force == nil {
					signal(syscall.SIGTERM)
					force = time.After(stopGrace)
				}
			}
		case <-stop:
			stop, what = nil, "stopped"
			signal(syscall.SIGTERM)
			force = time.After(stopGrace)
		case <-deadline:
			f.set(func() { j.halt("MaxRuntimeExceeded") })
		case <-j.again:
			what = "again"
			signal(syscall.SIGKILL)
		case <-force:
			signal(syscall.SIGKILL)
		}
	}
	return code, said, what
}

// container is the process of one host, with the directories of a container.
func (f *Fake) container(j *Job, n int) (*exec.Cmd, error) {
	base := f.base(j, n)
	_ = os.RemoveAll(base)
	hosts := []string{}
	for i := range j.ResourceConfig.InstanceCount {
		hosts = append(hosts, f.host(i))
	}
	inputs := map[string]any{}
	for _, c := range j.InputDataConfig {
		inputs[c.ChannelName] = map[string]string{"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}
	}
	for name, what := range map[string]any{"resourceconfig": map[string]any{"current_host": f.host(n), "hosts": hosts, "network_interface_name": "lo"},
		"hyperparameters": j.HyperParameters, "inputdataconfig": inputs} {
		text, err := json.Marshal(what)
		if err != nil {
			return nil, err
		}
		if err := write(filepath.Join(base, "input/config", name+".json"), text); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{"model", "output/data", "code", "input/data"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			return nil, err
		}
	}
	if err := f.fetch(j, base, n); err != nil {
		return nil, err
	}
	argv := append(slices.Clone(j.AlgorithmSpecification.ContainerEntrypoint), j.AlgorithmSpecification.ContainerArguments...)
	if len(argv) == 0 {
		argv = f.Train
	}
	if len(argv) == 0 {
		return nil, errors.New("the image has no command here")
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = base
	c.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DLWB_") }),
		append(f.Env(), "SAGEMAKER_BASE_DIR="+base, "TRAINING_JOB_NAME="+j.TrainingJobName, "AWS_ENDPOINT_URL_S3="+f.URL)...)
	c.Env = slices.DeleteFunc(c.Env, func(s string) bool { return s == "AWS_PROFILE=" }) // Python's SDK looks for a profile of no name
	if len(f.Train) > 0 {
		c.Env = append(c.Env, "PATH="+filepath.Dir(f.Train[0])+":"+os.Getenv("PATH"))
	}
	for key, value := range j.Environment {
		c.Env = append(c.Env, key+"="+value)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c, nil
}

// fetch copies the channels and the checkpoints to a host.
func (f *Fake) fetch(j *Job, base string, n int) error {
	for _, c := range j.InputDataConfig {
		s := c.DataSource.S3DataSource
		if s == nil {
			continue
		}
		var mine int
		bucket, prefix := place(s.S3Uri)
		keys := f.keys(bucket, prefix)
		if len(keys) == 0 {
			return fmt.Errorf("no S3 objects found under S3 URL %q given in input data source", s.S3Uri)
		}
		for i, key := range keys {
			if s.S3DataDistributionType == "ShardedByS3Key" && i%j.ResourceConfig.InstanceCount != n {
				continue
			}
			mine++
			name := strings.TrimPrefix(strings.TrimPrefix(key, prefix), "/")
			if name == "" {
				name = filepath.Base(key)
			}
			if err := write(filepath.Join(base, "input/data", c.ChannelName, name), f.buckets[bucket].objects[key]); err != nil {
				return err
			}
		}
	}
	if j.CheckpointConfig != nil {
		bucket, prefix := place(j.CheckpointConfig.S3Uri)
		for _, key := range f.keys(bucket, prefix) {
			if err := write(filepath.Join(base, "checkpoints", strings.TrimPrefix(strings.TrimPrefix(key, prefix), "/")), f.buckets[bucket].objects[key]); err != nil {
				return err
			}
		}
		return os.MkdirAll(filepath.Join(base, "checkpoints"), 0o755)
	}
	return nil
}

func place(uri string) (bucket, key string) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
	return bucket, key
}

func write(path string, text []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
}

// upload brings what the hosts leave to S3, all in one archive, as the service does in
// the end.
func (f *Fake) upload(j *Job) {
	f.saveCheckpoints(j)
	f.mu.Lock()
	defer f.mu.Unlock()
	bucket, prefix := place(j.OutputDataConfig.S3OutputPath)
	b := f.buckets[bucket]
	if b == nil {
		return
	}
	for name, dir := range map[string]string{"model.tar.gz": "model", "output.tar.gz": "output/data"} {
		var dirs []string
		for n := range j.ResourceConfig.InstanceCount {
			dirs = append(dirs, filepath.Join(f.base(j, n), dir))
		}
		if packed := packed(dirs...); packed != nil {
			b.put(strings.TrimSuffix(prefix, "/")+"/"+j.TrainingJobName+"/output/"+name, packed)
		}
	}
}

// saveCheckpoints copies the checkpoints to S3.
func (f *Fake) saveCheckpoints(j *Job) {
	if j.CheckpointConfig == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	base := f.base(j, 0)
	bucket, prefix := place(j.CheckpointConfig.S3Uri)
	_ = filepath.WalkDir(filepath.Join(base, "checkpoints"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || f.buckets[bucket] == nil {
			return err
		}
		rel, _ := filepath.Rel(filepath.Join(base, "checkpoints"), path)
		text, err := os.ReadFile(path)
		if err == nil {
			f.buckets[bucket].sync(strings.TrimSuffix(prefix, "/")+"/"+filepath.ToSlash(rel), text)
		}
		return err
	})
}

// packed are directories as one tar.gz; nil: there is nothing in them.
func packed(dirs ...string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	files := 0
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			if err == nil {
				err = w.WriteHeader(&tar.Header{Name: filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(text)), ModTime: time.Now()})
			}
			if err == nil {
				_, err = w.Write(text)
				files++
			}
			return err
		})
	}
	if files == 0 || errors.Join(w.Close(), z.Close()) != nil {
		return nil
	}
	return b.Bytes()
}
