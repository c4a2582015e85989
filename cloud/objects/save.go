package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// atOnce is how many files are under way at once.
const atOnce = 4

// Saved is what a Save has done.
type Saved struct {
	Files, Sent int
	Bytes       int64 // that were sent
}

// Save keeps files as a set: each file by its path in the set, with where it lies
// here. What the set has already, of the same content, is not sent again. A set of
// another life is not replaced. A set whose content changes is not whole from the
// first byte of the change to the last.
func (b *Bucket) Save(ctx context.Context, name string, files map[string]string, about map[string]string) (Saved, error) {
	had, whole, err := b.Manifest(ctx, name)
	if err != nil {
		return Saved{}, err
	}
	if is, mine := had.About[Life], about[Life]; is != "" && is != mine {
		return Saved{}, b.another(name, is, mine)
	}
	old := map[string]File{}
	for _, f := range had.Files {
		old[f.Path] = f
	}
	now := map[string]File{}
	for p, at := range files {
		if now[p], err = hashOf(p, at, old[p].Size, whole); err != nil {
			return Saved{}, err
		}
	}
	var send []string
	same := whole && len(old) == len(now)
	for p, f := range now {
		if !whole || old[p] != f || f.SHA256 == "" {
			send, same = append(send, p), false
		}
	}
	if same {
		return Saved{Files: len(files)}, nil
	}
	if whole {
		if err := b.remove(ctx, name+ending); err != nil {
			return Saved{}, err
		}
	}
	added := slices.DeleteFunc(slices.Clone(send), func(p string) bool { return old[p].Path == p })
	sent, err := b.sendAll(ctx, name, files, send)
	if err != nil {
		return Saved{}, b.undo(ctx, name, added, err)
	}
	s := Saved{Files: len(files), Sent: len(send)}
	for _, f := range sent {
		now[f.Path] = f
		s.Bytes += f.Size
	}
	m := Manifest{Version: 1, At: time.Now().UTC(), About: about}
	for _, f := range now {
		m.Files = append(m.Files, f)
	}
	if err := b.finish(ctx, name, m); err != nil {
		// Where the answer was lost the manifest may be there: it goes first.
		if worse := b.remove(context.WithoutCancel(ctx), name+ending); worse == nil {
			err = b.undo(ctx, name, added, err)
		}
		return Saved{}, err
	}
	return s, nil
}

// undoLimit bounds the removal of what was sent in vain.
const undoLimit = time.Minute

// undo removes the files that a save has added which came to nothing, also where it
// was broken off: nobody would find them, and they cost. What the set had before
// stays.
func (b *Bucket) undo(ctx context.Context, name string, added []string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	keys := make([]string, len(added))
	for i, p := range added {
		keys[i] = *b.key(path.Join(name, p))
	}
	if err := b.removeKeys(ctx, keys); err != nil {
		return fmt.Errorf("%w; and what was sent of it is still there: %w", why, err)
	}
	return why
}

// Life names, in what is said about a set, the life of a cluster that saves it. No
// other life replaces it.
const Life = "life"

// another is that a set is of another life than the one that would save it.
func (b *Bucket) another(name, is, mine string) error {
	return &awsapi.Problem{Kind: awsapi.Exists, Err: ErrAnother,
		Cause: fmt.Sprintf("%s has been saved by another life of a cluster, %s, and this one is %q: it is not replaced", b.Address(name), is, mine),
		Next:  "name another prefix in results.s3"}
}

// ErrAnother is that a set there is of another life of a cluster.
var ErrAnother = errors.New("it is of another life")

// hashOf is a file as it is here. Its hash is worked out only where that can spare
// the sending.
func hashOf(p, at string, size int64, known bool) (File, error) {
	f, err := plainfile.Open(at)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !known || info.Size() != size {
		return File{Path: p}, err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	return File{Path: p, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

func (b *Bucket) sendAll(ctx context.Context, name string, files map[string]string, paths []string) ([]File, error) {
	sent := make([]File, len(paths))
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i, p := range paths {
		all.Go(func() (err error) {
			sent[i], err = b.send(each, path.Join(name, p), p, files[p])
			return err
		})
	}
	return sent, all.Wait()
}

// send uploads one file, a large one in parts. Its hash is that of the bytes which
// were sent.
func (b *Bucket) send(ctx context.Context, name, p, at string) (File, error) {
	f, err := plainfile.Open(at)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	count := &counter{r: io.TeeReader(f, h)}
	_, err = b.move.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: &b.name, Key: b.key(name), Body: count})
	if err != nil {
		return File{}, fmt.Errorf("send %s to %s: %w", at, b.Address(name), b.explain(err, "PutObject"))
	}
	return File{Path: p, Size: count.n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// counter counts what is read. It can't seek, so that nothing is read twice.
type counter struct {
	r io.Reader
	n int64
}

// Read reads on.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (b *Bucket) remove(ctx context.Context, name string) error {
	return b.removeKeys(ctx, []string{*b.key(name)})
}

// removeKeys removes objects by their whole keys, as S3 lists them: a key may have
// "..", or two slashes, and is another one when it is cleaned.
func (b *Bucket) removeKeys(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if _, err := b.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key}); err != nil {
			return b.explain(err, "DeleteObject")
		}
	}
	return nil
}

// Drop removes a set: first its manifest, then its files.
func (b *Bucket) Drop(ctx context.Context, name string) error {
	if err := b.remove(ctx, name+ending); err != nil {
		return err
	}
	var keys []string
	if err := b.each(ctx, name, func(_, key string) { keys = append(keys, key) }); err != nil {
		return err
	}
	return b.removeKeys(ctx, keys)
}

// Sweep removes the parts that killed uploaders have left below a name: they cost
// money, and no list of objects shows them. Nobody else may be saving there.
func (b *Bucket) Sweep(ctx context.Context, below string) error {
	pages := s3.NewListMultipartUploadsPaginator(b.s3, &s3.ListMultipartUploadsInput{Bucket: &b.name, Prefix: aws.String(*b.key(below) + "/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if status(err) == 404 {
			return nil // some servers say so of a bucket that has none
		}
		if err != nil {
			return b.explain(err, "ListBucketMultipartUploads")
		}
		for _, u := range page.Uploads {
			if _, err := b.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.name, Key: u.Key, UploadId: u.UploadId}); err != nil && status(err) != 404 {
				return b.explain(err, "AbortMultipartUpload")
			}
		}
	}
	return nil
}

// SweepSets removes the files of sets directly below a name that are not whole.
func (b *Bucket) SweepSets(ctx context.Context, below string) error {
	whole, files := map[string]bool{}, map[string][]string{}
	err := b.each(ctx, below, func(rest, key string) {
		if set, is := strings.CutSuffix(rest, ending); is && !strings.Contains(set, "/") {
			whole[set] = true
		} else if set, _, deeper := strings.Cut(rest, "/"); deeper && isName(set) {
			files[set] = append(files[set], key)
		}
	})
	if err != nil {
		return err
	}
	for set, keys := range files {
		if whole[set] {
			continue
		}
		if err := b.removeKeys(ctx, keys); err != nil {
			return err
		}
	}
	return nil
}

// isName reports whether a part of a key can be the name of a set.
func isName(part string) bool { return part != "" && part != "." && part != ".." }
