package remote

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// visit is one request to a door, and what came of it.
type visit struct {
	method, path string
	headers      []string // "Key: value", where {own} is the tunnel's host
	body         string   // of a form
}

func (v visit) to(d *door) *http.Response {
	if v.method == "" {
		v.method = http.MethodGet
	}
	r := httptest.NewRequest(v.method, v.path, nil)
	r.Host = d.host
	if v.body != "" {
		r.Body = io.NopCloser(strings.NewReader(v.body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range v.headers {
		key, value, _ := strings.Cut(strings.ReplaceAll(h, "{own}", d.host), ": ")
		if key == "Host" {
			r.Host = value
		}
		r.Header.Add(key, value)
	}
	w := httptest.NewRecorder()
	d.before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "inside")
	})).ServeHTTP(w, r)
	return w.Result()
}

func (v visit) with(headers ...string) visit {
	v.headers = append(append([]string{}, v.headers...), headers...)
	return v
}

// enter spends a ticket and gives the cookie as a header.
func enter(t *testing.T, d *door) string {
	t.Helper()
	r := visit{path: "/?" + TicketKey + "=" + d.ticket()}.to(d)
	if len(r.Cookies()) != 1 || r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d, cookies %v", r.StatusCode, r.Cookies())
	}
	c := r.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Name != "dlwb_8888" || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %v", c)
	}
	return "Cookie: " + c.Name + "=" + c.Value
}

