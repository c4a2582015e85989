//go:build linux

package tuitest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
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
)

// browser is a browser that notes what it was asked to open, and stays there
// with it in its argument list.
const browser = `#!/bin/sh
mkfifo "${0%/*}/never"
echo $$ "$1" >"${0%/*}/asked.new"
mv "${0%/*}/asked.new" "${0%/*}/asked"
read -r _ <>"${0%/*}/never"
`

func TestKeyOpensABrowserWithoutATicketThatAnotherUserCouldTake(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on two nodes in a terminal")
	}
	needed(t, "tmux", "python3")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	bin := t.TempDir()
	if err := testprogram.Write(filepath.Join(bin, "xdg-open"), []byte(browser), 0o755); err != nil {
		t.Fatal(err)
	}
	e := journey(t, "PATH="+bin+":"+os.Getenv("PATH"), "DISPLAY=:7")
	e.press(dlwb().Path+" run; echo code $?", "Enter")
	e.see("● training", "rank 0 on node0")
	e.press("F")
	e.see("forward, such as")
	e.press("-l", strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)+"/http")
	e.press("Enter")

	pid, asked := awaitBrowser(t, filepath.Join(bin, "asked"))
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	path, is := strings.CutPrefix(asked, "file://")
	page, err := os.ReadFile(path)
	if !is || err != nil {
		t.Fatalf("the browser was asked to open %q: %v", asked, err)
	}
	ticket := regexp.MustCompile(`name="dlwb_token" value="([0-9a-f]{32})"`).FindStringSubmatch(string(page))
	enter := regexp.MustCompile(`action="http://([^"/]*)(/[^"]*)"`).FindStringSubmatch(string(page))
	if ticket == nil || enter == nil || strings.Contains(e.see("› "), ticket[1]) {
		t.Fatalf("the page, or the screen, is not as it should be:\n%s", page)
	}
	t.Run("another user", func(t *testing.T) {
		said, _ := otheruser.Run(t, "sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; cat "+path)
		if !strings.Contains(said, asked) || strings.Contains(said, ticket[1]) {
			t.Errorf("it finds the ticket, or not the browser, among what runs:\n%s", said)
		}
		_, port, _ := net.SplitHostPort(enter[1])
		said, _ = otheruser.Run(t, "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: "+enter[1], "-d", "dlwb_token="+ticket[1], "http://127.0.0.1:"+port+enter[2])
		if said != "403" {
			t.Errorf("with the ticket itself: %s", said)
		}
	})
	_, port, _ := net.SplitHostPort(enter[1])
	req, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+port+enter[2], strings.NewReader("to=%2F&dlwb_token="+ticket[1]))
	req.Host = enter[1]
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || len(res.Cookies()) != 1 {
		t.Errorf("the owner's browser: %s, cookies %v", res.Status, res.Cookies())
	}
	e.press("C-c")
	e.see("Quit dlwb?")
	e.press("Tab", "Enter")
	e.see("code 0")
	if _, err := os.Stat(path); err == nil {
		t.Error("the page is still there")
	}
}

// awaitBrowser waits until a browser was started.
func awaitBrowser(t *testing.T, said string) (pid int, asked string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(said); err == nil {
			if _, err := fmt.Sscan(string(text), &pid, &asked); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return pid, asked
		}
	}
	t.Fatal("no browser was started")
	return 0, ""
}
