package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"golang.org/x/sync/errgroup"
)

// ErrNotWhole is that a set has no manifest, or not what its manifest says.
var ErrNotWhole = errors.New("it is not whole")

// Load brings a set into a directory that is not there yet, all of it or nothing:
// it gets its name when every file is what the manifest says.
func (b *Bucket) Load(ctx context.Context, name, dir string) (Manifest, error) {
	m, found, err := b.Manifest(ctx, name)
	if err == nil && !found {
		err = ErrNotWhole
	}
	if err != nil {
		return m, fmt.Errorf("load %s: %w", b.Address(name), err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return m, err
	}
	coming, err := os.MkdirTemp(filepath.Dir(dir), ".coming-*")
	if err != nil {
		return m, err
	}
	defer func() { _ = os.RemoveAll(coming) }() // of what did not become whole
	if err := b.loadInto(ctx, name, m, coming); err != nil {
		return m, fmt.Errorf("load %s: %w", b.Address(name), err)
	}
	return m, os.Rename(coming, dir)
}

func (b *Bucket) loadInto(ctx context.Context, name string, m Manifest, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for _, f := range m.Files {
		all.Go(func() error { return b.get(each, path.Join(name, f.Path), f, root) })
	}
	return all.Wait()
}

// bounded is a file that takes no more than its manifest says: else the disk is full
// before anybody looks.
type bounded struct {
	to   io.WriterAt
	most int64
}

// WriteAt writes what belongs there.
func (b bounded) WriteAt(p []byte, at int64) (int, error) {
	if at < 0 || int64(len(p)) > b.most-at {
		return 0, fmt.Errorf("it is longer than its manifest says: %w", ErrNotWhole)
	}
	return b.to.WriteAt(p, at)
}

// get brings one file, and holds it against the manifest.
func (b *Bucket) get(ctx context.Context, name string, f File, root *os.Root) error {
	at := filepath.FromSlash(f.Path)
	if err := root.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	file, err := root.OpenFile(at, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if f.Size > 0 {
		_, err = b.move.DownloadObject(ctx, &transfermanager.DownloadObjectInput{Bucket: &b.name, Key: b.key(name), WriterAt: bounded{file, f.Size}})
	}
	if status(err) == 404 {
		return fmt.Errorf("%s is not there: %w", f.Path, ErrNotWhole)
	}
	if err != nil {
		return b.explain(err, "GetObject")
	}
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(file, 0, f.Size+1))
	if err != nil {
		return err
	}
	if n != f.Size || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s is not what its manifest says: %w", f.Path, ErrNotWhole)
	}
	return file.Close()
}
