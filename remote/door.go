package remote

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// TicketKey is the key of a ticket in an address.
	TicketKey = "dlwb_token"
	// EnterPath is where a form brings a ticket in its body, under TicketKey,
	// and in ToKey the path to go on to: no address shows it then.
	EnterPath = "/_dlwb/enter"
	// ToKey is the key of the path in such a form.
	ToKey = "to"
	// TicketLife is how long a ticket is good.
	TicketLife = 15 * time.Minute
	// cookiePrefix is what the names of our cookies begin with. Browsers keep
	// cookies by host and not by port: the name has the port, and the host is
	// one that no other port has.
	cookiePrefix = "dlwb_"
	// mostTickets and mostSessions bound what is kept; the oldest go first.
	mostTickets  = 16
	mostSessions = 64
	// mostForm bounds the body of the form.
	mostForm = 8 << 10
)

// door decides who gets through to an HTTP server at the far end of a tunnel.
// A port on loopback is open to every program and every web page on this
// machine, so a request is passed on only when
//
//   - it names the tunnel's own host, which is made up for it: no cookie of it
//     goes to another port, and no other name was made to lead here;
//   - it comes from no other site, save a plain visit (cross-site requests);
//   - it has the cookie that a ticket was changed for: other users have none.
//
// A program that shows the server's own token needs no cookie, and no name.
type door struct {
	host   string   // that a browser names
	plain  []string // that a program with the server's token may name
	cookie string
	token  [32]byte // hash of the server's own token
	owned  bool     // it has one

	mu       sync.Mutex
	tickets  []pass // not spent yet, oldest first
	sessions []pass // of browsers that were let in, oldest first
}

// pass is the hash of a secret, and when it ends. Equal hashes can be compared
// in any time.
type pass struct {
	hash [sha256.Size]byte
	ends time.Time // zero: with the door
}

func newDoor(name string, port int, token string) *door {
	p := strconv.Itoa(port)
	d := &door{cookie: cookiePrefix + p, owned: token != "", token: sha256.Sum256([]byte(token))}
	d.host, d.plain = ownHost(name)+":"+p, []string{"127.0.0.1:" + p, "localhost:" + p, "[::1]:" + p}
	if port == 80 {
		d.host, d.plain = strings.TrimSuffix(d.host, ":80"), append(d.plain, "127.0.0.1", "localhost", "[::1]")
	}
	return d
}

// ownHost makes a host name that nobody can guess. Names below localhost lead
// to this machine (RFC 6761); browsers know them without asking anybody. With
// one that can be guessed, another user could listen on another port, lead the
// browser there, and be sent the cookie.
func ownHost(name string) string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	label := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	text := strings.Join(append(label, ""), "-")
	const most = 40 // a label has 63 bytes at most
	if len(text) > most {
		text = strings.TrimRight(text[:most], "-") + "-"
	}
	return text + strings.ToLower(base32.StdEncoding.EncodeToString(b[:])) + ".localhost"
}

// newSecret makes a secret and keeps its hash, with at most so many others.
func (d *door) newSecret(kept *[]pass, most int, ends time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	text := hex.EncodeToString(b[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	*kept = append(*kept, pass{sha256.Sum256([]byte(text)), ends})
	*kept = (*kept)[max(0, len(*kept)-most):]
	return text
}

func (d *door) ticket() string {
	return d.newSecret(&d.tickets, mostTickets, time.Now().Add(TicketLife))
}

// spend reports whether a ticket is good. It is good once, for a while.
func (d *door) spend(text string) bool {
	hash := sha256.Sum256([]byte(text))
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.tickets, func(p pass) bool { return p.hash == hash })
	if i < 0 {
		return false
	}
	ends := d.tickets[i].ends
	d.tickets = slices.Delete(d.tickets, i, i+1)
	return time.Now().Before(ends)
}

// inside reports whether a request is of somebody who was let in.
func (d *door) inside(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(r.CookiesNamed(d.cookie), func(c *http.Cookie) bool {
		hash := sha256.Sum256([]byte(c.Value))
		return slices.ContainsFunc(d.sessions, func(p pass) bool { return p.hash == hash })
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
		if d.isForm(r) {
			d.admitForm(w, r)
			return
		}
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
	if !d.named(r) && !(d.knowsToken(r) && slices.Contains(d.plain, strings.ToLower(r.Host))) {
		return "this tunnel has a name of its own, which dlwb forward prints and y on dlwb's screen copies"
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

// named reports whether a request names the tunnel's own host.
func (d *door) named(r *http.Request) bool { return strings.EqualFold(r.Host, d.host) }

// isForm knows the form that brings a ticket. It comes from a file and so from
// no site at all; the ticket says whose it is.
func (d *door) isForm(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == EnterPath && d.named(r)
}

func (d *door) admitForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if r.ParseForm() != nil || !d.letIn(w, r.PostForm.Get(TicketKey)) {
		refuse(w, usedUp)
		return
	}
	to, err := url.Parse(r.PostForm.Get(ToKey))
	if err != nil {
		to = &url.URL{Path: "/"}
	}
	leadOn(w, cleanAddress(to))
}

const usedUp = "this address was used before, or it is an old one. dlwb forward prints a fresh one, and so does its key on dlwb's screen; each lets one browser in, once"

// letIn changes a ticket for a cookie.
func (d *door) letIn(w http.ResponseWriter, ticket string) bool {
	if !d.spend(ticket) {
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: d.cookie, Value: d.newSecret(&d.sessions, mostSessions, time.Time{}), Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return true
}

// leadOn is a page of ours that goes on to an address. After a redirect the
// visit would still count as that of the site it came from, and the cookie
// would not be sent.
func leadOn(w http.ResponseWriter, to string) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><meta http-equiv="refresh" content="0;url=%s">`, html.EscapeString(to))
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
	if !d.letIn(w, r.URL.Query().Get(TicketKey)) && !d.inside(r) {
		refuse(w, usedUp)
		return
	}
	clean := cleanAddress(r.URL)
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		leadOn(w, clean) // somebody came by a link on another site's page
		return
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, clean, http.StatusSeeOther)
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
