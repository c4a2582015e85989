package sagemaker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
)

// group is where SageMaker puts what training jobs print.
const group = "/aws/sagemaker/TrainingJobs"

// pageMost is how many events are asked for at once.
const pageMost = 2000

// lateLimit is how long after the end of a job its last lines may take to come to
// CloudWatch, where no line says that it is the last.
const lateLimit = 20 * time.Second

// sinkError is an error of whoever takes a log: trying again does not mend it.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// streams are those of a host, in the order in which they began: a job that is
// started again has another. There is none before the first line.
func (d *door) streams(ctx context.Context, name string, host int) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	type stream struct {
		name string
		made int64
	}
	var all []stream
	pages := cloudwatchlogs.NewDescribeLogStreamsPaginator(d.logs, &cloudwatchlogs.DescribeLogStreamsInput{
		LogGroupName: aws.String(group), LogStreamNamePrefix: aws.String(fmt.Sprintf("%s/algo-%d-", name, host+1))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if code, _ := awsapi.CodeOf(err); code == "ResourceNotFoundException" {
			return nil, nil // the account's first job has not printed yet
		}
		if err != nil {
			return nil, d.explain(err)
		}
		for _, s := range page.LogStreams {
			all = append(all, stream{aws.ToString(s.LogStreamName), aws.ToInt64(s.CreationTime)})
		}
	}
	slices.SortStableFunc(all, func(a, b stream) int {
		if a.made != b.made {
			return int(max(min(a.made-b.made, 1), -1))
		}
		return strings.Compare(a.name, b.name)
	})
	for _, s := range all {
		names = append(names, s.name)
	}
	return names, nil
}

// page is what one question to CloudWatch has brought.
type page struct {
	events []logtypes.OutputLogEvent
	next   cursor
	tail   bool // nothing is behind it now
}

// page asks for what is behind a cursor. A token that is no longer good is made up
// for by the time of the last event.
func (d *door) page(ctx context.Context, at cursor) (page, error) {
	ask, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String(group), LogStreamName: &at.Stream, StartFromHead: aws.Bool(true), Limit: aws.Int32(pageMost)}
	switch {
	case at.Token != "":
		in.NextToken = &at.Token
	case at.Events > 0:
		in.StartTime, at.Skip = aws.Int64(at.At), at.Events
	}
	out, err := d.logs.GetLogEvents(ask, in)
	if code, says := awsapi.CodeOf(err); code == "InvalidParameterException" && at.Token != "" && strings.Contains(strings.ToLower(says), "token") {
		at.Token = ""
		return d.page(ctx, at)
	}
	if code, _ := awsapi.CodeOf(err); code == "ResourceNotFoundException" {
		return page{next: at, tail: true}, nil
	}
	if err != nil {
		return page{}, d.explain(err)
	}
	p := page{next: at, events: out.Events}
	for p.next.Skip > 0 && len(p.events) > 0 {
		if aws.ToInt64(p.events[0].Timestamp) != at.At {
			p.next.Skip = 0
			break
		}
		p.events, p.next.Skip = p.events[1:], p.next.Skip-1
	}
	p.tail = len(out.Events) == 0 && (aws.ToString(out.NextForwardToken) == at.Token || out.NextForwardToken == nil)
	p.next.Token = aws.ToString(out.NextForwardToken)
	for _, e := range p.events {
		p.next.read(aws.ToInt64(e.Timestamp))
	}
	return p, nil
}

// FollowLog reads the streams of the host one after the other, page by page.
func (r *replica) FollowLog(ctx context.Context, log string, from job.Cursor, sink func(job.Chunk) error) error {
	at, err := readCursor(from)
	if err != nil {
		return err
	}
	d, err := r.door(ctx)
	if err != nil {
		return err
	}
	f := &follower{replica: r, door: d, pick: r.pick(log), at: at, last: from, sink: sink}
	for wait := firstLook; ; {
		moved, done, err := f.once(ctx)
		var failed sinkError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &failed):
			return failed.error
		case err != nil && permanent(err):
			return err
		case done:
			return nil
		}
		if moved {
			wait = firstLook
			continue
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
		wait = min(wait*2, 2*time.Second)
	}
}

// pick tells which lines of a host are of a log. With an estimator its ranks print
// into one log: it is that of the first.
func (r *replica) pick(log string) func([]byte) ([]byte, bool) {
	if !r.ref.Tagged && len(r.mine()) > 1 && log != fmt.Sprintf("rank-%d.log", r.mine()[0]) {
		return func([]byte) ([]byte, bool) { return nil, false }
	}
	return pack.Lines(log, r.ref.Tagged)
}

