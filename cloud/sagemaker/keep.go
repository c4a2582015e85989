package sagemaker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

var _ cloud.Keeper = (*Provider)(nil)

const (
	// outputLimit bounds the wait for a job to end and for its output to be in S3.
	outputLimit = 10 * time.Minute
	// outputTries is how often an object is read that breaks off.
	outputTries = 3
)

// Bring brings the model and the output of a job from S3: the model into model/, what
// dlwb's launcher has put aside where it would be elsewhere, all else into output/.
func (p *Provider) Bring(ctx context.Context, _ cloud.Life, text string, into *os.Root) (left []string, err error) {
	r, err := readRef(text)
	if err != nil {
		return nil, err
	}
	d, err := p.enter(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := d.awaitOutput(ctx, r.Name); err != nil {
		return nil, err
	}
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(r.outputOf(), "s3://"), "/")
	room := mostOutput
	pages := s3.NewListObjectsV2Paginator(d.bucket(), &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return left, d.explainS3(bucket, err)
		}
		for _, o := range page.Contents {
			skipped, err := d.bring(ctx, bucket, aws.ToString(o.Key), prefix, into, &room)
			if left = append(left, skipped...); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}

// awaitOutput waits until a job has ended: its output is in S3 then.
func (d *door) awaitOutput(ctx context.Context, name string) error {
	for until, wait := time.Now().Add(outputLimit), firstLook; ; wait = min(wait*2, lookEvery) {
		l, err := d.see(ctx, name)
		switch {
		case err != nil:
			return err
		case l == nil || terminal(l.job):
			return nil // of one that SageMaker has forgotten the output is there
		case time.Now().After(until):
			return &plainError{fmt.Sprintf("job %s has not ended within %s: SageMaker says %s (%s)", name, units.Duration(outputLimit), l.job.TrainingJobStatus, l.job.SecondaryStatus), ""}
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// mostOutput bounds all that comes beside the archives, whose own bound is in pack.
var mostOutput = int64(100 << 30)

// bring brings one object of the output. room is how many bytes may come that are in
// no archive.
func (d *door) bring(ctx context.Context, bucket, key, prefix string, into *os.Root, room *int64) (left []string, err error) {
	name := strings.TrimPrefix(key, prefix)
	if name == "" || strings.HasSuffix(name, "/") {
		return nil, nil // what consoles make to show a directory
	}
	if !fs.ValidPath(name) || strings.ContainsRune(name, '\\') {
		return []string{key + ": its path leaves the directory"}, nil
	}
	for try := 1; ; try++ {
		left, err = d.bringOnce(ctx, bucket, key, name, into, room)
		if err == nil || ctx.Err() != nil || try == outputTries || errors.Is(err, pack.ErrTooMuch) || absent(err) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("bring s3://%s/%s: %w", bucket, key, d.explainS3(bucket, err))
	}
	return left, err
}

// silentLimit is for how long nothing of an object may come.
var silentLimit = time.Minute

func (d *door) bringOnce(ctx context.Context, bucket, key, name string, into *os.Root, room *int64) (left []string, err error) {
	ctx, patience := waits.Silent(ctx, silentLimit)
	defer func() { err = patience.End(err) }()
	out, err := d.bucket().GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	body := patience.Reader(out.Body)
	switch name {
	case "model.tar.gz":
		return pack.Unpack(body, into, func(name string) string { return path.Join("model", name) })
	case "output.tar.gz":
		return pack.Unpack(body, into, placeOf)
	}
	err = whole(body, path.Join("output", name), into, room)
	if errors.Is(err, pack.ErrTooMuch) {
		return []string{key + ": " + err.Error()}, nil // the others may come
	}
	return nil, err
}

// keptDir is where the launcher puts results aside, below /opt/ml/output/data.
const keptDir = "dlwb/"

// placeOf is where a file of the output belongs here: results below their own names,
// and what a host had in DLWB_RESULTS below nodeN.
func placeOf(name string) string {
	rest, kept := strings.CutPrefix(name, keptDir)
	switch code, is := strings.CutPrefix(rest, "code/"); {
	case kept && is:
		return code
	case kept && strings.HasPrefix(rest, "node"):
		return rest
	}
	return path.Join("output", name)
}

// whole writes a file as it comes, if there is room for it. Half of one does not stay.
func whole(from io.Reader, name string, into *os.Root, room *int64) error {
	if err := into.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := into.Create(name)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, *room+1))
	if err == nil && n > *room {
		err = fmt.Errorf("%w: with it there are more than %s", pack.ErrTooMuch, units.Bytes(mostOutput))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, into.Remove(name))
	}
	*room -= n
	return nil
}
