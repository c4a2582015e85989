// Package objects keeps sets of files in S3. A set counts when its manifest is
// there, which names every file with its size and its SHA-256 and is written last;
// what is loaded is held against it. So nobody loads half of a set, whenever its
// uploader was killed.
package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	parts "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// Bucket is a place in S3: a bucket, and what the keys in it begin with.
type Bucket struct {
	name, prefix string
	s3           *s3.Client
	move         *transfermanager.Client
}

// Parse cuts "s3://bucket/prefix" into the two.
func Parse(address string) (bucket, prefix string, err error) {
	rest, is := strings.CutPrefix(address, "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	if !is || len(bucket) < 3 {
		return "", "", fmt.Errorf("%q is no place in S3: write s3://bucket/prefix", address)
	}
	return bucket, strings.Trim(prefix, "/"), nil
}

// Open finds a bucket and the region that it is in, with the user's own
// credentials. It changes nothing.
func Open(ctx context.Context, address string) (*Bucket, error) {
	name, prefix, err := Parse(address)
	if err != nil {
		return nil, err
	}
	api, err := awsapi.Load(ctx)
	if err != nil {
		return nil, err
	}
	b := &Bucket{name: name, prefix: prefix, s3: api.S3("")}
	_, err = b.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	if region := elsewhere(err); region != "" && region != b.s3.Options().Region {
		b.s3 = api.S3(region)
		_, err = b.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	}
	// Who may only put objects may not ask for the bucket.
	if err != nil && status(err) != 403 {
		return nil, b.explain(err, "HeadBucket")
	}
	b.move = transfermanager.New(b.s3, func(o *transfermanager.Options) {
		o.RequestChecksumCalculation, o.FailTimeout = b.s3.Options().RequestChecksumCalculation, 10*time.Second
		o.DisableChecksumValidation = true      // what is loaded is held against the manifest
		o.GetObjectType = parts.GetObjectRanges // servers of others may not know the parts of an object
	})
	return b, nil
}

// elsewhere is the region that S3 names where a bucket is in another one.
func elsewhere(err error) string {
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) && reply.Response != nil {
		return reply.Response.Header.Get("X-Amz-Bucket-Region")
	}
	return ""
}

func status(err error) int {
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) {
		return reply.HTTPStatusCode()
	}
	return 0
}

// explain says what an error of S3 means.
func (b *Bucket) explain(err error, action string) error {
	if err == nil {
		return nil
	}
	var none *types.NoSuchBucket
	if errors.As(err, &none) || action == "HeadBucket" && status(err) == 404 {
		return &awsapi.Problem{Kind: awsapi.NotFound, Err: err, Cause: "there is no bucket " + b.name, Next: "aws s3 mb s3://" + b.name}
	}
	p := awsapi.Explain(err, awsapi.Call{Action: action, Region: b.s3.Options().Region, ID: "s3://" + b.name})
	if p.Kind == awsapi.NoPermission {
		p = &awsapi.Problem{Kind: p.Kind, Err: err, Cause: "these credentials may not do " + action + " in s3://" + b.name,
			Next: "allow s3:" + permission(action) + " on arn:aws:s3:::" + b.name + "; docs/aws.md has the policy"}
	}
	return p
}

// permission is what IAM calls the right to an action, where it is not its name.
func permission(action string) string {
	switch action {
	case "HeadBucket", "ListObjectsV2":
		return "ListBucket"
	case "HeadObject":
		return "GetObject"
	}
	return action
}

// Address is where something of a bucket is, as people write it.
func (b *Bucket) Address(name string) string { return "s3://" + path.Join(b.name, b.prefix, name) }

func (b *Bucket) key(name string) *string { return aws.String(path.Join(b.prefix, name)) }

// File is one file of a set.
type File struct {
	Path   string `json:"path"` // in the set, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Manifest is what a set has. It is written last.
type Manifest struct {
	Version int               `json:"version"`
	At      time.Time         `json:"at"`
	About   map[string]string `json:"about,omitempty"`
	Files   []File            `json:"files"`
}

// Bytes are those of all files.
func (m Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// ending is what the key of a manifest ends in.
const ending = ".manifest.json"

// mostManifest bounds what is read of one.
const mostManifest = 64 << 20

// Manifest reads that of a set. found is false where there is none: the set is not
// whole, or not there.
func (b *Bucket) Manifest(ctx context.Context, name string) (m Manifest, found bool, err error) {
	out, err := b.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: b.key(name + ending)})
	var none *types.NoSuchKey
	if errors.As(err, &none) || status(err) == 404 {
		return m, false, nil
	}
	if err != nil {
		return m, false, b.explain(err, "GetObject")
	}
	text, err := io.ReadAll(io.LimitReader(out.Body, mostManifest))
	_ = out.Body.Close()
	if err != nil {
		return m, false, fmt.Errorf("read %s: %w", b.Address(name+ending), err)
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Version != 1 {
		return m, false, fmt.Errorf("%s is no manifest that this dlwb can read", b.Address(name+ending))
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) != f.Path {
			return m, false, fmt.Errorf("%s names a file %q, which would lie outside", b.Address(name+ending), f.Path)
		}
	}
	return m, true, nil
}

// finish writes the manifest of a set, which makes it whole.
func (b *Bucket) finish(ctx context.Context, name string, m Manifest) error {
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	_, err = b.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: b.key(name + ending), Body: bytes.NewReader(text), ContentType: aws.String("application/json")})
	return b.explain(err, "PutObject")
}

// Sets are the names of whole sets directly below a name. What their files are called
// says nothing.
func (b *Bucket) Sets(ctx context.Context, below string) (names []string, err error) {
	err = b.directly(ctx, below, func(part string, deeper bool) {
		if set, is := strings.CutSuffix(part, ending); is && !deeper && isName(set) {
			names = append(names, path.Join(below, set))
		}
	})
	return names, err
}

// Dirs are the names directly below a name that have something below them.
func (b *Bucket) Dirs(ctx context.Context, below string) (names []string, err error) {
	err = b.directly(ctx, below, func(part string, deeper bool) {
		if deeper && isName(part) {
			names = append(names, path.Join(below, part))
		}
	})
	return names, err
}

// directly calls with the next part of the keys below a name, and whether more of the
// key comes behind it.
func (b *Bucket) directly(ctx context.Context, below string, call func(part string, deeper bool)) error {
	prefix := *b.key(below) + "/"
	pages := s3.NewListObjectsV2Paginator(b.s3, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix, Delimiter: aws.String("/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return b.explain(err, "ListObjectsV2")
		}
		for _, o := range page.Contents {
			call(strings.TrimPrefix(aws.ToString(o.Key), prefix), false)
		}
		for _, p := range page.CommonPrefixes {
			call(strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), prefix), "/"), true)
		}
	}
	return nil
}

// each calls with what is below a name: with the rest of its key, and the whole key.
func (b *Bucket) each(ctx context.Context, below string, call func(rest, key string)) error {
	prefix := *b.key(below) + "/"
	pages := s3.NewListObjectsV2Paginator(b.s3, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return b.explain(err, "ListObjectsV2")
		}
		for _, o := range page.Contents {
			key := aws.ToString(o.Key)
			call(strings.TrimPrefix(key, prefix), key)
		}
	}
	return nil
}
