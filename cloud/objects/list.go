package objects

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Object is an object below an address, as a file.
type Object struct {
	Path     string // below the address, with slashes
	Size     int64
	ETag     string // changes with its content
	Modified time.Time
	key      string
}

// Listing is what lies at an address.
type Listing struct {
	Objects []Object
	// Unfit are keys that no file can have here: "a//b", "../x", or that of an object
	// below which others lie.
	Unfit []string
}

// Bytes are those of all objects.
func (l Listing) Bytes() (n int64) {
	for _, o := range l.Objects {
		n += o.Size
	}
	return n
}

// ArchivedError says that objects can't be read before they are restored.
type ArchivedError struct {
	Address string
	Class   string // the storage class: GLACIER
}

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("%s is in the storage class %s, and can't be read before it is restored", e.Address, e.Class)
}

// Advice is what to do about it.
func (e *ArchivedError) Advice() string {
	return "aws s3api restore-object for each, or name a prefix without archived objects"
}

// List lists what lies at the address of the bucket: the one object of this key, or all
// below it. More than most of them are an error. Markers of directories, keys that end
// with a slash, are passed over.
func (b *Bucket) List(ctx context.Context, most int) (Listing, error) {
	if b.prefix != "" {
		head, err := b.s3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &b.prefix})
		switch code := status(err); {
		case err == nil:
			if o := head; archived(string(o.StorageClass)) && !strings.Contains(aws.ToString(o.Restore), `ongoing-request="false"`) {
				return Listing{}, &ArchivedError{b.Address(""), string(o.StorageClass)}
			}
			return Listing{Objects: []Object{{path.Base(b.prefix), aws.ToInt64(head.ContentLength), aws.ToString(head.ETag), aws.ToTime(head.LastModified), b.prefix}}}, nil
		case code != 404 && code != 403: // who may not list gets 403 for what is not there
			return Listing{}, b.explain(err, "HeadObject")
		}
	}
	l, err := b.below(ctx, most)
	if err == nil && len(l.Objects) == 0 {
		err = errors.New("there is no object at " + b.Address(""))
	}
	return l, err
}

// below lists what lies below the address of the bucket.
func (b *Bucket) below(ctx context.Context, most int) (l Listing, err error) {
	below := ""
	if b.prefix != "" {
		below = b.prefix + "/"
	}
	pages := s3.NewListObjectsV2Paginator(b.s3, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &below, OptionalObjectAttributes: []types.OptionalObjectAttributes{types.OptionalObjectAttributesRestoreStatus}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return Listing{}, b.explain(err, "ListObjectsV2")
		}
		for _, o := range page.Contents {
			if err := b.take(&l, o, below); err != nil {
				return Listing{}, err
			}
		}
		if len(l.Objects) > most {
			return Listing{}, fmt.Errorf("%s has more than %d objects: keep many small files as archives, a few GB each", b.Address(""), most)
		}
	}
	l.fit()
	return l, nil
}

func archived(class string) bool {
	return class == string(types.StorageClassGlacier) || class == string(types.StorageClassDeepArchive)
}

// take adds an object to a listing.
func (b *Bucket) take(l *Listing, o types.Object, below string) error {
	key := aws.ToString(o.Key)
	rest := strings.TrimPrefix(key, below)
	switch {
	case strings.HasSuffix(key, "/"):
		return nil
	case !filepath.IsLocal(filepath.FromSlash(rest)) || path.Clean(rest) != rest || strings.ContainsAny(rest, "\x00\n"):
		l.Unfit = append(l.Unfit, key)
		return nil
	case archived(string(o.StorageClass)) && (o.RestoreStatus == nil || o.RestoreStatus.RestoreExpiryDate == nil):
		return &ArchivedError{b.Address(rest), string(o.StorageClass)}
	}
	l.Objects = append(l.Objects, Object{rest, aws.ToInt64(o.Size), aws.ToString(o.ETag), aws.ToTime(o.LastModified), key})
	return nil
}

// fit takes objects out below which others lie: a file is no directory too.
func (l *Listing) fit() {
	dirs := map[string]bool{}
	for _, o := range l.Objects {
		for dir := path.Dir(o.Path); dir != "." && !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	l.Objects = slices.DeleteFunc(l.Objects, func(o Object) bool {
		if dirs[o.Path] {
			l.Unfit = append(l.Unfit, o.key)
		}
		return dirs[o.Path]
	})
}

// Sign gives an address by which an object can be read without credentials, for so
// long, or until the credentials here end.
func (b *Bucket) Sign(ctx context.Context, o Object, valid time.Duration) (string, error) {
	signed, err := s3.NewPresignClient(b.s3).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &o.key}, s3.WithPresignExpires(valid))
	if err != nil {
		return "", b.explain(err, "GetObject")
	}
	return signed.URL, nil
}
