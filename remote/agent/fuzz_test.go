//go:build linux

package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/dlwb/dlwb/remote/wire"
)

// harmless are the services that change nothing and connect to nowhere: a fuzzer
// may call them with whatever it makes up.
var harmless = []string{wire.Facts, wire.FetchPort, wire.Files, wire.Follow, wire.ListenPort, wire.State, wire.Telemetry}

// requests are what the others receive, which is only decoded.
func requests() []any {
	return []any{
		&wire.ExecRequest{}, &wire.ExecInput{}, &wire.DialRequest{}, &wire.LaunchRequest{}, &wire.StopRequest{}, &wire.ListRequest{},
		&wire.FetchRequest{}, &wire.FetchPage{}, &wire.PutRequest{}, &wire.Head{}, &wire.Pack{}, &wire.AsideRequest{},
		&wire.SyncLook{}, &wire.SyncView{}, &wire.SyncStep{}, &wire.SyncForward{}, &wire.SyncSettle{}, &wire.SyncChunks{},
	}
}

// FuzzRequests gives services requests that no caller of ours makes. The agent
// ends in time, whatever it was asked.
func FuzzRequests(f *testing.F) {
	f.Setenv("HOME", f.TempDir())
	for i := range harmless {
		for _, v := range []any{map[string]any{"p": 0, "path": "x", "from": 1}, wire.FollowRequest{Path: "x", From: 1}, wire.Connected{Number: 1}, wire.ListenRequest{}} {
			body, err := cbor.Marshal(v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		if len(body) >= wire.MessageMost {
			return
		}
		asked(t, harmless[int(which)%len(harmless)], body)
		for _, r := range requests() {
			framed := append(binary.AppendUvarint(nil, uint64(len(body))), body...)
			_ = wire.ReadFrame(bufio.NewReader(bytes.NewReader(framed)), r)
		}
	})
}

// asked calls a service, takes a little of what it says and goes away.
func asked(t *testing.T, service string, body []byte) {
	t.Helper()
	near, far := net.Pipe()
	over := make(chan error, 1)
	go func() { over <- Serve(context.Background(), far) }()
	session, err := wire.Dial(near)
	if err != nil {
		t.Fatal(err)
	}
	call, err := session.Call(t.Context(), service, cbor.RawMessage(body))
	if err == nil {
		late := time.AfterFunc(50*time.Millisecond, call.Reset)
		_, _ = io.CopyN(io.Discard, call.Raw(), 64<<10)
		late.Stop()
		call.Reset()
	}
	_ = session.Close()
	if err := <-over; err != nil {
		t.Errorf("%s: %v", service, err)
	}
}

func TestHarmlessServicesAreThere(t *testing.T) {
	for _, name := range harmless {
		if services[name] == nil {
			t.Errorf("there is no service %q", name)
		}
	}
	if slices.Contains(harmless, wire.Exec) {
		t.Error("a fuzzer would run commands")
	}
}
