package remote

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

// silentLog takes what net/http would print: standard error may be a screen.
var silentLog = log.New(io.Discard, "", 0)

// proxy passes requests on to the far end of the tunnel, whole and unbuffered:
// websockets, event streams and uploads of any size. Host and Origin stay as
// the browser sent them, so that the server sees that they agree and leads back
// to where the browser is.
func (t *Tunnel) proxy(h HTTP) http.Handler {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dialTied(ctx) },
		// The browser has said which encodings it takes.
		DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
	}
	context.AfterFunc(t.ctx, transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: silentLog,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", t.remote, r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came, not as we would write it
			stripCookies(r.Out.Header)
			if h.Token != "" {
				r.Out.Header.Set("Authorization", "token "+h.Token)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			stripSetCookies(r.Header)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				t.note(err)
			}
			http.Error(w, fmt.Sprintf("dlwb: %s does not answer: %v", t.remote, err), http.StatusBadGateway)
		},
	}
}

// dialTied is dialFar with a connection that ends with the tunnel.
func (t *Tunnel) dialTied(ctx context.Context) (net.Conn, error) {
	far, err := t.dialFar(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(t.ctx, func() { _ = far.Close() })
	return &tiedConn{far, stop}, nil
}

// tiedConn is a connection that a context closes.
type tiedConn struct {
	net.Conn
	untie func() bool
}

// Close ends the connection. Close of a channel may block on a dead link:
// nobody waits for it.
func (c *tiedConn) Close() error {
	c.untie()
	go func() { _ = c.Conn.Close() }()
	return nil
}
