package main

import (
	"bytes"
	"context"
	"errors"
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
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, &out, exe, true) }()
	for began := time.Now(); !strings.Contains(out.String(), "Ctrl-C"); time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-ended:
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("NOT RUN: %v", err)
			}
			t.Fatal(err)
		default:
		}
		if time.Since(began) > 10*time.Second {
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
