package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// visit is one request to a door, and what came of it.
type visit struct {
	method, path string
	headers      []string // "Key: value"
}

func (v visit) to(d *door) *http.Response {
	if v.method == "" {
		v.method = http.MethodGet
	}
	r := httptest.NewRequest(v.method, v.path, nil)
	r.Host = "127.0.0.1:8888"
	for _, h := range v.headers {
		key, value, _ := strings.Cut(h, ": ")
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
	d := newDoor(8888, "server-token")
	cookie := enter(t, d)
	for _, c := range []struct {
		name string
		visit
		want int
	}{
		{"with the cookie", visit{path: "/"}.with(cookie), 200},
		{"by the other name", visit{path: "/"}.with(cookie, "Host: localhost:8888"), 200},
		{"without a cookie", visit{path: "/"}, 403},
		{"with a made-up cookie", visit{path: "/"}.with("Cookie: dlwb_8888=00"), 403},
		{"with the cookie of another port", visit{path: "/"}.with(strings.Replace(cookie, "8888", "6006", 1)), 403},
		{"a name that was made to lead here", visit{path: "/"}.with(cookie, "Host: evil.example:8888"), 403},
		{"the right name, another port", visit{path: "/"}.with(cookie, "Host: 127.0.0.1:8889"), 403},
		{"no port", visit{path: "/"}.with(cookie, "Host: localhost"), 403},
		{"an address within a name", visit{path: "/"}.with(cookie, "Host: 127.0.0.1:8888.evil.example"), 403},
		{"a form of another site", visit{method: "POST", path: "/"}.with(cookie, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 403},
		{"an old browser's form of another site", visit{method: "POST", path: "/"}.with(cookie, "Origin: https://evil.example"), 403},
		{"a sandboxed page", visit{method: "POST", path: "/"}.with(cookie, "Origin: null"), 403},
		{"two origins", visit{path: "/"}.with(cookie, "Origin: http://127.0.0.1:8888", "Origin: https://evil.example"), 403},
		{"a server on another port", visit{path: "/api"}.with(cookie, "Origin: http://127.0.0.1:9999", "Sec-Fetch-Site: same-site"), 403},
		{"our own page", visit{method: "POST", path: "/api"}.with(cookie, "Origin: http://127.0.0.1:8888", "Sec-Fetch-Site: same-origin"), 200},
		{"our own page by the other name", visit{method: "POST", path: "/api"}.with(cookie, "Host: localhost:8888", "Origin: http://localhost:8888"), 200},
		{"one name's page asking the other", visit{method: "POST", path: "/api"}.with(cookie, "Host: localhost:8888", "Origin: http://127.0.0.1:8888"), 403},
		{"https of the same name", visit{path: "/"}.with(cookie, "Origin: https://127.0.0.1:8888"), 403},
		{"a picture in another site's page", visit{path: "/"}.with(cookie, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"), 403},
		{"a frame in another site's page", visit{path: "/"}.with(cookie, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"), 403},
		{"a link on another site's page", visit{path: "/"}.with(cookie, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 200},
		{"the same, with no cookie", visit{path: "/"}.with("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 403},
		{"a websocket of another site", visit{path: "/ws"}.with(cookie, "Upgrade: websocket", "Connection: Upgrade", "Origin: https://evil.example"), 403},
		{"a websocket of our page", visit{path: "/ws"}.with(cookie, "Upgrade: websocket", "Connection: Upgrade", "Origin: http://127.0.0.1:8888"), 200},
		{"a program that knows the server's token", visit{path: "/api"}.with("Authorization: token server-token"), 200},
		{"the same in the address", visit{path: "/api?token=server-token"}, 200},
		{"another token", visit{path: "/api?token=other"}, 403},
		{"no token at all", visit{path: "/api?token="}, 403},
		{"the server's token from another site", visit{path: "/api?token=server-token"}.with("Origin: https://evil.example"), 403},
	} {
		if r := c.to(d); r.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", c.name, r.StatusCode, c.want)
		}
	}
	if r := (visit{path: "/api?token="}).to(newDoor(8888, "")); r.StatusCode != 403 {
		t.Errorf("an empty token where the server has none: status %d", r.StatusCode)
	}
}

func TestTicketIsGoodOnceAndLeavesTheAddressClean(t *testing.T) {
	d := newDoor(8888, "")
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
	d := newDoor(8888, "")
	for _, path := range []string{"//evil.example/x", "/%5Cevil.example", "///evil.example", "/\\evil.example"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = "127.0.0.1:8888"
		u, err := r.URL.Parse("http://127.0.0.1:8888" + strings.ReplaceAll(path, `\`, "%5C") + "?" + TicketKey + "=" + d.ticket())
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
	d := newDoor(8888, "")
	r := visit{path: "/x?" + TicketKey + "=" + d.ticket()}.with(
		"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document").to(d)
	if r.StatusCode != 200 || len(r.Cookies()) != 1 || r.Header.Get("Location") != "" {
		t.Errorf("status %d, cookies %v, to %q", r.StatusCode, r.Cookies(), r.Header.Get("Location"))
	}
}

func TestOldTicketsGoFirst(t *testing.T) {
	d := newDoor(8888, "")
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