func TestOnlyPagesOfOursGetThroughTheDoor(t *testing.T) {
	d := newDoor("jupyter-charlm", 8888, "server-token")
	cookie := enter(t, d)
	for _, c := range []struct {
		name string
		visit
		want int
	}{
		{"with the cookie", visit{path: "/"}.with(cookie), 200},
		{"in capitals", visit{path: "/"}.with(cookie, "Host: "+strings.ToUpper(d.host)), 200},
		{"with the cookie, by the address", visit{path: "/"}.with(cookie, "Host: 127.0.0.1:8888"), 403},
		{"with the cookie, by localhost", visit{path: "/"}.with(cookie, "Host: localhost:8888"), 403},
		{"with the cookie, by the name of another tunnel", visit{path: "/"}.with(cookie, "Host: jupyter-charlm-aaaaaaaa.localhost:8888"), 403},
		{"with the cookie, by a name below this one", visit{path: "/"}.with(cookie, "Host: x.{own}"), 403},
		{"without a cookie", visit{path: "/"}, 403},
		{"with a made-up cookie", visit{path: "/"}.with("Cookie: dlwb_8888=00"), 403},
		{"with the cookie of another port", visit{path: "/"}.with(strings.Replace(cookie, "8888", "6006", 1)), 403},
		{"a name that was made to lead here", visit{path: "/"}.with(cookie, "Host: evil.example:8888"), 403},
		{"the right name, another port", visit{path: "/"}.with(cookie, "Host: "+strings.Replace(d.host, ":8888", ":8889", 1)), 403},
		{"no port", visit{path: "/"}.with(cookie, "Host: "+strings.TrimSuffix(d.host, ":8888")), 403},
		{"an address within a name", visit{path: "/"}.with(cookie, "Host: {own}.evil.example"), 403},
		{"a form of another site", visit{method: "POST", path: "/"}.with(cookie, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 403},
		{"an old browser's form of another site", visit{method: "POST", path: "/"}.with(cookie, "Origin: https://evil.example"), 403},
		{"a sandboxed page", visit{method: "POST", path: "/"}.with(cookie, "Origin: null"), 403},
		{"two origins", visit{path: "/"}.with(cookie, "Origin: http://{own}", "Origin: https://evil.example"), 403},
		{"a server on another port", visit{path: "/api"}.with(cookie, "Origin: http://127.0.0.1:9999", "Sec-Fetch-Site: same-site"), 403},
		{"our own page", visit{method: "POST", path: "/api"}.with(cookie, "Origin: http://{own}", "Sec-Fetch-Site: same-origin"), 200},
		{"a page of the address asking the name", visit{method: "POST", path: "/api"}.with(cookie, "Origin: http://127.0.0.1:8888"), 403},
		{"a page of another tunnel", visit{method: "POST", path: "/api"}.with(cookie, "Origin: http://tensorboard-charlm-aaaaaaaa.localhost:6006", "Sec-Fetch-Site: same-site"), 403},
		{"https of the same name", visit{path: "/"}.with(cookie, "Origin: https://{own}"), 403},
		{"a picture in another site's page", visit{path: "/"}.with(cookie, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"), 403},
		{"a frame in another site's page", visit{path: "/"}.with(cookie, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"), 403},
		{"a link on another site's page", visit{path: "/"}.with(cookie, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 200},
		{"the same, with no cookie", visit{path: "/"}.with("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 403},
		{"a websocket of another site", visit{path: "/ws"}.with(cookie, "Upgrade: websocket", "Connection: Upgrade", "Origin: https://evil.example"), 403},
		{"a websocket of our page", visit{path: "/ws"}.with(cookie, "Upgrade: websocket", "Connection: Upgrade", "Origin: http://{own}"), 200},
		{"a program that knows the server's token", visit{path: "/api"}.with("Authorization: token server-token"), 200},
		{"the same by the address", visit{path: "/api"}.with("Authorization: token server-token", "Host: 127.0.0.1:8888"), 200},
		{"the same by the IPv6 address", visit{path: "/api"}.with("Authorization: token server-token", "Host: [::1]:8888"), 200},
		{"the same by another name", visit{path: "/api"}.with("Authorization: token server-token", "Host: evil.example:8888"), 403},
		{"the same in the address", visit{path: "/api?token=server-token"}, 200},
		{"another token", visit{path: "/api?token=other"}, 403},
		{"no token at all", visit{path: "/api?token="}, 403},
		{"the server's token from another site", visit{path: "/api?token=server-token"}.with("Origin: https://evil.example"), 403},
	} {
		if r := c.to(d); r.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", c.name, r.StatusCode, c.want)
		}
	}
	if r := (visit{path: "/api?token="}).to(newDoor("jupyter-charlm", 8888, "")); r.StatusCode != 403 {
		t.Errorf("an empty token where the server has none: status %d", r.StatusCode)
	}
}

func TestTicketIsGoodOnceAndLeavesTheAddressClean(t *testing.T) {
	d := newDoor("jupyter-charlm", 8888, "")
	ticket := d.ticket()
	address := func(path string) visit { return visit{path: strings.Replace(path, "TICKET", TicketKey+"="+ticket, 1)} }
	for _, refused := range []visit{
		address("/?TICKET").with("Host: evil.example"),
		address("/?TICKET").with("Sec-Purpose: prefetch;prerender"),
		address("/?TICKET").with("Origin: https://evil.example"),
		{method: "POST", path: "/?" + TicketKey + "=" + ticket},
		{path: "/?" + TicketKey + "="},
		{path: "/?" + TicketKey + "=" + strings.Repeat("0", 32)},
	} {
		if r := refused.to(d); r.StatusCode != 403 || len(r.Cookies()) != 0 {
			t.Errorf("%v: status %d, cookies %v", refused, r.StatusCode, r.Cookies())
		}
	}
	first := address("/lab/tree?a=1&TICKET&b=%2F+x").to(d)
	if to := first.Header.Get("Location"); first.StatusCode != 303 || to != "/lab/tree?a=1&b=%2F+x" || len(first.Cookies()) != 1 {
		t.Fatalf("status %d to %q, cookies %v", first.StatusCode, to, first.Cookies())
	}
	if second := address("/?TICKET").to(d); second.StatusCode != 403 || len(second.Cookies()) != 0 {
		t.Errorf("the second time: status %d, cookies %v", second.StatusCode, second.Cookies())
	}
	// In the browser that was let in, an old address still leads there.
	cookie := "Cookie: dlwb_8888=" + first.Cookies()[0].Value
	if again := address("/?TICKET").with(cookie).to(d); again.StatusCode != 303 || again.Header.Get("Location") != "/" {
		t.Errorf("in the same browser: status %d to %q", again.StatusCode, again.Header.Get("Location"))
	}
}

func TestTicketNeverLeadsToAnotherSite(t *testing.T) {
	d := newDoor("jupyter-charlm", 8888, "")
	for _, path := range []string{"//evil.example/x", "/%5Cevil.example", "///evil.example", "/\\evil.example"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = d.host
		u, err := r.URL.Parse("http://" + d.host + strings.ReplaceAll(path, `\`, "%5C") + "?" + TicketKey + "=" + d.ticket())
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		w := httptest.NewRecorder()
		d.before(http.NotFoundHandler()).ServeHTTP(w, r)
		if to := w.Result().Header.Get("Location"); strings.HasPrefix(to, "//") || strings.HasPrefix(to, `/\`) || !strings.HasPrefix(to, "/") {
			t.Errorf("%s leads to %q", path, to)
		}
	}
}

func TestTicketOnALinkOfAnotherSiteLeadsOnFromAPageOfOurs(t *testing.T) {
	d := newDoor("jupyter-charlm", 8888, "")
	r := visit{path: "/x?" + TicketKey + "=" + d.ticket()}.with(
		"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document").to(d)
	if r.StatusCode != 200 || len(r.Cookies()) != 1 || r.Header.Get("Location") != "" {
		t.Errorf("status %d, cookies %v, to %q", r.StatusCode, r.Cookies(), r.Header.Get("Location"))
	}
}

func TestOldTicketsGoFirst(t *testing.T) {
	d := newDoor("jupyter-charlm", 8888, "")
	oldest := d.ticket()
	for range mostTickets {
		d.ticket()
	}
	if d.spend(oldest) {
		t.Error("the oldest of too many is still good")
	}
	if len(d.tickets) != mostTickets {
		t.Errorf("%d tickets are kept", len(d.tickets))
	}
}

func TestCookiesOfOursDoNotTravel(t *testing.T) {
	h := http.Header{"Cookie": {"_xsrf=2|a; dlwb_8888=secret; user=ada", "dlwb_6006=other"}}
	if stripCookies(h); len(h["Cookie"]) != 1 || h.Get("Cookie") != "_xsrf=2|a; user=ada" {
		t.Errorf("the node gets %q", h["Cookie"])
	}
	h = http.Header{"Cookie": {"dlwb_8888=secret"}}
	if stripCookies(h); h.Values("Cookie") != nil {
		t.Errorf("the node gets %q", h["Cookie"])
	}
	h = http.Header{"Set-Cookie": {"a=b; Path=/", "dlwb_8888=planted", " dlwb_1=x"}}
	if stripSetCookies(h); len(h["Set-Cookie"]) != 1 || h.Get("Set-Cookie") != "a=b; Path=/" {
		t.Errorf("the browser gets %q", h["Set-Cookie"])
	}
}

// form brings a ticket as the page in a file does.
func form(ticket, to string) visit {
	return visit{method: "POST", path: EnterPath, body: url.Values{TicketKey: {ticket}, ToKey: {to}}.Encode()}.with(
		"Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
}

func TestFormBringsATicketThatNoAddressShows(t *testing.T) {
	d := newDoor("jupyter-charlm", 8888, "")
	ticket := d.ticket()
	for _, refused := range []visit{
		form("", "/"), form(strings.Repeat("0", 32), "/"),
		form(ticket, "/").with("Host: evil.example:8888"),
		form(ticket, "/").with("Host: 127.0.0.1:8888"),
		{method: "POST", path: "/", body: TicketKey + "=" + ticket},
		{method: "GET", path: EnterPath, body: TicketKey + "=" + ticket},
		{method: "POST", path: EnterPath + "?" + TicketKey + "=" + ticket, body: "a=b"},
	} {
		if r := refused.to(d); r.StatusCode != 403 || len(r.Cookies()) != 0 {
			t.Errorf("%v: status %d, cookies %v", refused, r.StatusCode, r.Cookies())
		}
	}
	r := form(ticket, "/lab?a=1").to(d)
	page, _ := io.ReadAll(r.Body)
	if r.StatusCode != 200 || len(r.Cookies()) != 1 || !strings.Contains(string(page), `content="0;url=/lab?a=1"`) {
		t.Fatalf("status %d, cookies %v: %s", r.StatusCode, r.Cookies(), page)
	}
	if in := (visit{path: "/lab"}).with("Cookie: dlwb_8888=" + r.Cookies()[0].Value).to(d); in.StatusCode != 200 {
		t.Errorf("with its cookie: %d", in.StatusCode)
	}
	if again := form(ticket, "/lab").to(d); again.StatusCode != 403 {
		t.Errorf("the second time: %d", again.StatusCode)
	}
	away := form(d.ticket(), "//evil.example/x").to(d)
	if page, _ := io.ReadAll(away.Body); !strings.Contains(string(page), `content="0;url=/x"`) {
		t.Errorf("it leads to %s", page)
	}
}

func TestTicketEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor("jupyter", 8888, "")
		ticket := d.ticket()
		time.Sleep(TicketLife)
		if d.spend(ticket) {
			t.Error("an old ticket is good")
		}
		if ticket = d.ticket(); !d.spend(ticket) {
			t.Error("a fresh one is not")
		}
	})
}

func TestEachTunnelHasAHostOfItsOwn(t *testing.T) {
	for name, begins := range map[string]string{
		"jupyter-charlm": "jupyter-charlm-", "8265-My_Run.2": "8265-my-run-2-", "": "", "--": "", "xn--x": "xn-x-",
		strings.Repeat("long-", 30): "long-long-long-long-long-long-long-long-",
		"\x1b]0;x\a" + "é":          "0-x-",
	} {
		host := ownHost(name)
		label, is := strings.CutSuffix(host, ".localhost")
		if random, ok := strings.CutPrefix(label, begins); !is || !ok || len(random) != 8 || len(label) > 63 || ownHost(name) == host {
			t.Errorf("%q has the host %s", name, host)
		}
		if u, err := url.Parse("http://" + host + ":8888/"); err != nil || u.Hostname() != host {
			t.Errorf("%q: %v", host, err)
		}
	}
	if d := newDoor("x", 80, ""); strings.Contains(d.host, ":") {
		t.Errorf("on port 80 browsers name %s", d.host)
	}
}
