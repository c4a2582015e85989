package sagemaker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"

	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
)

var _ job.Teller = (*replica)(nil)

const (
	// metricSpace is where CloudWatch has the use of the machines of training jobs.
	metricSpace = "/aws/sagemaker/TrainingJobs"
	// metricEvery is how far its values are apart.
	metricEvery = time.Minute
	// metricLate is how old a value may be to be shown as the present: CloudWatch has
	// it some minutes late.
	metricLate = 10 * time.Minute
)

// metricPause is the pause between two questions, each of which costs: there is
// nothing new in between. A test has a shorter one.
var metricPause = metricEvery

// The metrics of a host: percent of all of it, but of each core and each GPU, whose
// percents are summed up.
const (
	metricCPU    = "CPUUtilization"
	metricMemory = "MemoryUtilization"
	metricGPU    = "GPUUtilization"
	metricGPUMem = "GPUMemoryUtilization"
	metricDisk   = "DiskUtilization"
)

var metricNames = []string{metricCPU, metricMemory, metricGPU, metricGPUMem, metricDisk}

// reading is what CloudWatch has of a host for one minute, by metric.
type reading struct {
	at     time.Time
	values map[string]float64
}

// readings asks for what is known of a host since a moment, the oldest first.
func (d *door) readings(ctx context.Context, host string, since time.Time) ([]reading, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	in := &cloudwatch.GetMetricDataInput{StartTime: aws.Time(since), EndTime: aws.Time(time.Now()), ScanBy: cwtypes.ScanByTimestampAscending}
	for i, name := range metricNames {
		in.MetricDataQueries = append(in.MetricDataQueries, cwtypes.MetricDataQuery{Id: aws.String(fmt.Sprintf("m%d", i)), MetricStat: &cwtypes.MetricStat{
			Stat: aws.String("Average"), Period: aws.Int32(int32(metricEvery / time.Second)),
			Metric: &cwtypes.Metric{Namespace: aws.String(metricSpace), MetricName: aws.String(name), Dimensions: []cwtypes.Dimension{{Name: aws.String("Host"), Value: &host}}}}})
	}
	byTime := map[int64]*reading{}
	for pages := cloudwatch.NewGetMetricDataPaginator(d.watch, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, d.explain(err)
		}
		for _, r := range page.MetricDataResults {
			i := slices.IndexFunc(in.MetricDataQueries, func(q cwtypes.MetricDataQuery) bool { return aws.ToString(q.Id) == aws.ToString(r.Id) })
			if i < 0 {
				continue
			}
			for n := range min(len(r.Timestamps), len(r.Values)) {
				at := r.Timestamps[n]
				if byTime[at.Unix()] == nil {
					byTime[at.Unix()] = &reading{at: at, values: map[string]float64{}}
				}
				byTime[at.Unix()].values[metricNames[i]] = r.Values[n]
			}
		}
	}
	var all []reading
	for _, r := range byTime {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b reading) int { return a.at.Compare(b.at) })
	return all, nil
}

// unwatched is why the use of the machines can't be had; empty: it can.
func (d *door) unwatched(ctx context.Context, host string) string {
	if _, err := d.readings(ctx, host, time.Now().Add(-metricLate)); err != nil {
		return "what the machines do is not to be had from CloudWatch: " + err.Error()
	}
	return ""
}

// body is what a host of a job has, as far as it is known.
type body struct {
	cores, gpus int
	gpu         string
	memory      int64 // bytes
	gpuMemory   int64 // of each GPU
	disk        int64
}

// bodyOf looks a type up: in the table, or at EC2. What is not known stays zero, and
// what would be reckoned from it is not shown.
func (d *door) bodyOf(ctx context.Context, j *sagemaker.DescribeTrainingJobOutput) (b body) {
	if j.ResourceConfig == nil {
		return b
	}
	b.disk = int64(aws.ToInt32(j.ResourceConfig.VolumeSizeInGB)) << 30
	name := typeOf(string(j.ResourceConfig.InstanceType))
	if f, known := catalog.FactsOf(name); known {
		b.cores, b.gpus, b.gpu, b.memory, b.gpuMemory = f.VCPUs, f.GPUs, f.GPU, f.Memory, f.GPUMemory
		return b
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := d.api.EC2(d.region).DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{ec2types.InstanceType(name)}})
	if err != nil || len(out.InstanceTypes) == 0 {
		return b
	}
	t := out.InstanceTypes[0]
	if t.VCpuInfo != nil {
		b.cores = int(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
	}
	if t.MemoryInfo != nil {
		b.memory = aws.ToInt64(t.MemoryInfo.SizeInMiB) << 20
	}
	return b
}

