package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"

	"github.com/pkg/sftp"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/sshconn"
)

// uploadTo writes a file into ~/.dlwb/bin over a connection, by sftp.
func uploadTo(ctx context.Context, conn *sshconn.Conn, name string, bytes []byte, b sshconn.Bounds) error {
	client, err := openSFTP(ctx, conn, b)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer func() {
		stop()
		_ = client.Close()
	}()
	const dir = ".dlwb/bin"
	for _, d := range []string{path.Dir(dir), dir} {
		if client.Mkdir(d) == nil { // else it is there, or writing fails
			_ = client.Chmod(d, 0o700)
		}
	}
	f, err := client.OpenFile(path.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = client.Remove(path.Join(dir, name))
	}
	return err
}

// SFTP starts an sftp client in a session of its own. The caller closes it;
// it does not survive the connection.
func (n *Node) SFTP(ctx context.Context) (*sftp.Client, error) {
	l, err := n.live(ctx)
	if err != nil {
		return nil, err
	}
	if l.client == nil {
		return nil, n.wrap("start sftp", errors.New("it is not reached by ssh"))
	}
	client, err := openSFTP(ctx, l.client, n.bounds)
	return client, n.wrap("start sftp", err)
}

// openSFTP starts an sftp client in a session of its own. Close ends every call
// that is under way, also of a server that never answers it.
func openSFTP(ctx context.Context, conn *sshconn.Conn, b sshconn.Bounds) (*sftp.Client, error) {
	s, err := conn.NextSession(ctx)
	if err != nil {
		return nil, err
	}
	in, out, err := sftpPipes(ctx, s)
	if err != nil {
		s.Close()
		return nil, err
	}
	limited, cancel := waits.Within(ctx, waits.Wait{What: "to answer by sftp", Limit: b.Reply})
	defer cancel()
	// The first exchange knows no context: closing the pipe ends it.
	stop := context.AfterFunc(limited, func() { _ = in.Close() })
	client, err := sftp.NewClientPipe(out, in, sftp.UseConcurrentWrites(true))
	if !stop() && err == nil {
		_ = client.Close()
		err = context.Cause(limited)
	}
	if limited.Err() != nil {
		err = context.Cause(limited)
	}
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	return client, nil
}

// sftpPipe is the input of an sftp server. Closing it closes the whole session,
// and what is read of that ends at once.
type sftpPipe struct {
	io.WriteCloser
	end func()
}

// Close ends the session.
func (p *sftpPipe) Close() error {
	p.end()
	return nil
}

// sftpPipes starts the subsystem and gives its two ends.
func sftpPipes(ctx context.Context, s *sshconn.Session) (*sftpPipe, io.Reader, error) {
	in, err := s.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := s.Subsystem(ctx, "sftp"); err != nil {
		return nil, nil, fmt.Errorf("ask for it: %w", err)
	}
	// What a hung server keeps open would be read for ever.
	read, write := io.Pipe()
	end := sync.OnceFunc(func() {
		_ = write.CloseWithError(io.EOF)
		go s.Close()
	})
	go func() {
		_, _ = io.Copy(write, out)
		end()
	}()
	return &sftpPipe{in, end}, read, nil
}
