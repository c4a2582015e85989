package testbed

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestHostsAreRealAndGoAway(t *testing.T) {
	b, err := Up(2, Options{})
	if errors.Is(err, ErrMissing) {
		t.Skip("NOT RUN: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.N {
		if out, err := b.Run(i, "hostname"); err != nil || strings.TrimSpace(out) != Name(i) {
			t.Errorf("host %d is %q, %v", i, out, err)
		}
		if key, err := b.HostKey(i); err != nil || !strings.HasPrefix(key, "ssh-ed25519 ") {
			t.Errorf("host %d shows %q, %v", i, key, err)
		}
		if _, err := os.Stat(b.Home(i)); err != nil {
			t.Error(err)
		}
	}
	if err := b.Down(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.Home(0)); err == nil {
		t.Error("the hosts have left something")
	}
}

// Names and addresses of hosts are the machine's: a bed of a test that was killed
// goes before the next one comes, also where that has another TMPDIR.
func TestHostsThatWereLeftGoBeforeOthersCome(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left, err := Up(1, Options{})
	if errors.Is(err, ErrMissing) {
		t.Skip("NOT RUN: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = left.mu.Close() // as the end of its process would
	t.Setenv("TMPDIR", t.TempDir())
	next, err := Up(1, Options{})
	if err != nil {
		t.Fatal(err, left.Down())
	}
	if _, err := os.Stat(left.Home(0)); err == nil {
		t.Error("the hosts of the first one are there")
	}
	if err := next.Down(); err != nil {
		t.Error(err)
	}
}
