package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/coder/websocket"
)

// Caller is who opens tunnels, and by what.
type Caller struct {
	Credentials aws.CredentialsProvider
	Region      string
	HTTP        *http.Client
	// Plain leaves TLS out, for emulators.
	Plain bool
}

// emptyHash is the SHA-256 of nothing, which is the body of a request to open a
// tunnel.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// signedFor is for how long a request to open a tunnel is good.
const signedFor = "60"

// tunnelURL is the signed address of a tunnel, as the AWS CLI makes it.
func (c Caller) tunnelURL(ctx context.Context, e Endpoint, host, port string, now time.Time) (string, error) {
	query := url.Values{"instanceConnectEndpointId": {e.ID}, "remotePort": {port}, "privateIpAddress": {host}, "X-Amz-Expires": {signedFor}}
	at := url.URL{Scheme: "https", Host: e.DNS, Path: "/openTunnel", RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", err
	}
	who, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return "", err
	}
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, who, r, emptyHash, "ec2-instance-connect", c.Region, now)
	if err != nil {
		return "", err
	}
	scheme := "wss"
	if c.Plain {
		scheme = "ws"
	}
	return scheme + strings.TrimPrefix(signed, "https"), nil
}

// Refused is that an endpoint did not open a tunnel.
type Refused struct {
	Endpoint string
	Status   int    // of HTTP; 0: it could not be reached
	Says     string // its own words
	Err      error
}

func (e *Refused) Error() string {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return fmt.Sprintf("the Instance Connect endpoint %s refuses the tunnel (%d %s): is ec2-instance-connect:OpenTunnel allowed to these credentials?", e.Endpoint, e.Status, e.Says)
	case e.Status != 0:
		return fmt.Sprintf("the Instance Connect endpoint %s did not open a tunnel (%d %s)", e.Endpoint, e.Status, e.Says)
	}
	return fmt.Sprintf("the Instance Connect endpoint %s can't be reached: %v", e.Endpoint, e.Err)
}

// Unwrap gives what was behind it.
func (e *Refused) Unwrap() error { return e.Err }

// Tunnel connects to a private address of an endpoint's VPC. AWS ends each tunnel
// after an hour; whoever needs it longer opens another.
func (c Caller) Tunnel(ctx context.Context, e Endpoint, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	at, err := c.tunnelURL(ctx, e, host, port, time.Now())
	if err != nil {
		return nil, fmt.Errorf("sign the request for a tunnel: %w", err)
	}
	conn, reply, err := websocket.Dial(ctx, at, &websocket.DialOptions{HTTPClient: c.HTTP, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, refusal(e, reply, err)
	}
	conn.SetReadLimit(-1) // a frame is read in parts
	life, end := context.WithCancel(context.Background())
	return &tunnel{Conn: websocket.NetConn(life, conn, websocket.MessageBinary), raw: conn, end: end}, nil
}

// refusal says why a tunnel was not opened. The address that was called stays
// out of it: it is signed.
func refusal(e Endpoint, reply *http.Response, err error) error {
	var call *url.Error
	if errors.As(err, &call) {
		err = call.Err
	}
	out := &Refused{Endpoint: e.ID, Err: err}
	if reply != nil {
		out.Status = reply.StatusCode
		if reply.Body != nil {
			b, _ := io.ReadAll(io.LimitReader(reply.Body, 300))
			out.Says = strings.TrimSpace(string(b))
		}
		if out.Says == "" {
			out.Says = http.StatusText(reply.StatusCode)
		}
	}
	return out
}

// tunnel is a connection over a websocket.
type tunnel struct {
	net.Conn
	raw *websocket.Conn
	end context.CancelFunc
}

// mostInFrame is what the AWS CLI puts into one frame.
const mostInFrame = 65000

// Write sends in frames that the endpoint takes.
func (t *tunnel) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var m int
		m, err = t.Conn.Write(p[:min(len(p), mostInFrame)])
		n, p = n+m, p[m:]
	}
	return n, err
}

// Close ends it at once: ssh has said what there was to say.
func (t *tunnel) Close() error {
	defer t.end()
	return t.raw.CloseNow()
}
