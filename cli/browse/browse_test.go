//go:build linux

package browse

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/otheruser"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote"
)

const ticket = "0123456789abcdef0123456789abcdef"

// desk is a home with a browser that notes what it was asked to open and stays
// there, with the address in its argument list.
type desk struct {
	t          *testing.T
	home, said string
	pid        string
}

func newDesk(t *testing.T, defaultBrowser string) *desk {
	t.Helper()
	home := t.TempDir()
	d := &desk{t, home, filepath.Join(home, "said"), filepath.Join(home, "pid")}
	for name, text := range map[string]string{
		"xdg-open":     "echo $$ >" + d.pid + "\nprintf '%s\\n' \"$@\" >" + d.said + ".new\nmv " + d.said + ".new " + d.said + "\nmkfifo " + home + "/never\nread -r _ <>" + home + "/never",
		"xdg-settings": "echo " + defaultBrowser,
	} {
		if err := testprogram.Write(filepath.Join(home, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", home+":"+os.Getenv("PATH"))
	t.Setenv("HOME", home)
	t.Setenv("DISPLAY", ":7")
	return d
}

// opened waits for what the browser was asked to open.
func (d *desk) opened() string {
	d.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if said, err := os.ReadFile(d.said); err == nil {
			return strings.TrimSpace(string(said))
		}
	}
	d.t.Fatal("no browser was started")
	return ""
}

// fields are what the form of a page sends, and where.
func fields(page string) (action string, form url.Values) {
	form = url.Values{}
	for _, m := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		form.Set(m[1], strings.NewReplacer("&#43;", "+", "&amp;", "&").Replace(m[2]))
	}
	if m := regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(page); m != nil {
		action = m[1]
	}
	return action, form
}

func TestTicketReachesTheTunnelByAPageThatOnlyItsUserReads(t *testing.T) {
	d := newDesk(t, "firefox.desktop")
	came := make(chan url.Values, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		r.PostForm.Set("path", r.URL.RequestURI())
		came <- r.PostForm
	}))
	defer server.Close()
	for dir := d.home; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // as a home is that others may enter
			t.Fatal(err)
		}
	}
	state := filepath.Join(d.home, "state")
	b := New(state)
	defer b.Close()
	if err := b.Open(server.URL + "/lab?a=1&" + remote.TicketKey + "=" + ticket); err != nil {
		t.Fatal(err)
	}
	asked := d.opened()
	path, is := strings.CutPrefix(asked, "file://")
	if !is || !strings.HasPrefix(path, state+"/open/") {
		t.Fatalf("the browser was asked to open %q", asked)
	}
	for at, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	action, form := fields(string(page))
	res, err := http.PostForm(action, form)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	got := <-came
	if got.Get("path") != remote.EnterPath || got.Get(remote.TicketKey) != ticket || got.Get(remote.ToKey) != "/lab?a=1" {
		t.Errorf("the tunnel gets %v", got)
	}
	t.Run("another user", func(t *testing.T) {
		if said, code := otheruser.Run(t, "cat", path); code == 0 || strings.Contains(said, ticket) {
			t.Errorf("it reads %s", said)
		}
		if said, _ := otheruser.Run(t, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'"); !strings.Contains(said, asked) || strings.Contains(said, ticket) {
			t.Errorf("it finds the ticket, or not the browser, among what runs:\n%s", said)
		}
	})
	b.Close()
	if left, _ := filepath.Glob(state + "/open/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	d.end()
}

// end ends the browser.
func (d *desk) end() {
	d.t.Helper()
	text, _ := os.ReadFile(d.pid)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		d.t.Errorf("end the browser: %v", err)
	}
}

func TestAddressWithoutATicketIsOpenedAsItIs(t *testing.T) {
	d := newDesk(t, "firefox.desktop")
	b := New(filepath.Join(d.home, "state"))
	defer b.Close()
	if err := b.Open("http://127.0.0.1:8265/"); err != nil {
		t.Fatal(err)
	}
	if asked := d.opened(); asked != "http://127.0.0.1:8265/" {
		t.Errorf("the browser was asked to open %q", asked)
	}
	d.end()
}

func TestBrowserInASnapGetsAPageWhereItCanReadIt(t *testing.T) {
	d := newDesk(t, "firefox_firefox.desktop")
	own := filepath.Join(d.home, "snap", "firefox", "common")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	b := New(filepath.Join(d.home, "state"))
	defer b.Close()
	if err := b.Open("http://x.localhost:1/?" + remote.TicketKey + "=" + ticket); err != nil {
		t.Fatal(err)
	}
	if asked := d.opened(); !strings.HasPrefix(asked, "file://"+own+"/dlwb/open-") {
		t.Errorf("the browser was asked to open %q", asked)
	}
	d.end()
}

func TestPageOfAKilledDlwbIsRemovedByTheNext(t *testing.T) {
	dir := t.TempDir()
	old, fresh, other := filepath.Join(dir, "open-1.html"), filepath.Join(dir, "open-2.html"), filepath.Join(dir, "mine.html")
	for _, path := range []string{old, fresh, other} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * pageLife)
	for _, path := range []string{old, other} {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	removeOld(dir)
	for path, want := range map[string]bool{old: false, fresh: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestPageHoldsWhateverIsInAnAddress(t *testing.T) {
	u, err := url.Parse("http://x.localhost:1/%22%3E%3Cscript%3E?a=%22%3E%3Cb&" + remote.TicketKey + "=%22%3Ex")
	if err != nil {
		t.Fatal(err)
	}
	path, err := writePage(t.TempDir(), u)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, _ := io.ReadAll(f)
	if n := strings.Count(string(page), "<"); n != strings.Count(pageOf("x", [][2]string{{"a", "b"}, {"c", "d"}}), "<") {
		t.Errorf("something was put in:\n%s", page)
	}
}
