//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cli/keeping"
)

// keptBed is a bed with a keeper, and a server that its node reaches.
func keptBed(t *testing.T) (b *bed, port string) {
	t.Helper()
	t.Setenv("DLWB_KEEPER", "10m")
	b = newBedAlone(t).withOneNode()
	t.Cleanup(func() { b.run("keeper", "stop") })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "there") }))
	t.Cleanup(s.Close)
	b.up("")
	return b, fmt.Sprint(s.Listener.Addr().(*net.TCPAddr).Port)
}

// opened is the tunnel that a command which has ended says it opened.
func (r result) opened(t *testing.T) (printedEvent, *url.URL) {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	e := r.one(t, "forward_opened")
	u, err := url.Parse(fmt.Sprint(e["entry"]))
	if err != nil || e["kept"] != true {
		t.Fatalf("%v, %v", e, err)
	}
	return e, u
}

// keeperPID is the process of the bed's keeper.
func (b *bed) keeperPID() int {
	b.t.Helper()
	var a keeping.Answer
	r := b.run("keeper", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil || len(a.Keepers) != 1 {
		b.t.Fatalf("keepers: %v, %s", err, r.stdout)
	}
	return a.Keepers[0].PID
}

func TestATunnelThatIsKeptGoesOnUntilItIsClosedOrTheClusterGoes(t *testing.T) {
	b, port := keptBed(t)
	first, page := b.run("forward", "bed", "--keep", "--json", port+"/http").opened(t)
	browser := b.visit(page)
	if status, text := browser.get("/"); status != http.StatusOK || text != "there" {
		t.Fatalf("%d %s", status, text)
	}
	if r := b.run("keeper"); !strings.Contains(r.stdout, "tunnel "+port+"/http") {
		t.Errorf("the keeper says:\n%s", r.stdout)
	}
	// Whoever asks for it again has it, with an entry of their own; that ends at once.
	again, other := b.run("forward", "bed", "--json", port+"/http").opened(t)
	if again["local_port"] != first["local_port"] || other.Host != page.Host || other.RawQuery == page.RawQuery {
		t.Errorf("again: %v, first: %v", again, first)
	}
	if status, _ := b.visit(other).get("/"); status != http.StatusOK {
		t.Errorf("by the second entry: %d", status)
	}
	if status, _ := browser.get("/"); status != http.StatusOK {
		t.Errorf("in the first browser: %d", status)
	}
	// A word that is none of them closes nothing.
	if r := b.run("forward", "bed", "--close", "jupyter"); r.code != 1 || !strings.Contains(r.stderr, port+"/http (port") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := b.run("forward", "bed", "--close", fmt.Sprint(first["local_port"])); r.code != 0 || !strings.Contains(r.stdout, "closed") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := browser.client.Get(browser.base); err == nil {
		t.Error("it answers after it was closed")
	}
	if r := b.run("forward", "bed", "--close"); r.code != 1 || !strings.Contains(r.stderr, "no tunnel") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// down closes what is open.
	third, page := b.run("forward", "bed", "--keep", "--json", port+"/http").opened(t)
	if third["local_port"] != first["local_port"] {
		t.Errorf("it had port %v and has %v", first["local_port"], third["local_port"])
	}
	browser = b.visit(page)
	if r := b.run("down", "bed"); r.code != 0 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := browser.client.Get(browser.base); err == nil {
		t.Error("it answers after down")
	}
	if left, err := filepath.Glob(filepath.Join(b.home, "state", "forwards", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheScreenOpensATunnelAgainThatAKilledKeeperTook(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt-get install tmux")
	}
	b, port := keptBed(t)
	first, _ := b.run("forward", "bed", "--keep", "--json", port+"/http").opened(t)
	if err := syscall.Kill(b.keeperPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("http://127.0.0.1:%v/", first["local_port"])
	if status, err := http.Get(address); err == nil {
		t.Fatalf("it answers without its keeper: %s", status.Status)
	}
	socket := filepath.Join(b.home, "tmux")
	tmux := func(args ...string) string {
		out, _ := exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
		return string(out)
	}
	t.Cleanup(func() { tmux("kill-server") })
	cmd := b.command("attach", "bed")
	args := []string{"new-session", "-d", "-x", "120", "-y", "40"}
	for _, v := range b.env {
		if strings.HasPrefix(v, "DLWB_") || strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, asDlwb) {
			args = append(args, "-e", v)
		}
	}
	tmux(append(args, cmd.Args...)...)
	answered := func() bool {
		resp, err := http.Get(address)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusForbidden // without a ticket
	}
	for end := time.Now().Add(time.Minute); !answered(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it was not opened again; the screen:\n%s", tmux("capture-pane", "-p"))
		}
	}
	// It goes on when the screen ends.
	pid, err := strconv.Atoi(strings.TrimSpace(tmux("display-message", "-p", "#{pane_pid}")))
	if err != nil {
		t.Fatal(err)
	}
	tmux("kill-server")
	for end := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	if !answered() {
		t.Error("it ended with the screen")
	}
	if _, err := os.Stat(filepath.Join(b.home, "state", "forwards", "kept", "bed.json")); err != nil {
		t.Error(err)
	}
}
