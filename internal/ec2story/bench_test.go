package ec2story

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/fakeaws/boot"
	"github.com/dlwb/dlwb/internal/trusttest"
)

// exe is the real dlwb, and machine what the machines are made of: dlwb as people
// have it. Both are built once.
var exe, machine string

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // they wait more than they work
		panic(err)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "dlwb-story-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		exe = filepath.Join(dir, "dlwb")
		machine = exe
		err = build(exe, raced...)
		if len(raced) > 0 && err == nil {
			machine = filepath.Join(dir, "machine")
			err = build(machine)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// build builds dlwb with flags or, where there are none, as people have it.
func build(to string, flags ...string) error {
	cmd := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", to, "../.."})...)
	if len(flags) == 0 {
		cmd = exec.Command("make", "-C", "../..", "build", "BIN="+to)
		cmd.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build dlwb: %w\n%s", err, out)
	}
	return nil
}

// settle is the settle window of these tests: a two-hundredth of the real one.
// The lag of the fake is scaled likewise: 0 to 100 ms stand for 0 to 20 s.
const (
	settle = 600 * time.Millisecond
	lagged = 100 * time.Millisecond
)

// bench is an AWS of its own, with machines, and a fresh home.
type bench struct {
	t    testing.TB
	aws  *fakeaws.Server
	rig  *boot.Rig
	home string
	dir  string // of the project
}

func newBench(t testing.TB, o fakeaws.Options) *bench {
	t.Helper()
	rig, err := boot.New(boot.Options{Exe: machine})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("NOT RUN: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Boot = rig
	b := &bench{t: t, rig: rig, aws: fakeaws.New(o), home: t.TempDir()}
	t.Cleanup(func() {
		b.aws.Close()
		if err := rig.Close(); err != nil {
			t.Errorf("the machines: %v", err)
		}
	})
	b.dir = filepath.Join(b.home, "project")
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// profile writes a profile of so many machines. more is more of it.
func (b *bench) profile(count int, more string) {
	b.t.Helper()
	b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, count: %d, ssh_port: %d}\n%s",
		count, b.rig.SSHPort(), more))
}

func (b *bench) state() string { return filepath.Join(b.home, "state") }

// command is dlwb in the project, whose profile is trusted as it is now.
func (b *bench) command(args ...string) *exec.Cmd {
	trusttest.Trust(b.state(), b.dir)
	c := exec.Command(exe, args...)
	c.Dir = b.dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") && !strings.HasPrefix(kv, "DLWB_") {
			c.Env = append(c.Env, kv)
		}
	}
	c.Env = append(c.Env, "HOME="+b.home, "DLWB_HOME="+b.state(), "DLWB_KEEPER=off", "XDG_STATE_HOME=", "TERM=dumb",
		"DLWB_SETTLE="+settle.String(), "DLWB_SOURCE_ADDRESS=127.0.0.1")
	c.Env = append(c.Env, b.aws.Env()...)
	return c
}

// result is what a dlwb that has ended said.
type result struct {
	code           int
	stdout, stderr string
}

// storyLimit is when a dlwb of these tests is certainly stuck.
const storyLimit = 90 * time.Second

// run runs dlwb to its end.
func (b *bench) run(args ...string) result {
	b.t.Helper()
	return b.play(b.command(args...))
}

// events are the lines of a --json stream.
func (r result) events(name string) []map[string]any {
	var found []map[string]any
	for line := range strings.Lines(r.stdout) {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && e["event"] == name {
			found = append(found, e)
		}
	}
	return found
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\n%s", r.code, r.story())
}

// nothingLeft holds the one promise.
func (b *bench) nothingLeft(when string) bool {
	b.t.Helper()
	left := b.aws.Left()
	if len(left) > 0 {
		b.t.Errorf("%s: left in the account: %q", when, left)
	}
	return len(left) == 0
}
