//go:build unix

package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testport"
)

// site is a server on a node that uses what HTTP servers use.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s|%s|%s|%s", r.Host, r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.URL.RawQuery,
			r.Header.Get("Origin"), r.Header.Get("X-Forwarded-Host"))
	})
	mux.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, _ := io.Copy(h, r.Body)
		fmt.Fprintf(w, "%d %x", n, h.Sum(nil))
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			select { // the next one only when the first was read: see the test
			case <-r.Context().Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web
}

// browser is a client with a cookie jar that was let in.
func browser(t *testing.T, tunnel *Tunnel) (*http.Client, string) {
	t.Helper()
	c, base := browserAt(t, tunnel)
	res, err := c.Get(base + "/headers?" + TicketKey + "=" + tunnel.Ticket())
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("with a ticket: %s", res.Status)
	}
	return c, base
}

// browserAt is a client with a cookie jar that was not let in yet.
func browserAt(t *testing.T, tunnel *Tunnel) (*http.Client, string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", tunnel.plainHost()) // as browsers know names below localhost
	}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Jar: jar, Timeout: 30 * time.Second, Transport: transport}
	return c, "http://" + tunnel.Host()
}

func forwardHTTP(t *testing.T, n *Node, to, token string) *Tunnel {
	t.Helper()
	tunnel, err := ForwardHTTP(t.Context(), n, "127.0.0.1:0", to, HTTP{Token: token, Name: "site-charlm"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tunnel.Close() })
	return tunnel
}

func TestHTTPForwardCarriesWhatHTTPCarries(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	tunnel := forwardHTTP(t, n, strings.TrimPrefix(site(t).URL, "http://"), "jupyter-token")
	c, base := browser(t, tunnel)

	res, err := c.Get(base + "/headers?a=1;b=2")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if want := tunnel.plainHost() + "|token jupyter-token||a=1;b=2||" + tunnel.Host(); string(got) != want {
		t.Errorf("the server sees %q, want %q", got, want)
	}
	if p := res.Header.Get("Referrer-Policy"); p != "same-origin" {
		t.Errorf("the name would be told to other sites: %q", p)
	}

	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MB
	res, err = c.Post(base+"/sum", "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, _ = io.ReadAll(res.Body)
	_ = res.Body.Close()
	if want := fmt.Sprintf("%d %x", len(body), sha256.Sum256(body)); string(got) != want {
		t.Errorf("an upload: %q, want %q", got, want)
	}

	res, err = c.Get(base + "/events") // never ends: what is read has come at once
	if err != nil {
		t.Fatal(err)
	}
	events := bufio.NewScanner(res.Body)
	for i := range 3 {
		if !events.Scan() || events.Text() != fmt.Sprintf("data: %d", i) || !events.Scan() {
			t.Fatalf("event %d: %q: %v", i, events.Text(), events.Err())
		}
	}
	_ = res.Body.Close()

	// A lost link costs the requests on it, and the next one goes through; the
	// browser is still let in.
	if s.KillConnections() == 0 {
		t.Error("there was no connection")
	}
	if res, err = c.Get(base + "/headers"); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("after a cut: %v %v", res, err)
	}
	_ = res.Body.Close()
}

func TestWebsocketPassesTheDoorAndEndsWithTheTunnel(t *testing.T) {
	tunnel := forwardHTTP(t, openTest(t, sshdtest.Start(t)), strings.TrimPrefix(site(t).URL, "http://"), "")
	c, base := browser(t, tunnel)
	req, _ := http.NewRequest(http.MethodGet, base+"/ws", nil)
	for _, cookie := range c.Jar.Cookies(req.URL) {
		req.AddCookie(cookie)
	}
	req.Header.Set("Origin", base)
	req.Header.Set("Upgrade", "websocket")
	req.Header.Set("Connection", "Upgrade")
	conn, err := net.Dial("tcp", tunnel.plainHost())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	for _, text := range []string{"hello", strings.Repeat("x", 100_000)} {
		go func() { _, _ = io.WriteString(conn, text) }()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
			t.Fatalf("%d bytes came back, %v", len(got), err)
		}
	}
	if err := tunnel.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err == nil || errTimeout(err) == err {
		t.Errorf("still open: %v", err)
	}
}

func TestHTTPForwardToWhereNobodyListensSaysSo(t *testing.T) {
	nobody := testport.Addr(t)
	tunnel := forwardHTTP(t, openTest(t, sshdtest.Start(t)), nobody, "")
	c, base := browserAt(t, tunnel)
	res, err := c.Get(base + "/?" + TicketKey + "=" + tunnel.Ticket())
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(string(text), nobody) {
		t.Errorf("%s: %s", res.Status, text)
	}
	if st := tunnel.State(); !st.Connected || !strings.Contains(st.Why, nobody) {
		t.Errorf("the tunnel says %+v", st)
	}
}

func TestServerIsAskedByANameThatItKnowsAndLeadsBackByTheTunnels(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/whole": // an address as some servers write it, from Host
			w.Header().Set("Location", "http://"+r.Host+"/there?x=1")
			w.WriteHeader(http.StatusFound)
		case "/away":
			w.Header().Set("Location", "https://"+r.Host+"/")
			w.WriteHeader(http.StatusFound)
		default:
			w.Header().Set("Referrer-Policy", "no-referrer")
			fmt.Fprintf(w, "%s|%s", r.Header.Get("Origin"), r.Referer())
		}
	}))
	t.Cleanup(web.Close)
	tunnel := forwardHTTP(t, openTest(t, sshdtest.Start(t)), strings.TrimPrefix(web.URL, "http://"), "known")
	c, base := browser(t, tunnel)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(address string, headers ...string) (*http.Response, string) {
		t.Helper()
		req, _ := http.NewRequest(http.MethodPost, address, nil)
		for _, h := range headers {
			key, value, _ := strings.Cut(h, ": ")
			req.Header.Set(key, value)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res, string(text)
	}
	plain := "http://" + tunnel.plainHost()
	if res, text := ask(base+"/", "Origin: "+base, "Referer: "+base+"/lab"); text != plain+"|"+plain+"/lab" || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%q, %v", text, res.Header)
	}
	if res, _ := ask(base + "/whole"); res.Header.Get("Location") != base+"/there?x=1" {
		t.Errorf("it leads to %q", res.Header.Get("Location"))
	}
	if res, _ := ask(base + "/away"); res.Header.Get("Location") != "https://"+tunnel.plainHost()+"/" {
		t.Errorf("another site's address was changed to %q", res.Header.Get("Location"))
	}
	// A program with the server's own token stays at the address.
	if res, _ := ask(plain+"/whole", "Authorization: token known"); res.Header.Get("Location") != plain+"/there?x=1" {
		t.Errorf("a program is led to %q", res.Header.Get("Location"))
	}
}
