//go:build linux

package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// The test program is the agent, too, for tests that kill it.
func TestMain(m *testing.M) {
	if home := os.Getenv("HOST_TEST_REMOVE"); home != "" {
		fmt.Println("begun")
		fmt.Printf("%+v\n", New(home).Do(request(hostclaim.Remove, "aa")))
		return
	}
	if os.Getenv("HOST_TEST_WAIT") != "" { // for somebody who ends it
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

func request(do hostclaim.Act, life string) hostclaim.Request {
	return hostclaim.Request{Do: do, Cluster: "demo", Life: life, Owner: "ada@laptop", Since: 1_700_000_000}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o640))
}

// tree is every file below a directory, with its mode, and what it holds.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", strings.TrimPrefix(path, dir), info.Mode())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			must(t, err)
			fmt.Fprintf(&b, " %q", text)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

// old runs a script of a dlwb from before the agent on a home directory.
func old(t *testing.T, home, script, life, dir string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + script + ".sh")
	must(t, err)
	cmd := exec.Command("sh")
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.Stdin = strings.NewReader(fmt.Sprintf("cluster=demo\nlife=%s\nowner=ada@laptop\nsince=1700000000\ndir='%s'\npeer='%s'\n%s", life, dir, hostclaim.PeerLine, text))
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// work puts in a home what a cluster puts there.
func work(t *testing.T, home string) {
	t.Helper()
	for _, name := range []string{".dlwb/bin/stop", ".dlwb/bin/agent-1", ".dlwb/runs/run-1/status", ".dlwb/sync/x", ".dlwb/kept/y/z", ".dlwb/compat",
		".dlwb/in/a/stream", ".dlwb/look", ".dlwb/look.42", ".dlwb/jupyter", ".dlwb/tensorboard", ".dlwb/tensorboard.1", ".dlwb/.peers.123", ".dlwb/peers", ".dlwb/peer_key", ".dlwb/peer_known_hosts", "dlwb/demo/code/train.py", "dlwb/demo/venv/bin/python"} {
		put(t, home, name, "x")
	}
	must(t, addLine(filepath.Join(home, ".ssh/authorized_keys"), hostclaim.PeerLine+"ssh-ed25519 AAAA dlwb-peer"))
}

func TestTheClaimsOfOtherVersionsAreUnderstood(t *testing.T) {
	data := filepath.Join(t.TempDir(), "da ta's")
	must(t, os.Mkdir(data, 0o755))
	for _, dir := range []string{"", data} {
		homes := [2]string{t.TempDir(), t.TempDir()}
		for _, home := range homes {
			put(t, home, ".ssh/authorized_keys", "ssh-ed25519 AAAA me\n")
		}
		by := request(hostclaim.Take, "aa")
		by.Dir = dir
		old(t, homes[0], "claim", "aa", strings.ReplaceAll(dir, "'", `'\''`))
		if dir != "" { // one cluster has it
			must(t, os.Remove(filepath.Join(data, "dlwb-demo")))
		}
		if a := New(homes[1]).Do(by); a.Failed != "" || !a.New {
			t.Fatalf("%+v", a)
		}
		// What older ones don't know is a file for each host.
		if c := readClaim(New(homes[1]).claimFile()); c.Life != "aa" {
			t.Errorf("the host's own claim is %+v", c)
		}
		must(t, os.RemoveAll(filepath.Join(homes[1], claimsDir)))
		if before, now := tree(t, homes[0]), tree(t, homes[1]); before != now {
			t.Errorf("an older dlwb leaves:\n%s\nthis one leaves:\n%s", before, now)
		}
		if dir != "" {
			must(t, os.Remove(filepath.Join(data, "dlwb-demo")))
		}
	}
}

func TestAHostIsTakenByOneAlsoWhenTheOtherIsOfAnotherVersion(t *testing.T) {
	home := t.TempDir()
	put(t, home, "mine", "x")
	before := tree(t, home)
	if out := old(t, home, "claim", "aa", ""); !strings.Contains(out, "claimed\tnew") {
		t.Fatal(out)
	}
	h := New(home)
	if a := h.Do(request(hostclaim.Take, "bb")); a.New || a.Claim.Life != "aa" || a.Claim.Owner != "ada@laptop" || a.Claim.Since != 1_700_000_000 {
		t.Errorf("it was taken twice: %+v", a)
	}
	if a := h.Do(request(hostclaim.Take, "aa")); a.New || a.Failed != "" || a.Claim.Life != "aa" {
		t.Errorf("its own life is not recognised: %+v", a)
	}
	work(t, home)
	if a := h.Do(request(hostclaim.Remove, "bb")); a.Claim.Life != "aa" || !exists(h.at("dlwb/demo/code/train.py")) {
		t.Errorf("another life gave it back: %+v", a)
	}
	if a := h.Do(request(hostclaim.Remove, "aa")); a.Failed != "" || a.Claim.Life != "aa" || len(a.Left.Places) > 0 {
		t.Errorf("%+v", a)
	}
	if after := tree(t, home); after != before {
		t.Errorf("left by this dlwb:\n%s", after)
	}

	if a := h.Do(request(hostclaim.Take, "aa")); !a.New {
		t.Fatalf("%+v", a)
	}
	if out := old(t, home, "claim", "bb", ""); strings.Contains(out, "claimed") || !strings.Contains(out, "held_life\taa") {
		t.Errorf("an older dlwb took it, too: %s", out)
	}
	work(t, home)
	if out := old(t, home, "remove", "aa", ""); strings.Contains(out, "left") || !strings.Contains(out, "end\tok") {
		t.Error(out)
	}
	if after := tree(t, home); after != before {
		t.Errorf("left by an older dlwb:\n%s", after)
	}
}