// follower reads one log.
type follower struct {
	*replica
	door *door
	pick func([]byte) ([]byte, bool)
	at   cursor
	last job.Cursor // as it was handed over
	sink func(job.Chunk) error
	end  bool // the last line of the host has come
	told bool // it is there, and may be before the cursor
}

// once asks for one page; moved: there may be more behind it; done: nothing more
// comes, ever.
func (f *follower) once(ctx context.Context) (moved, done bool, err error) {
	if f.at.Stream == "" {
		names, err := f.door.streams(ctx, f.ref.Name, f.number)
		if err != nil || len(names) == 0 {
			return false, err == nil && f.quiet(ctx), err
		}
		f.at = cursor{Stream: names[0]}
	}
	p, err := f.door.page(ctx, f.at)
	if err != nil {
		return false, false, err
	}
	if err := f.pass(p); err != nil {
		return false, false, err
	}
	if !p.tail {
		return true, false, nil
	}
	return f.beyond(ctx)
}

// beyond goes on to the next stream, where there is one.
func (f *follower) beyond(ctx context.Context) (moved, done bool, err error) {
	names, err := f.door.streams(ctx, f.ref.Name, f.number)
	if err != nil {
		return false, false, err
	}
	if i := slices.Index(names, f.at.Stream); i >= 0 && i+1 < len(names) {
		f.at, f.end = cursor{Stream: names[i+1]}, false
		return true, false, nil
	}
	return false, f.quiet(ctx), nil
}

// quiet reports whether nothing more comes: the job is over, and its last line has
// come, or had time to.
func (f *follower) quiet(ctx context.Context) bool {
	l, err := f.door.see(ctx, f.ref.Name)
	if err != nil || l == nil || !terminal(l.job) {
		return false
	}
	if f.end || f.told || time.Since(l.over) > lateLimit {
		return true
	}
	// Who goes on from a cursor may have read the last line before. What came ahead
	// of it may be new since the last look: that is read once more.
	f.told = f.saidAll(ctx, f.door)
	return false
}

// saidAll reports whether the last line of the host is there.
func (r *replica) saidAll(ctx context.Context, d *door) bool {
	ends, err := r.endsOf(ctx, d)
	return r.ref.Told && err == nil && ends != nil
}

// pass hands over what of a page is of the log. The line by which the host tells of
// its ranks is not.
func (f *follower) pass(p page) error {
	var text []byte
	for _, e := range p.events {
		line := strings.TrimSuffix(aws.ToString(e.Message), "\n")
		if _, is := pack.EndsFrom(line); is && f.ref.Told {
			f.end = true
			continue
		}
		if mine, is := f.pick([]byte(line + "\n")); is {
			text = append(text, mine...)
		}
	}
	f.at = p.next
	if len(text) == 0 {
		return nil
	}
	next := p.next.job()
	if err := f.sink(job.Chunk{From: f.last, Next: next, Data: text}); err != nil {
		return sinkError{err}
	}
	f.last = next
	return nil
}

// HasAll looks behind the cursors of a host whose job is over.
func (r *replica) HasAll(ctx context.Context, logs map[string]job.Cursor) (bool, error) {
	d, err := r.door(ctx)
	if err != nil {
		return false, err
	}
	for log, from := range logs {
		at, err := readCursor(from)
		if err != nil {
			return false, err
		}
		more := errors.New("there is more")
		f := &follower{replica: r, door: d, pick: r.pick(log), at: at, told: r.saidAll(ctx, d), sink: func(job.Chunk) error { return more }}
		for moved, done := true, false; !done; {
			if moved, done, err = f.once(ctx); errors.Is(err, more) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			if !moved && !done {
				return false, nil
			}
		}
	}
	return true, nil
}

// endsOf reads how the ranks of the host ended, from the last lines of its last
// stream; nil: it has not told.
func (r *replica) endsOf(ctx context.Context, d *door) (map[int]int, error) {
	names, err := d.streams(ctx, r.ref.Name, r.number)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := d.logs.GetLogEvents(ctx, &cloudwatchlogs.GetLogEventsInput{LogGroupName: aws.String(group), LogStreamName: &names[len(names)-1],
		StartFromHead: aws.Bool(false), Limit: aws.Int32(50)})
	if err != nil {
		return nil, d.explain(err)
	}
	for _, e := range slices.Backward(out.Events) {
		if ends, is := pack.EndsFrom(strings.TrimSuffix(aws.ToString(e.Message), "\n")); is {
			return ends, nil
		}
	}
	return nil, nil
}
