package reach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/coder/websocket"
)

// ann is somebody with credentials.
type ann struct{ token string }

func (a ann) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SessionToken: a.token}, nil
}

// byAWS is what botocore 1.40.76 makes of the same request at the same moment, in
// the way in which `aws ec2-instance-connect open-tunnel` asks it.
const byAWS = "wss://eice-0123456789abcdef0.b1c2d3e4.ec2-instance-connect-endpoint.eu-west-1.amazonaws.com/openTunnel?instanceConnectEndpointId=eice-0123456789abcdef0&remotePort=22&privateIpAddress=10.0.1.17&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261124%2Feu-west-1%2Fec2-instance-connect%2Faws4_request&X-Amz-Date=20261124T060000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Security-Token=tok%2Fen%2B%3D%3D&X-Amz-Signature=f5af43dfc05b6e48354996228ea534a28ed2f1b723a5223ee176e8756efbb79e"

func TestATunnelIsAskedForAsTheAWSCLIDoes(t *testing.T) {
	c := Caller{Credentials: ann{"tok/en+=="}, Region: "eu-west-1"}
	e := Endpoint{"eice-0123456789abcdef0", "eice-0123456789abcdef0.b1c2d3e4.ec2-instance-connect-endpoint.eu-west-1.amazonaws.com"}
	got, err := c.tunnelURL(t.Context(), e, "10.0.1.17", "22", time.Date(2026, 11, 24, 6, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := url.Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := url.Parse(byAWS)
	if err != nil {
		t.Fatal(err)
	}
	if ours.Scheme != theirs.Scheme || ours.Host != theirs.Host || ours.Path != theirs.Path {
		t.Errorf("%s, want %s", ours, theirs)
	}
	if a, b := ours.Query().Encode(), theirs.Query().Encode(); a != b {
		t.Errorf("%s\nwant %s", a, b)
	}
}

// far is an endpoint that sends back what it gets, and notes how long the frames
// are.
func far(t *testing.T, refuse int, says string) (Caller, Endpoint, *int) {
	t.Helper()
	var longest int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse != 0 {
			http.Error(w, says, refuse)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil || kind != websocket.MessageBinary {
				return
			}
			longest = max(longest, len(b))
			if c.Write(r.Context(), websocket.MessageBinary, b) != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return Caller{Credentials: ann{}, Region: "us-east-1", HTTP: s.Client(), Plain: true}, Endpoint{"eice-1", strings.TrimPrefix(s.URL, "http://")}, &longest
}

func TestATunnelCarriesEveryByteInFramesThatTheEndpointTakes(t *testing.T) {
	c, e, longest := far(t, 0, "")
	conn, err := c.Tunnel(t.Context(), e, "10.0.1.17:22")
	if err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 20_000) // 320 kB
	go func() { _, _ = conn.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%v; %d of %d bytes are right", err, len(got), len(sent))
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(got); err == nil {
		t.Error("a closed tunnel is read")
	}
	if *longest > mostInFrame {
		t.Errorf("a frame had %d bytes", *longest)
	}
}

func TestARefusedTunnelSaysWhyAndNotWhatWasSigned(t *testing.T) {
	for status, want := range map[int]string{403: "ec2-instance-connect:OpenTunnel", 400: "no such instance", 504: "(504 "} {
		c, e, _ := far(t, status, "no such instance")
		_, err := c.Tunnel(t.Context(), e, "10.0.1.17:22")
		var refused *Refused
		if !errors.As(err, &refused) || refused.Status != status || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "X-Amz") {
			t.Errorf("%d: %v", status, err)
		}
	}
	c, _, _ := far(t, 0, "")
	_, err := c.Tunnel(t.Context(), Endpoint{"eice-1", "127.0.0.1:1"}, "10.0.1.17:22")
	if err == nil || !strings.Contains(err.Error(), "can't be reached") || strings.Contains(err.Error(), "X-Amz") {
		t.Error(err)
	}
}

func TestAWayIsAWordThatIsReadAgain(t *testing.T) {
	e := Endpoint{"eice-1", "eice-1.x.amazonaws.com"}
	if got, err := EndpointOf(Through(e)); err != nil || got != e {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "ssm", "instance-connect:", "instance-connect:eice-1", "instance-connect:@dns"} {
		if _, err := EndpointOf(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
