package remote

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// TicketKey is the key of a ticket in an address.
	TicketKey = "dlwb_token"
	// cookiePrefix is what the names of our cookies begin with. Browsers keep
	// cookies by host and not by port, so each port has a name of its own.
	cookiePrefix = "dlwb_"
	// mostTickets and mostSessions bound what is kept; the oldest go first.
	mostTickets  = 16
	mostSessions = 64
)

// door decides who gets through to an HTTP server at the far end of a tunnel.
// A port on loopback is open to every program and every web page on this
// machine, so a request is passed on only when
//
//   - its Host is ours: no other name was made to lead here (DNS rebinding);
//   - it comes from no other site, save a plain visit (cross-site requests);
//   - it has the cookie that a ticket was changed for: other users have none.
type door struct {
	hosts  []string // that a request may name
	cookie string
	token  [32]byte // hash of the server's own token
	owned  bool     // it has one

	mu       sync.Mutex
	tickets  []secret // not spent yet, oldest first
	sessions []secret // of browsers that were let in, oldest first
}

// secret is the hash of a secret: equal hashes can be compared in any time.
type secret = [sha256.Size]byte

func newDoor(port int, token string) *door {
	p := strconv.Itoa(port)
	d := &door{hosts: []string{"127.0.0.1:" + p, "localhost:" + p}, cookie: cookiePrefix + p, owned: token != "", token: sha256.Sum256([]byte(token))}
	if port == 80 {
		d.hosts = append(d.hosts, "127.0.0.1", "localhost")
	}
	return d
}

// newSecret makes a secret and keeps its hash, with at most so many others.
func (d *door) newSecret(kept *[]secret, most int) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	text := hex.EncodeToString(b[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	*kept = append(*kept, sha256.Sum256([]byte(text)))
	*kept = (*kept)[max(0, len(*kept)-most):]
	return text
}

func (d *door) ticket() string { return d.newSecret(&d.tickets, mostTickets) }

// spend reports whether a ticket is good. It is good once.
func (d *door) spend(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.tickets, sha256.Sum256([]byte(text)))
	if i >= 0 {
		d.tickets = slices.Delete(d.tickets, i, i+1)
	}
	return i >= 0
}

// inside reports whether a request is of somebody who was let in.
func (d *door) inside(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(r.CookiesNamed(d.cookie), func(c *http.Cookie) bool {
		return slices.Contains(d.sessions, sha256.Sum256([]byte(c.Value)))
	})
}

// knowsToken reports whether a request shows the server's own token: programs
// that use it, such as an editor, keep no cookies.
func (d *door) knowsToken(r *http.Request) bool {
	_, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if shown == "" {
		shown = r.URL.Query().Get("token")
	}
	return d.owned && sha256.Sum256([]byte(shown)) == d.token
}

// before puts the door in front of a server.
func (d *door) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := d.foreign(r); why != "" {
			refuse(w, why)
			return
		}
		if r.Method == http.MethodGet && r.URL.Query().Has(TicketKey) {
			d.admit(w, r)
			return
		}
		if !d.inside(r) && !d.knowsToken(r) {
			refuse(w, "this browser was not let in, or dlwb was started again. dlwb forward prints a fresh address, and so does its key on dlwb's screen; each lets one browser in, once")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign says why a request can't be one of our own pages'; empty when it may.
func (d *door) foreign(r *http.Request) string {
	if !slices.Contains(d.hosts, strings.ToLower(r.Host)) {
		return "dlwb answers to the name " + d.hosts[0] + " only"
	}
	if r.Header.Values("Origin") != nil && !d.isOwn(r.Header.Values("Origin"), r.Host) {
		return "a page of another site asks for it"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	// Another port of this machine is "same-site", and another's all the same.
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" &&
		r.Header.Get("Upgrade") == "" {
		return ""
	}
	return "a page of another site asks for it"
}

func (d *door) isOwn(origins []string, host string) bool {
	return len(origins) == 1 && strings.EqualFold(origins[0], "http://"+host)
}

// admit changes a ticket for a cookie and leads to the address without it. A
// browser that was let in already needs none.
func (d *door) admit(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose"), "prefetch") {
		refuse(w, "a ticket is for a visit, not for a look ahead")
		return
	}
	if d.spend(r.URL.Query().Get(TicketKey)) {
		http.SetCookie(w, &http.Cookie{Name: d.cookie, Value: d.newSecret(&d.sessions, mostSessions), Path: "/",
			HttpOnly: true, SameSite: http.SameSiteStrictMode})
	} else if !d.inside(r) {
		refuse(w, "this address was used before, or it is an old one. dlwb forward prints a fresh one, and so does its key on dlwb's screen; each lets one browser in, once")
		return
	}
	clean := cleanAddress(r.URL)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	if site := r.Header.Get("Sec-Fetch-Site"); site == "" || site == "none" || site == "same-origin" {
		http.Redirect(w, r, clean, http.StatusSeeOther)
		return
	}
	// Somebody came by a link on another site's page. A redirect would still
	// count as that site's, and the cookie would not be sent; this page is ours.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><meta http-equiv="refresh" content="0;url=%s">`, html.EscapeString(clean))
}

// cleanAddress is an address on the same server without the ticket. It never
// begins with "//", which would lead to another one.
func cleanAddress(u *url.URL) string {
	parts := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(part string) bool {
		return part == TicketKey || strings.HasPrefix(part, TicketKey+"=")
	})
	clean := "/" + strings.TrimLeft(u.EscapedPath(), "/")
	if query := strings.Join(parts, "&"); query != "" {
		clean += "?" + query
	}
	return clean
}

// refuse answers what does not get through. Nothing of it reaches the node.
func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "dlwb: not let through: "+why+".", http.StatusForbidden)
}

// stripCookies takes our cookies out of a request, those of all our ports: the
// node must not learn them. The others stay as they are.
func stripCookies(h http.Header) {
	var kept []string
	for _, line := range h.Values("Cookie") {
		for part := range strings.SplitSeq(line, ";") {
			if part = strings.TrimSpace(part); part != "" && !strings.HasPrefix(part, cookiePrefix) {
				kept = append(kept, part)
			}
		}
	}
	if h.Del("Cookie"); len(kept) > 0 {
		h.Set("Cookie", strings.Join(kept, "; "))
	}
}

// stripSetCookies keeps a node from setting cookies of ours.
func stripSetCookies(h http.Header) {
	all := h.Values("Set-Cookie")
	kept := slices.DeleteFunc(slices.Clone(all), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), cookiePrefix)
	})
	if len(kept) < len(all) {
		h["Set-Cookie"] = kept
	}
}