func TestOfTwoClaimsAtOnceOneWins(t *testing.T) {
	noLinks := func(from, to string) error {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: errors.ErrUnsupported}
	}
	for round := range 50 {
		home := t.TempDir()
		links := New(home)
		if round%3 == 2 {
			links.link = noLinks
		}
		lives := []string{"aa", "bb", "cc"}
		won := make([]bool, len(lives))
		var all sync.WaitGroup
		for i, life := range lives {
			all.Go(func() {
				if round%2 == 1 && i == 2 { // an older dlwb is among them
					won[i] = strings.Contains(old(t, home, "claim", life, ""), "claimed\tnew")
					return
				}
				a := links.Do(request(hostclaim.Take, life))
				if won[i] = a.New; a.Failed != "" || won[i] && a.Claim.Life != life {
					t.Errorf("%+v", a)
				}
			})
		}
		all.Wait()
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) || links.claim().Life != lives[winner] {
			t.Fatalf("round %d: %v took it, and the claim is of %q", round, won, links.claim().Life)
		}
		for _, life := range lives {
			links.Do(request(hostclaim.Remove, life))
		}
		if left := tree(t, home); left != "" {
			t.Fatalf("left:\n%s", left)
		}
	}
}

func TestARemovalThatIsKilledIsFinishedByTheNext(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	reached := map[string]int{}
	for round := range 60 {
		home := t.TempDir()
		put(t, home, ".ssh/authorized_keys", "ssh-ed25519 AAAA me\n")
		put(t, home, "dlwb/other/keep", "x")
		if round%2 == 0 {
			put(t, home, ".dlwb/of-somebody", "x")
		}
		before := tree(t, home)
		h := New(home)
		h.Do(request(hostclaim.Take, "aa"))
		work(t, home)
		for i := range 300 {
			put(t, home, fmt.Sprintf("dlwb/demo/venv/lib/%d/%d", i%20, i), "x")
			put(t, home, fmt.Sprintf(".dlwb/runs/run-%d/log", i), "x")
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "HOST_TEST_REMOVE="+home)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		must(t, err)
		time.Sleep(rand.N(40 * time.Millisecond))
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		switch {
		case !exists(h.at(hostclaim.File)):
			reached["the end"]++
		case !exists(h.at("dlwb/demo")):
			reached["the middle"]++
		default:
			reached["the beginning"]++
		}
		if a := h.Do(request(hostclaim.Remove, "aa")); a.Failed != "" || len(a.Left.Places) > 0 && len(a.Left.Others) == 0 {
			t.Fatalf("%+v", a)
		}
		if after := tree(t, home); after != before {
			t.Fatalf("killed in round %d, before:\n%s\nafter:\n%s", round, before, after)
		}
	}
	t.Logf("killed when it had come to: %v", reached)
}

