package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dlwb/dlwb/internal/waits"
)

// beyond is the kind of session that leads to another address than the machine's own.
const beyond = "AWS-StartPortForwardingSessionToRemoteHost"

// openLimit bounds the wait until the plugin listens.
const openLimit = 20 * time.Second

// Beyond connects to an address that an instance reaches, such as that of a container
// with a network interface of its own. The plugin carries such a session by a port of
// the loopback alone, which is there for as long as the connection.
func Beyond(ctx context.Context, api Sessions, region, endpoint, instance, host, port string) (net.Conn, error) {
	plugin, err := PluginAt()
	if err != nil {
		return nil, err
	}
	here, err := freePort()
	if err != nil {
		return nil, err
	}
	in := &ssm.StartSessionInput{DocumentName: aws.String(beyond), Target: &instance,
		Parameters: map[string][]string{"host": {host}, "portNumber": {port}, "localPortNumber": {here}}}
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
	asked, err := json.Marshal(map[string]any{"Target": instance, "DocumentName": beyond, "Parameters": in.Parameters})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), plugin, responseVariable, region, "StartSession", os.Getenv("AWS_PROFILE"), string(asked), endpoint)
	cmd.Env = append(os.Environ(), responseVariable+"="+string(answer))
	c := &beyondConn{cmd: cmd, ended: make(chan struct{}), terminate: func() {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		_, _ = api.TerminateSession(ctx, &ssm.TerminateSessionInput{SessionId: out.SessionId})
	}}
	if err := cmd.Start(); err != nil {
		c.terminate()
		return nil, fmt.Errorf("start %s: %w", Plugin, err)
	}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	if err := c.open(ctx, here); err != nil {
		c.end()
		return nil, fmt.Errorf("reach %s by %s: %w", net.JoinHostPort(host, port), instance, err)
	}
	return c, nil
}

// beyondConn is a connection with the plugin that carries it.
type beyondConn struct {
	net.Conn
	cmd       *exec.Cmd
	ended     chan struct{}
	terminate func()
	once      sync.Once
}

// open connects to the plugin once it listens.
func (c *beyondConn) open(ctx context.Context, port string) error {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			c.Conn = conn
			return nil
		}
		select {
		case <-c.ended:
			return errors.New(Plugin + " has ended")
		default:
		}
		if waits.Pause(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// Close closes the connection and ends the plugin and its session.
func (c *beyondConn) Close() error {
	err := c.Conn.Close()
	c.end()
	return err
}

func (c *beyondConn) end() {
	c.once.Do(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		c.terminate()
	})
}

// freePort is one of the loopback that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
