package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// said is what a command has said so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// What is printed is taken by a shell, and leads there.
func TestWhatIsPrintedLeadsAShellToTheFake(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	exe, err := os.Executable() // no machine is started: any program will do
	if err != nil {
		t.Fatal(err)
	}
	var out said
	in, typed := io.Pipe()
	defer typed.Close()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, in, &out, exe, true) }()
	for began := time.Now(); !strings.Contains(out.String(), "Ctrl-C"); time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-ended:
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("NOT RUN: %v", err)
			}
			t.Fatal(err)
		default:
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("it only says %s", out.String())
		}
	}
	script := filepath.Join(t.TempDir(), "exports")
	if err := os.WriteFile(script, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command("/bin/sh", "-euc", `. "$1"; echo "$AWS_ENDPOINT_URL $DLWB_SETTLE $DLWB_SOURCE_ADDRESS"`, "sh", script).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(got), "http://127.0.0.1:") || !strings.HasSuffix(string(got), " 2s 127.0.0.1\n") {
		t.Errorf("the shell has %q, %v", got, err)
	}
	if !strings.Contains(out.String(), "ssh_port: ") {
		t.Error("the port for the profile is missing")
	}
	for _, line := range []string{"", "ls", "fill us-east-1a g5.xlarge", "nonsense"} {
		if _, err := io.WriteString(typed, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); !strings.Contains(out.String(), "nonsense is no command"); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("it only says %s", out.String())
		}
	}
	if text := out.String(); !strings.Contains(text, "no instance runs\n") || !strings.Contains(text, "us-east-1a has room for 0 g5.xlarge now") {
		t.Errorf("what was typed is answered with %s", text)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "0 resources were left") {
		t.Errorf("it ends with %s", out.String())
	}
}

func TestATypeHasItsGPUs(t *testing.T) {
	for kind, want := range map[string]int{"g5.xlarge": 1, "g5.12xlarge": 4, "t3.micro": 0} {
		if got := gpusOf(kind); got != want {
			t.Errorf("%s has %d GPUs, want %d", kind, got, want)
		}
	}
}
