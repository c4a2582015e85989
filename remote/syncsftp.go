package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"
)

// sftpSink puts a batch on a node that has no tar, file by file. What follows,
// the script that puts the files in place, is the same.
type sftpSink struct {
	client *sftp.Client
	base   string
	links  strings.Builder
}

// putAll writes a batch by sftp to where the receiving script looks for it.
func (s *nodeSync) putAll(ctx context.Context, nonce string, b *batch, have manifest) error {
	client, err := s.node.SFTP(ctx)
	if err != nil {
		return fmt.Errorf("the node has no tar, and files can't go by sftp either: %w; install tar there", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer func() {
		stop()
		_ = client.Close()
	}()
	to := &sftpSink{client: client, base: path.Join(s.dir, ".dlwb-in."+nonce)}
	if err := client.MkdirAll(to.base); err != nil {
		return fmt.Errorf("make %s: %w", to.base, err)
	}
	err = s.writeBatch(to, b, have)
	if err != nil {
		_ = client.RemoveAll(to.base)
	}
	return err
}

func (t *sftpSink) dir(name string) error { return t.client.MkdirAll(path.Join(t.base, name)) }

// link leaves links to the shell: some sftp servers make every target absolute.
func (t *sftpSink) link(name, target string) error {
	t.links.WriteString("ln -s -- " + Quote(target) + ` "$stage"/` + Quote(name) + "\n")
	return nil
}

func (t *sftpSink) script() string { return t.links.String() }

func (t *sftpSink) file(name string, e *treeEntry, r io.Reader) error {
	p := path.Join(t.base, name)
	f, err := t.client.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	err = errors.Join(copyExactly(f, r, e.size), f.Close())
	if err == nil {
		err = t.client.Chmod(p, fs.FileMode(e.mode))
	}
	if err == nil && !e.mtime.IsZero() {
		err = t.client.Chtimes(p, e.mtime, e.mtime)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}
