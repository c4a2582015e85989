//go:build linux

package intake

import (
	"bytes"
	"testing"

	"github.com/dlwb/dlwb/remote/wire"
)

func TestWhatAPeerBringsComesToWhoeverWaits(t *testing.T) {
	home := t.TempDir()
	l, err := listen(home, "sync-x")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	frame, err := wire.Frame(wire.SyncStep{Mark: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- Peer(home, []string{"sync-x"}, bytes.NewReader(frame)) }()
	if r := <-l.steps; r.err != nil || !r.step.Mark {
		t.Errorf("%v came", r)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
