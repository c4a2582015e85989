package ec2story

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// canaries are words that must be found nowhere, by what they are.
type canaries map[string]string

// find says which of them are in a text.
func (c canaries) find(t *testing.T, where string, text []byte) {
	t.Helper()
	for what, word := range c {
		for _, form := range []string{word, base64.StdEncoding.EncodeToString([]byte(word))} {
			if bytes.Contains(text, []byte(form)) {
				t.Errorf("%s is in %s", what, where)
			}
		}
	}
}

// findBelow looks into every file of a directory but for those that keep
// exactly that.
func (c canaries) findBelow(t *testing.T, dir string, keep func(path string) bool) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || keep(path) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		c.find(t, path, text)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return files
}

// sampler collects the command lines of all processes of the machine.
type sampler struct {
	stop chan struct{}
	done sync.WaitGroup
	seen map[string]bool
	laps int
}

func sampleProcesses() *sampler {
	s := &sampler{stop: make(chan struct{}), seen: map[string]bool{}}
	s.done.Go(func() {
		for {
			entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, path := range entries {
				if line, err := os.ReadFile(path); err == nil {
					s.seen[string(line)] = true
				}
			}
			s.laps++
			select {
			case <-s.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return s
}

func (s *sampler) end() []byte {
	close(s.stop)
	s.done.Wait()
	var all bytes.Buffer
	for line := range s.seen {
		all.WriteString(line + "\n")
	}
	return all.Bytes()
}

// keyBody is a line of the middle of a private key, which is in no public one.
func keyBody(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) < 5 {
		t.Fatalf("no private key: %d lines", len(lines))
	}
	return lines[len(lines)-3]
}

// A whole life of a cluster leaves none of its secrets where anybody else, or
// a later reader of what was stored and printed, could find them.
func TestSecretsAreNowhereAfterAWholeRun(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	words := canaries{"the token of run.env": "canary-token-5d1f0c7e9a", "the secret key of AWS": "canary/secret/key/77aa31",
		"the session token of AWS": "canary-session-token-0b9e44"}
	b.profile(2, `environment: system
run: {engine: plain, command: "sh train.sh", env: {TOKEN: "${env:TOKEN}"}}
results: {paths: [out/]}
`)
	b.write("train.sh", "mkdir -p out; printf %s \"$TOKEN\" | sha256sum >out/sum; for i in 1 2 3 4 5 6; do echo step: $i loss: 0.$((9-i)); sleep 0.2; done\n")
	log := filepath.Join(b.home, "dlwb.log")
	env := []string{"TOKEN=" + words["the token of run.env"], "AWS_SECRET_ACCESS_KEY=" + words["the secret key of AWS"],
		"AWS_SESSION_TOKEN=" + words["the session token of AWS"], "DLWB_LOG=" + log}
	var said bytes.Buffer
	run := func(args ...string) {
		t.Helper()
		c := b.command(args...)
		c.Env = append(c.Env, env...)
		r := b.play(c)
		if r.code != 0 {
			t.Errorf("%v: %s", args, r)
		}
		said.WriteString(r.stdout + r.stderr)
	}
	processes := sampleProcesses()
	run("plan", "--json")
	run("plan", "--plain")
	run("run", "--json")
	keys, _ := filepath.Glob(filepath.Join(b.state(), "keys", "story", "*", "key"))
	if len(keys) != 1 {
		t.Fatalf("the cluster's keys are %q", keys)
	}
	own, err := os.ReadFile(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	words["the cluster's private key"] = keyBody(t, string(own))
	run("run", "--plain")
	for _, args := range []string{"ls --json", "runs --json", "logs --json", "logs --plain", "extend story --by 1h --json"} {
		run(strings.Fields(args)...)
	}
	inKeys := func(path string) bool { return strings.HasPrefix(path, filepath.Join(b.state(), "keys")) }
	words.findBelow(t, b.home, inKeys)
	private(t, filepath.Join(b.state(), "keys", "story"))
	run("down", "story", "--json")
	lines := processes.end()

	first, _ := b.bootstrapKey()
	inUserData := maps.Clone(words) // the first host key has to be there
	words["the first host key"] = keyBody(t, first)
	sums, _ := filepath.Glob(filepath.Join(b.state(), "runs", "*", "results", "out", "sum"))
	if len(sums) != 2 {
		t.Errorf("results: %q", sums)
	}
	for _, path := range sums {
		if sum, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(sum), sumOf(words["the token of run.env"])) {
			t.Errorf("the training did not get its token: %q, %v", sum, err)
		}
	}
	words.find(t, "the command line of a process", lines)
	words.find(t, "what dlwb printed", said.Bytes())
	files := words.findBelow(t, b.home, func(string) bool { return false }) // the keys are gone too
	calls := 0
	for _, call := range b.aws.Calls() {
		calls++
		for key, values := range call.Params {
			text := strings.Join(values, "\n")
			if key == "UserData" {
				data, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					t.Fatal(err)
				}
				inUserData.find(t, "the user-data", data)
				continue
			}
			words.find(t, call.Action+" "+key, []byte(text))
		}
	}
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		t.Errorf("no log was written: %v", err)
	}
	b.nothingLeft("secrets")
	t.Logf("%d canaries in 0 of %d files, %d calls, %d command lines (%d looks), %d bytes of output", len(words), files, calls,
		bytes.Count(lines, []byte("\n")), processes.laps, said.Len())
}

// private holds that nobody else can read a directory.
func private(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && d.Type().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// sumOf is what sha256sum says of a text.
func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
