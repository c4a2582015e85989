//go:build linux

package motostory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
)

// bench is a moto, or another stand-in for AWS, in a network of its own, in which
// nothing leads out: the addresses that it gives its machines are somebody's. dlwb runs
// there too.
type bench struct {
	t      *testing.T
	moto   *exec.Cmd
	exe    string
	home   string
	dir    string // of the project
	region string
}

const endpoint = "http://127.0.0.1:5555"

func newBench(t *testing.T) *bench {
	return benchOf(t, "DLWB_MOTO", `exec "$0" -p 5555`, "/moto-api/")
}

// benchOf starts the program that a variable names, by a line of sh; it is ready when it
// answers at a path.
func benchOf(t *testing.T, variable, line, ready string) *bench {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Skip("NOT RUN: make test-moto runs this, with moto from PyPI")
	}
	b := &bench{t: t, home: t.TempDir(), region: "us-east-1"}
	b.exe, b.dir = filepath.Join(b.home, "dlwb"), filepath.Join(b.home, "project")
	if out, err := exec.Command("go", "build", "-o", b.exe, "../..").CombinedOutput(); err != nil {
		t.Fatalf("build dlwb: %v\n%s", err, out)
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	b.moto = exec.Command("sh", "-c", "ip link set lo up && "+line, program)
	b.moto.Stdout, b.moto.Stderr = said, said
	b.moto.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := b.moto.Start(); errors.Is(err, syscall.EPERM) {
		t.Skip("NOT RUN: a network of its own takes root")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.moto.Process.Kill()
		_ = b.moto.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if b.within("curl", "-sf", "-o", "/dev/null", endpoint+ready).Run() == nil {
			return b
		}
		if time.Now().After(end) {
			_ = b.moto.Process.Kill()
			_ = b.moto.Wait()
			t.Fatalf("it does not answer:\n%s", said)
		}
	}
}

// within is a program in moto's network.
func (b *bench) within(name string, args ...string) *exec.Cmd {
	net := fmt.Sprintf("--net=/proc/%d/ns/net", b.moto.Process.Pid)
	return exec.Command("nsenter", append([]string{net, "--", name}, args...)...)
}

// raw is an answer of moto's own, which dlwb has no part in.
func (b *bench) raw(action, more string) string {
	b.t.Helper()
	scope := "Credential=AKIAIOSFODNN7EXAMPLE/20260101/" + b.region + "/ec2/aws4_request"
	out, err := b.within("curl", "-s", endpoint+"/", "-H", "Authorization: AWS4-HMAC-SHA256 "+scope+", SignedHeaders=host, Signature=x",
		"-d", "Action="+action+"&Version=2016-11-15"+more).Output()
	if err != nil {
		b.t.Fatal(action, err)
	}
	return string(out)
}

// running is how many machines there are that cost something.
func (b *bench) running() int {
	return strings.Count(b.raw("DescribeInstances", "&Filter.1.Name=instance-state-name&Filter.1.Value.1=running&Filter.1.Value.2=pending"), "<instanceId>")
}

// left is what carries dlwb's tag, of whatever costs nothing.
func (b *bench) left() int {
	n := 0
	for _, action := range []string{"DescribeSecurityGroups", "DescribeKeyPairs", "DescribeVolumes"} {
		n += strings.Count(b.raw(action, ""), "dlwb:life")
	}
	return n
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) state() string { return filepath.Join(b.home, "state") }

// command is dlwb in the project, whose profile is trusted as it is now.
func (b *bench) command(args ...string) *exec.Cmd {
	trusttest.Trust(b.state(), b.dir)
	c := b.within(b.exe, args...)
	c.Dir = b.dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AWS_") && !strings.HasPrefix(kv, "DLWB_") {
			c.Env = append(c.Env, kv)
		}
	}
	c.Env = append(c.Env, "HOME="+b.home, "DLWB_HOME="+b.state(), "DLWB_KEEPER=off", "TERM=dumb", "DLWB_SETTLE=2s",
		"AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION="+b.region, "AWS_ENDPOINT_URL="+endpoint)
	return c
}

// told is what a dlwb that has ended said.
type told struct {
	code int
	text string
}

// limit is when a dlwb is certainly stuck.
const limit = 90 * time.Second

// run runs dlwb to its end.
func (b *bench) run(args ...string) told {
	b.t.Helper()
	return b.play(b.command(args...))
}

func (b *bench) play(c *exec.Cmd) told {
	b.t.Helper()
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	stuck := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
	_ = c.Wait()
	if !stuck.Stop() {
		b.t.Fatalf("%v hangs:\n%s", c.Args, out)
	}
	return told{c.ProcessState.ExitCode(), out.String()}
}

// killedOnce ends dlwb without a warning as soon as something holds. Where that is short,
// dlwb may have ended by itself when it is looked for, and is started again.
func (b *bench) killedOnce(what string, holds func() bool, args ...string) {
	b.t.Helper()
	said := ""
	for range 20 {
		ended := false
		if said, ended = b.killed(what, holds, args...); !ended {
			return
		}
	}
	b.t.Fatalf("dlwb ended before %s, each time:\n%s", what, said)
}

// killed reports whether dlwb ended before it was killed, and what it said.
func (b *bench) killed(what string, holds func() bool, args ...string) (said string, before bool) {
	b.t.Helper()
	c := b.command(args...)
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	for end := time.Now().Add(limit); !holds(); {
		select {
		case <-ended:
			return out.String(), true
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			b.t.Errorf("no %s", what)
			break
		}
	}
	_ = c.Process.Kill()
	<-ended
	return out.String(), false
}

// says holds that all of it was said.
func (r told) says(t *testing.T, all ...string) {
	t.Helper()
	for _, text := range all {
		if !strings.Contains(r.text, text) {
			t.Errorf("exit code %d, and nothing of %q:\n%s", r.code, text, r.text)
		}
	}
}

// image is one that moto has.
func (b *bench) image() string {
	b.t.Helper()
	all := b.raw("DescribeImages", "&Filter.1.Name=name&Filter.1.Value.1=ubuntu/*&Filter.2.Name=architecture&Filter.2.Value.1=x86_64")
	_, after, ok := strings.Cut(all, "<imageId>")
	id, _, _ := strings.Cut(after, "<")
	if !ok {
		b.t.Fatalf("moto has no image: %.500s", all)
	}
	return id
}

// clusters are the names that dlwb ls knows.
func (b *bench) clusters() []map[string]any {
	b.t.Helper()
	r := b.run("ls", "--json")
	var of struct{ Clusters []map[string]any }
	if err := json.Unmarshal([]byte(r.text), &of); err != nil {
		b.t.Fatalf("%v: %s", err, r.text)
	}
	return of.Clusters
}
