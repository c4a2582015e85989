package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// Plugin is AWS's own program for the streams of Systems Manager's sessions.
const Plugin = "session-manager-plugin"

// PluginAt is where it is installed here.
func PluginAt() (string, error) {
	at, err := exec.LookPath(Plugin)
	if err != nil {
		return "", fmt.Errorf("%s is not installed here: https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html", Plugin)
	}
	return at, nil
}

// Sessions are the calls that begin and end a session.
type Sessions interface {
	StartSession(context.Context, *ssm.StartSessionInput, ...func(*ssm.Options)) (*ssm.StartSessionOutput, error)
	TerminateSession(context.Context, *ssm.TerminateSessionInput, ...func(*ssm.Options)) (*ssm.TerminateSessionOutput, error)
}

// document is the kind of session that carries ssh.
const document = "AWS-StartSSHSession"

// responseVariable hands the answer with the session's token to the plugin: its
// arguments can be read by everybody on this machine.
const responseVariable = "AWS_SSM_START_SESSION_RESPONSE"

// Session connects to the sshd of an instance by a session of Systems Manager.
// endpoint is where its service answers; empty: AWS.
func Session(ctx context.Context, api Sessions, region, endpoint, instance, port string) (net.Conn, error) {
	plugin, err := PluginAt()
	if err != nil {
		return nil, err
	}
	in := &ssm.StartSessionInput{DocumentName: aws.String(document), Target: &instance, Parameters: map[string][]string{"portNumber": {port}}}
	out, err := api.StartSession(ctx, in)
	if err != nil {
		return nil, err
	}
	if endpoint == "" {
		endpoint = "https://ssm." + region + ".amazonaws.com"
	}
	answer, err := json.Marshal(map[string]*string{"SessionId": out.SessionId, "TokenValue": out.TokenValue, "StreamUrl": out.StreamUrl})
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(map[string]any{"Target": instance, "DocumentName": document, "Parameters": in.Parameters})
	if err != nil {
		return nil, err
	}
	// The connection outlives the dial.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), plugin, responseVariable, region, "StartSession", os.Getenv("AWS_PROFILE"), string(asked), endpoint)
	cmd.Env = append(os.Environ(), responseVariable+"="+string(answer))
	s := &session{cmd: cmd, id: aws.ToString(out.SessionId), api: api}
	cmd.Stderr = &s.said
	if err := s.start(); err != nil {
		s.terminate()
		return nil, fmt.Errorf("start %s: %w", Plugin, err)
	}
	return s, nil
}

// session is a connection over the plugin's stdin and stdout.
type session struct {
	cmd  *exec.Cmd
	id   string
	api  Sessions
	in   io.WriteCloser
	out  io.ReadCloser
	said tail
	once sync.Once
}

func (s *session) start() (err error) {
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return err
	}
	return s.cmd.Start()
}

// Read reads what the instance sends. That the plugin ended is told with what it
// said last.
func (s *session) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if said := s.said.String(); errors.Is(err, io.EOF) && said != "" {
		err = fmt.Errorf("%s: %s", Plugin, said)
	}
	return n, err
}

// Write sends to the instance.
func (s *session) Write(p []byte) (int, error) { return s.in.Write(p) }

// endLimit bounds the call that ends a session.
const endLimit = 5 * time.Second

// Close ends the session.
func (s *session) Close() error {
	s.once.Do(func() {
		_ = s.in.Close()
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.terminate()
	})
	return nil
}

func (s *session) terminate() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_, _ = s.api.TerminateSession(ctx, &ssm.TerminateSessionInput{SessionId: &s.id}) // AWS ends idle ones by itself
}

// Where is an address for those who ask a connection for one.
type Where string

// Network is "ssm".
func (Where) Network() string { return SSM }

func (w Where) String() string { return string(w) }

// LocalAddr is this end.
func (s *session) LocalAddr() net.Addr { return Where("here") }

// RemoteAddr is the session.
func (s *session) RemoteAddr() net.Addr { return Where(s.id) }

// SetDeadline is not possible: whoever waits closes the connection instead.
func (s *session) SetDeadline(time.Time) error { return errors.ErrUnsupported }

// SetReadDeadline is not possible either.
func (s *session) SetReadDeadline(time.Time) error { return errors.ErrUnsupported }

// SetWriteDeadline is not possible either.
func (s *session) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// tail keeps the end of what a program says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailMost = 400

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailMost):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
