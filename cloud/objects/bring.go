package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// What a Bring takes: more than a run's results have, and no more than a disk that
// nobody has filled on purpose.
const (
	mostBrought = 200_000
	// bringTries is how often an object is read that breaks off.
	bringTries = 3
)

// mostBytes bounds the bytes of all objects of a Bring.
var mostBytes = int64(200 << 30)

// silentLimit is for how long nothing of an object may come.
var silentLimit = time.Minute

// Bring writes what lies below the address into a directory, each object under the
// rest of its key; nothing there is no error. left is what did not come, each with the
// reason: what was removed or replaced meanwhile is its writer's doing, and keeps
// nothing else from coming. Half of an object does not stay.
func (b *Bucket) Bring(ctx context.Context, into *os.Root) (left []string, err error) {
	l, err := b.below(ctx, mostBrought)
	if err != nil {
		return nil, err
	}
	for _, key := range l.Unfit {
		left = append(left, key+": no file here can have this name")
	}
	room, mu := mostBytes, sync.Mutex{}
	leave := func(o Object, why string) {
		mu.Lock()
		defer mu.Unlock()
		left = append(left, o.key+": "+why)
	}
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for _, o := range l.Objects {
		if o.Size > room {
			leave(o, "with it there are more than "+units.Bytes(mostBytes))
			continue
		}
		room -= o.Size
		all.Go(func() error {
			why, err := b.bring(each, o, into)
			if why != "" {
				leave(o, why)
			}
			return err
		})
	}
	err = all.Wait()
	return left, err
}

// bring brings one object; why it can't be had as it was listed.
func (b *Bucket) bring(ctx context.Context, o Object, into *os.Root) (why string, err error) {
	if err := into.MkdirAll(path.Dir(o.Path), 0o755); err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		err = b.bringOnce(ctx, o, into)
		switch code := status(err); {
		case err == nil:
			return "", nil
		case code == 404:
			return "it was removed meanwhile", nil
		case code == 412:
			return "it was replaced meanwhile: dlwb pull brings the newer one", nil
		case ctx.Err() != nil || try == bringTries || code == 403:
			return "", fmt.Errorf("bring %s: %w", b.Address(o.Path), b.explain(err, "GetObject"))
		}
	}
}

func (b *Bucket) bringOnce(ctx context.Context, o Object, into *os.Root) (err error) {
	ctx, patience := waits.Silent(ctx, silentLimit)
	defer func() { err = patience.End(err) }()
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &o.key}
	if o.ETag != "" {
		in.IfMatch = aws.String(o.ETag)
	}
	out, err := b.s3.GetObject(ctx, in)
	if err != nil {
		return err
	}
	defer func() { _ = out.Body.Close() }()
	f, err := into.Create(o.Path)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(patience.Reader(out.Body), o.Size+1))
	if err == nil && n != o.Size {
		err = fmt.Errorf("%d of %d bytes came", n, o.Size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, into.Remove(o.Path))
	}
	return nil
}
