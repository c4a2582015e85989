package remote

import (
	"context"

	"github.com/pkg/sftp"
)

// SFTP starts an sftp client in a session of its own. The caller closes it;
// it does not survive the connection.
func (n *Node) SFTP(ctx context.Context) (*sftp.Client, error) {
	s, err := n.session(ctx, true)
	if err != nil {
		return nil, err
	}
	type started struct {
		client *sftp.Client
		err    error
	}
	ch := make(chan started, 1)
	go func() {
		client, err := startSFTP(s)
		ch <- started{client, err}
	}()
	select {
	case r := <-ch:
		if r.err != nil {
			s.free()
			return nil, n.wrap("start sftp (is the sftp subsystem on in sshd_config there?)", r.err)
		}
		go func() {
			_ = r.client.Wait()
			s.free()
		}()
		return r.client, nil
	case <-ctx.Done():
		go func() {
			s.free()
			if r := <-ch; r.client != nil {
				_ = r.client.Close()
			}
		}()
		return nil, n.wrap("start sftp", context.Cause(ctx))
	}
}

func startSFTP(s *session) (*sftp.Client, error) {
	in, err := s.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.RequestSubsystem("sftp"); err != nil {
		return nil, err
	}
	return sftp.NewClientPipe(out, in, sftp.UseConcurrentWrites(true))
}
