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