func TestAClaimThatIsKilledIsUndoneByTheRemoval(t *testing.T) {
	home := t.TempDir()
	h := New(home)
	h.link = func(from, to string) error { // it is killed at this moment
		text, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(from+"x", text, 0o600))
		return fs.ErrExist
	}
	h.Do(request(hostclaim.Take, "aa"))
	if left := tree(t, home); !strings.Contains(left, "/.dlwb/claim.aa.") {
		t.Fatalf("left:\n%s", left)
	}
	if a := h.Do(request(hostclaim.Remove, "bb")); a.Failed != "" {
		t.Errorf("%+v", a)
	}
	if left := tree(t, home); !strings.Contains(left, "/.dlwb/claim.aa.") {
		t.Error("another life removed it")
	}
	if a := h.Do(request(hostclaim.Remove, "aa")); a.Failed != "" || a.Claim.Held() {
		t.Errorf("%+v", a)
	}
	if left := tree(t, home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

// A host is given back with its containers: as long as one is left, or nobody knows, what
// lies there stays, as it says what to look for.
func TestAHostIsGivenBackWithItsContainers(t *testing.T) {
	home := filepath.Join(t.TempDir(), "disk[1]*")
	must(t, os.Mkdir(home, 0o755))
	h := New(home)
	if a := h.Do(request(hostclaim.Take, "aa")); !a.New {
		t.Fatalf("%+v", a)
	}
	work(t, home)
	gone := filepath.Join(home, "dlwb/demo/container/gone")
	for _, c := range []struct {
		text, want string
		unsure     bool
	}{
		{"echo 'no daemon' >&2; exit 1", "not known: no daemon", true},
		{"echo 12ab Created", "could not be removed: 12ab Created", false},
	} {
		must(t, os.MkdirAll(filepath.Dir(gone), 0o755))
		must(t, testprogram.Write(gone, []byte("#!/bin/sh\n"+c.text+"\n"), 0o755))
		a := h.Do(request(hostclaim.Remove, "aa"))
		if a.Failed != "" || a.Left.None() || !strings.Contains(a.Left.Containers, c.want) || a.Left.Unsure != c.unsure || len(a.Left.Places) == 0 {
			t.Errorf("%+v; want %q", a, c.want)
		}
	}
	must(t, os.Remove(gone))
	must(t, testprogram.Write(gone, []byte("#!/bin/sh\n:\n"), 0o755))
	if a := h.Do(request(hostclaim.Remove, "aa")); a.Failed != "" || !a.Left.None() || !a.Left.Contained || tree(t, home) != "" {
		t.Errorf("%+v\n%s", a, tree(t, home))
	}
}

func TestWhyNothingCanBeWrittenIsSaidInWords(t *testing.T) {
	for number, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "/home/ada/.dlwb: the disk is full", syscall.EDQUOT: "/home/ada/.dlwb: the user's quota is used up",
		syscall.EROFS: "/home/ada/.dlwb: the disk is read-only", syscall.EACCES: "/home/ada/.dlwb: permission denied",
	} {
		if got := plain(fmt.Errorf("x: %w", &fs.PathError{Op: "mkdir", Path: "/home/ada/.dlwb", Err: number})); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLinesAreTakenOutOfAFileThatStaysTheSame(t *testing.T) {
	for _, c := range []struct{ was, now string }{
		{"a\n" + hostclaim.PeerLine + "k\nb\n", "a\nb\n"},
		{hostclaim.PeerLine + "k\n", ""},
		{"a\n\n# note\n" + hostclaim.PeerLine + "k\n" + hostclaim.PeerLine + "j", "a\n\n# note\n"},
		{"a", "a"},
		{hostclaim.PeerLine + "k\nlast", "last"},
	} {
		dir := t.TempDir()
		put(t, dir, "real", c.was)
		must(t, os.Symlink("real", filepath.Join(dir, "keys")))
		was, err := os.Stat(filepath.Join(dir, "keys"))
		must(t, err)
		must(t, removeLines(filepath.Join(dir, "keys"), forPeers))
		now, err := os.Stat(filepath.Join(dir, "keys"))
		must(t, err)
		text, err := os.ReadFile(filepath.Join(dir, "real"))
		must(t, err)
		if string(text) != c.now || !os.SameFile(was, now) || was.Mode() != now.Mode() {
			t.Errorf("%q became %q, want %q", c.was, text, c.now)
		}
	}
}

func TestALineIsAddedOnceBehindWhatThereIs(t *testing.T) {
	keys := filepath.Join(t.TempDir(), ".ssh", "authorized_keys")
	for range 3 {
		must(t, addLine(keys, "line"))
	}
	text, err := os.ReadFile(keys)
	must(t, err)
	if string(text) != "line\n" {
		t.Errorf("%q", text)
	}
	must(t, os.WriteFile(keys, []byte("no end"), 0o600))
	must(t, addLine(keys, "line"))
	if text, _ = os.ReadFile(keys); string(text) != "no end\nline\n" {
		t.Errorf("%q", text)
	}
}

func TestWhatIsNoClaimIsRefused(t *testing.T) {
	home := t.TempDir()
	for _, bad := range []hostclaim.Request{
		{Do: hostclaim.Take, Cluster: "..", Life: "a"}, {Do: hostclaim.Take, Cluster: "a/b", Life: "a"}, {Do: hostclaim.Take, Cluster: "a", Life: ""},
		{Do: hostclaim.Take, Cluster: "a", Life: "x\nhad .ssh"}, {Do: hostclaim.Take, Cluster: "a", Life: "x", Dir: filepath.Join(home, "none")}, {Do: "format"},
	} {
		if a := New(home).Do(bad); a.Failed == "" || a.New {
			t.Errorf("%+v: %+v", bad, a)
		}
	}
	put(t, home, hostclaim.File, "cluster ../..\nlife aa\n")
	put(t, home, "kept", "x")
	New(home).Do(request(hostclaim.Remove, "aa"))
	if left := tree(t, home); !strings.Contains(left, "/kept") || !strings.Contains(left, "/.dlwb/cluster") {
		t.Errorf("by a forged claim this was removed; left:\n%s", left)
	}
}
