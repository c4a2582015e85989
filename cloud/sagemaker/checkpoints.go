package sagemaker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dlwb/dlwb/cloud"
)

var _ cloud.CheckpointStore = (*Provider)(nil)

// mostCheckpoints bounds the objects of one look: it is repeated, and S3 hands a
// thousand over at a time.
const mostCheckpoints = 10_000

// Checkpoints lists what S3 has of those that a job has written: SageMaker copies them
// from the containers while these run. What was there before the job is none of its own.
func (p *Provider) Checkpoints(ctx context.Context, _ cloud.Life, text string) ([]cloud.Checkpoint, error) {
	r, err := readRef(text)
	if err != nil {
		return nil, err
	}
	d, err := p.enter(ctx, r)
	if err != nil {
		return nil, err
	}
	l, err := d.see(ctx, r.Name)
	if err != nil || l == nil || l.job.CheckpointConfig == nil {
		return nil, err
	}
	place := strings.TrimSuffix(aws.ToString(l.job.CheckpointConfig.S3Uri), "/") + "/"
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(place, "s3://"), "/")
	made, byName, seen := aws.ToTime(l.job.CreationTime), map[string]cloud.Checkpoint{}, 0
	pages := s3.NewListObjectsV2Paginator(d.bucket(), &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, d.explainS3(bucket, err)
		}
		if seen += len(page.Contents); seen > mostCheckpoints {
			return nil, &plainError{fmt.Sprintf("there are more than %d objects in %s", mostCheckpoints, place), ""}
		}
		for _, o := range page.Contents {
			name, below, inside := strings.Cut(strings.TrimPrefix(aws.ToString(o.Key), prefix), "/")
			written := aws.ToTime(o.LastModified)
			if name == "" || inside && below == "" || written.Before(made) {
				continue // what consoles make to show a directory, and what was there
			}
			c := byName[name]
			c.Name, c.Place = name, place+name
			c.Files, c.Bytes = c.Files+1, c.Bytes+aws.ToInt64(o.Size)
			if written.After(c.Written) {
				c.Written = written
			}
			byName[name] = c
		}
	}
	return slices.Collect(maps.Values(byName)), nil
}