// frame writes a reading as a node writes its telemetry. busy are the percents of all
// cores so far: frames count.
func (b body) frame(r reading, uptime time.Duration, busy float64, minutes int) []byte {
	var t strings.Builder
	add := func(format string, args ...any) { _, _ = fmt.Fprintf(&t, format+"\n", args...) }
	add("frame %.0f", uptime.Seconds())
	add("every %.0f", metricEvery.Seconds())
	if b.cores > 0 {
		add("cores %d", b.cores)
		if _, is := r.values[metricCPU]; is {
			add("cpu %.3f %d", busy, 100*minutes)
		}
	}
	share := func(word, metric string, total int64) {
		if v, is := r.values[metric]; is && total > 0 {
			add("%s %.0f %d", word, v/100*float64(total>>10), total>>10)
		}
	}
	share("mem", metricMemory, b.memory)
	share("disk", metricDisk, b.disk)
	switch use, is := r.values[metricGPU]; {
	case is && b.gpus > 0:
		add("smi 0, %s, %.1f, %s, [N/A], [N/A], [N/A]", b.gpuName(), use/float64(b.gpus), b.gpuMem(r))
	case b.gpus > 0:
		add("smierr CloudWatch has nothing of the GPUs yet")
	default:
		add("smierr no GPU")
	}
	return []byte(t.String() + "end\n")
}

// gpuName says of how many GPUs a value is the mean: CloudWatch has no other.
func (b body) gpuName() string {
	name := cmp.Or(strings.ReplaceAll(b.gpu, ",", " "), "GPU")
	if b.gpus == 1 {
		return name
	}
	return fmt.Sprintf("mean of %d × %s", b.gpus, name)
}

func (b body) gpuMem(r reading) string {
	v, is := r.values[metricGPUMem]
	if !is || b.gpuMemory == 0 {
		return "[N/A], [N/A]"
	}
	return fmt.Sprintf("%.0f, %d", v/float64(b.gpus)/100*float64(b.gpuMemory>>20), b.gpuMemory>>20)
}

// Telemetry hands over what CloudWatch has of the host, minute by minute, until the
// job is over. What was before is not told again: it would be taken for the present.
func (r *replica) Telemetry(ctx context.Context, _ *job.Pace, sink func([]byte)) error {
	t := teller{host: fmt.Sprintf("%s/algo-%d", r.ref.Name, r.number+1), sink: sink}
	for {
		over, err := t.look(ctx, r)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && permanent(err):
			return err
		case err != nil:
			slog.Debug("use of a training machine", "host", t.host, "error", err)
		case over:
			return nil
		}
		pause := metricPause
		if t.last.IsZero() {
			pause /= 5 // the job is about to begin, or CloudWatch to hear of it
		}
		if err := waits.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// teller is one host on its way.
type teller struct {
	host string
	sink func([]byte)
	body *body
	seen bool      // the job
	last time.Time // of the reading that was told last
	// busy are the percents of all cores, summed up over so many minutes.
	busy    float64
	minutes int
}

// look tells what is new. over: nothing more comes.
func (t *teller) look(ctx context.Context, r *replica) (over bool, err error) {
	d, err := r.door(ctx)
	if err != nil {
		return false, err
	}
	l, err := d.see(ctx, r.ref.Name)
	switch {
	case err != nil:
		return false, err
	case l == nil:
		return t.seen, nil // one that was just made may not be shown yet; later it is forgotten
	case began(l.job).IsZero():
		t.seen = true
		return terminal(l.job), nil
	}
	t.seen = true
	if t.body == nil {
		b := d.bodyOf(ctx, l.job)
		t.body = &b
	}
	all, err := d.readings(ctx, t.host, time.Now().Add(-metricLate))
	if err != nil {
		return false, err
	}
	if t.last.IsZero() && len(all) > 0 {
		all = all[len(all)-1:]
	}
	for _, one := range all {
		if one.at.After(t.last) {
			t.tell(one, one.at.Sub(began(l.job)))
		}
	}
	return terminal(l.job) && time.Since(l.over) > 2*metricEvery, nil
}

// tell hands a reading over. The first one has a frame before it from which its
// percents are reckoned.
func (t *teller) tell(r reading, uptime time.Duration) {
	uptime = max(uptime, 0) + metricEvery // a minute is told by its beginning
	if t.last.IsZero() {
		t.sink([]byte(fmt.Sprintf("frame %.0f\nevery %.0f\ncores %d\ncpu 0 0\nend\n", (uptime - metricEvery).Seconds(), metricEvery.Seconds(), t.body.cores)))
	}
	if use, is := r.values[metricCPU]; is && t.body.cores > 0 {
		t.busy, t.minutes = t.busy+use/float64(t.body.cores), t.minutes+1
	}
	t.last = r.at
	t.sink(t.body.frame(r, uptime, t.busy, t.minutes))
}
