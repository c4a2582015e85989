package remote

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// silentLog takes what net/http would print: standard error may be a screen.
var silentLog = log.New(io.Discard, "", 0)

// proxy passes requests on to the far end of the tunnel, whole and unbuffered:
// websockets, event streams and uploads of any size. Host, Origin and Referer
// name loopback instead of the tunnel's own host: servers that look at them, as
// Jupyter, MLflow and Streamlit do, let only names through that they know.
// X-Forwarded-Host has the other name for those that write whole addresses.
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
			if t.door.named(r.In) {
				r.Out.Host = t.plainHost()
				rename(r.Out.Header, t.door.host, t.plainHost(), "Origin", "Referer")
				r.Out.Header.Set("X-Forwarded-Host", r.In.Host)
				r.Out.Header.Set("X-Forwarded-Proto", "http")
			}
			r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came, not as we would write it
			stripCookies(r.Out.Header)
			if h.Token != "" {
				r.Out.Header.Set("Authorization", "token "+h.Token)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			stripSetCookies(r.Header)
			if r.Request.Header.Get("X-Forwarded-Host") != "" { // it came by the tunnel's own name
				rename(r.Header, t.plainHost(), t.door.host, "Location", "Content-Location")
			}
			if r.Header.Get("Referrer-Policy") == "" { // the name is nobody else's business
				r.Header.Set("Referrer-Policy", "same-origin")
			}
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

// plainHost is the tunnel's end here, as a server knows it that has no names.
func (t *Tunnel) plainHost() string { return "127.0.0.1:" + strconv.Itoa(t.port) }

// rename puts one host in place of another in headers that hold an address.
func rename(h http.Header, from, to string, keys ...string) {
	for _, key := range keys {
		values := h.Values(key)
		for i, value := range values {
			rest, ok := strings.CutPrefix(value, "http://"+from)
			if ok && (rest == "" || strings.ContainsAny(rest[:1], "/?#")) {
				values[i] = "http://" + to + rest
			}
		}
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

// Close ends the connection.
func (c *tiedConn) Close() error {
	c.untie()
	return c.Conn.Close()
}
