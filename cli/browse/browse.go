// Package browse shows an address in the user's browser. A ticket in it must not
// stand in an argument list, which every user of the machine can read: the
// browser is given a page instead, a file that only its user can read, and the
// page brings the ticket to the tunnel in the body of a form.
package browse

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/ownfile"
	"github.com/dlwb/dlwb/remote"
)

// pageLife is how long a page lies there: a browser may take a while to start.
const pageLife = time.Minute

// Browser opens addresses. The pages that it wrote are removed after a minute,
// and by Close; one that a killed dlwb left goes with the next, and its ticket
// ended with that dlwb.
type Browser struct {
	state string

	mu    sync.Mutex
	pages []string
}

// New makes a browser whose pages lie below the state directory.
func New(state string) *Browser { return &Browser{state: state} }

// Close removes the pages that are left.
func (b *Browser) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, page := range b.pages {
		_ = os.Remove(page)
	}
	b.pages = nil
}

// Open shows an address.
func (b *Browser) Open(address string) error {
	name, args, err := opener()
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	if u.Query().Has(remote.TicketKey) {
		if address, err = b.write(u); err != nil {
			return fmt.Errorf("write the page that leads the browser to the tunnel: %w", err)
		}
	}
	cmd := exec.Command(name, append(args, address)...) // no stdout or stderr of ours: the screen owns them
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// write writes the page for an address, for a minute, and gives its own address.
func (b *Browser) write(u *url.URL) (string, error) {
	page, err := writePage(pageDir(b.state), u)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	b.pages = append(b.pages, page)
	b.mu.Unlock()
	time.AfterFunc(pageLife, func() { _ = os.Remove(page) })
	return fileURL(page), nil
}

// opener is the command that opens an address.
func opener() (name string, args []string, err error) {
	switch runtime.GOOS {
	case "darwin":
		return "open", nil, nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}, nil
	}
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return "", nil, errors.New("there is no display to open a browser on")
	}
	return "xdg-open", nil, nil
}

// pages are the names of our pages.
const pages = "open-*.html"

// pageDir is where the browser can read a page. A browser that is a snap reads
// no hidden directories, but one of its own.
func pageDir(state string) string {
	if runtime.GOOS == "linux" {
		if own := snapDir(); own != "" {
			return filepath.Join(own, "dlwb")
		}
	}
	return filepath.Join(state, "open")
}

// snapDir is the directory of the default browser when it is a snap: its desktop
// file has a name like firefox_firefox.desktop.
func snapDir() string {
	const limit = 3 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	said, err := exec.CommandContext(ctx, "xdg-settings", "get", "default-web-browser").Output()
	home, homeErr := os.UserHomeDir()
	if err != nil || homeErr != nil {
		return ""
	}
	snap, _, is := strings.Cut(strings.TrimSpace(string(said)), "_")
	own := filepath.Join(home, "snap", filepath.Base(snap), "common")
	if info, err := os.Stat(own); !is || err != nil || !info.IsDir() {
		return ""
	}
	return own
}

// writePage writes the page that brings the ticket of an address to its tunnel.
func writePage(dir string, u *url.URL) (string, error) {
	if err := ownfile.MakeDir(dir); err != nil {
		return "", err
	}
	removeOld(dir)
	f, err := os.CreateTemp(dir, pages) // 0600
	if err != nil {
		return "", err
	}
	query := u.Query()
	ticket := query.Get(remote.TicketKey)
	query.Del(remote.TicketKey)
	enter := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: remote.EnterPath}).String()
	to := (&url.URL{Path: u.Path, RawQuery: query.Encode()}).String()
	_, err = f.WriteString(pageOf(enter, [][2]string{{remote.TicketKey, ticket}, {remote.ToKey, to}}))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// removeOld removes pages that nobody needs any more.
func removeOld(dir string) {
	found, _ := fs.Glob(os.DirFS(dir), pages)
	for _, name := range found {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > pageLife {
			_ = os.Remove(path)
		}
	}
}

// fileURL is the address of a file.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // file:///C:/… on Windows
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// pageOf is the page that sends a form by itself; without scripts there is a
// button. It is written without html/template: see internal/archtest.
func pageOf(enter string, fields [][2]string) string {
	var inputs strings.Builder
	for _, field := range fields {
		fmt.Fprintf(&inputs, "<input type=\"hidden\" name=\"%s\" value=\"%s\">\n", html.EscapeString(field[0]), html.EscapeString(field[1]))
	}
	return `<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>dlwb</title>
<form method="post" action="` + html.EscapeString(enter) + `">
` + inputs.String() + `<button>Go on to the tunnel</button>
</form>
<script>document.forms[0].submit()</script>
`
}
