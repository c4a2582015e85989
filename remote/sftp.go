package remote

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/pkg/sftp"

	"github.com/dlwb/dlwb/internal/waits"
)

// SFTP starts an sftp client in a session of its own. The caller closes it;
// it does not survive the connection. Close ends every call that is under way,
// also of a server that never answers it.
func (n *Node) SFTP(ctx context.Context) (*sftp.Client, error) {
	s, err := n.session(ctx, true)
	if err != nil {
		return nil, err
	}
	in, out, err := sftpPipes(ctx, s)
	if err != nil {
		s.free()
		return nil, n.wrap("start sftp (is the sftp subsystem on in sshd_config there?)", err)
	}
	limited, cancel := waits.Within(ctx, waits.Wait{On: n.target.Name, What: "to answer by sftp", Limit: n.timing.bounds.Reply})
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
		return nil, n.wrap("start sftp", err)
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
func sftpPipes(ctx context.Context, s *session) (*sftpPipe, io.Reader, error) {
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
		go s.free()
	})
	go func() {
		_, _ = io.Copy(write, out)
		end()
	}()
	return &sftpPipe{in, end}, read, nil
}
