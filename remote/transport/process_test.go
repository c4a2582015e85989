package transport

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o Opener) Machine {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("NOT RUN: there is no sh")
	}
	m, err := o(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Kill(errors.New("the test is over")) })
	return m
}

func start(t *testing.T, m Machine, line string) Command {
	t.Helper()
	c, err := m.Start(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryByteGoesBothWaysAtOnceAndUnchanged(t *testing.T) { carries(t, open(t, Local())) }

// carries holds what the protocol needs of a way: single bytes are not held back
// for more to come, and many come through whole, whatever they are.
func carries(t *testing.T, m Machine) {
	t.Helper()
	c := start(t, m, "cat")
	defer func() { _ = c.Close() }()
	for _, part := range [][]byte{{0}, {'\n'}, {3, 4, 17, 19, 26, 28, 127, 255}, []byte("a line\r\nand another")} {
		got := make([]byte, len(part))
		if _, err := c.Write(part); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, part) {
			t.Fatalf("%q came back as %q: %v", part, got, err)
		}
	}
	sent := make([]byte, 8<<20)
	_, _ = rand.Read(sent)
	go func() { _, _ = c.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("of 8 MiB some came back changed: %v", err)
	}
}

func TestTheEndOfACommandIsTheEndOfItsOutput(t *testing.T) {
	c := start(t, open(t, Local()), "echo out; echo no such thing >&2; exit 3")
	defer func() { _ = c.Close() }()
	if out, err := io.ReadAll(c); err != nil || string(out) != "out\n" {
		t.Errorf("%q, %v", out, err)
	}
	if said := c.Said(); said != "no such thing" {
		t.Errorf("it said %q", said)
	}
}

func TestOnlyTheEndOfALongErrorOutputIsKept(t *testing.T) {
	c := start(t, open(t, Local()), "head -c 300000 /dev/zero | tr '\\0' x >&2; echo the end >&2")
	defer func() { _ = c.Close() }()
	if _, err := io.ReadAll(c); err != nil {
		t.Error(err)
	}
	if said := c.Said(); len(said) != tailMost-1 || !strings.HasSuffix(said, "xthe end") {
		t.Errorf("%d bytes are kept", len(said))
	}
}

func TestCloseUnblocksWhoReadsAndWhoWrites(t *testing.T) {
	c := start(t, open(t, Local()), "trap '' TERM; while :; do sleep 60; done")
	var read, wrote = make(chan error, 1), make(chan error, 1)
	go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
	go func() { _, err := c.Write(make([]byte, 10<<20)); wrote <- err }()
	time.Sleep(20 * time.Millisecond) // they may also come later: then they get the error at once
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for what, end := range map[string]chan error{"read": read, "write": wrote} {
		select {
		case err := <-end:
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		case <-time.After(60 * time.Second):
			t.Errorf("%s is still waited for", what)
		}
	}
}

func TestAProgramThatIsNotInstalledIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Podman("c")(t.Context()); err == nil || !strings.Contains(err.Error(), "podman is not installed here") {
		t.Errorf("%v", err)
	}
}
