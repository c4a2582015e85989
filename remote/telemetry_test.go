//go:build unix

package remote

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

func TestTelemetrySurvivesALostConnectionWithWholeFramesOnly(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	installFake(t, s, `i=0; while echo "frame $i
net $1
end"; do i=$((i+1)); printf 'frame cut\nnet '; sleep 0.02; done`)
	ctx, cancel := context.WithCancel(testContext(t))
	var frames []string
	err := n.Telemetry(ctx, "et h0", nil, func(frame []byte) {
		frames = append(frames, string(frame))
		switch again := slices.Contains(frames[1:], frames[0]); {
		case len(frames) == 3:
			s.KillConnections()
		case again && len(frames) > 6:
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if first := "frame 0\nnet et h0\nend\n"; frames[0] != first || !slices.Contains(frames[1:], first) {
		t.Errorf("the frames are %q; want two runs from %q on", frames, first)
	}
	for _, frame := range frames {
		if !strings.HasSuffix(frame, "\nnet et h0\nend\n") {
			t.Errorf("%q is no whole frame", frame)
		}
	}
}

func TestTelemetryIsAskedForItsPaceOverTheStreamThatIsThere(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	installFake(t, s, `echo "frame 0
end"; while read -r x; do echo "frame $x
start $$
end"; done`)
	ctx, cancel := context.WithCancel(testContext(t))
	pace := NewPace()
	var frames []string
	_ = n.Telemetry(ctx, "", pace, func(frame []byte) {
		switch frames = append(frames, strings.Fields(string(frame))[1]); len(frames) {
		case 1:
			pace.Set(time.Hour)
		case 2:
			pace.Set(10 * time.Second) // as it is
			pace.Set(0)
		case 3:
			pace.Set(5 * time.Second)
		case 4:
			s.KillConnections() // the next stream is told at once
		case 6:
			cancel()
		}
	})
	if got := strings.Join(frames, " "); got != "0 10 1 5 0 5" {
		t.Errorf("the script was told %q", got)
	}
}

func TestTelemetryWithoutItsScriptIsAnError(t *testing.T) {
	n := openTest(t, sshdtest.Start(t))
	err := n.Telemetry(testContext(t), "", nil, func([]byte) {})
	if err == nil || !strings.Contains(err.Error(), ".dlwb/bin/telemetry") {
		t.Errorf("got %v, want an error that names the script", err)
	}
}

func TestFramesAreCutOutOfAnyStream(t *testing.T) {
	text := "noise\nend\nframe 1\ncpu 1 2\nend\nframe cut\ncpu\nframe 2\nend\nframe 3"
	for size := 1; size <= len(text); size++ {
		var s frameSplitter
		var got []string
		for piece := range slices.Chunk([]byte(text), size) {
			s.split(piece, func(frame []byte) { got = append(got, string(frame)) })
		}
		if want := []string{"frame 1\ncpu 1 2\nend\n", "frame 2\nend\n"}; !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: got %q, want %q", size, got, want)
		}
	}
	var s frameSplitter
	s.split(make([]byte, frameMost+1), func([]byte) {})
	if len(s.buf) != 0 {
		t.Errorf("%d bytes without a frame are kept", len(s.buf))
	}
}

// installFake puts a telemetry script of the test's own on the node.
func installFake(t *testing.T, s *sshdtest.Server, script string) {
	t.Helper()
	dir := filepath.Join(s.Home, ".dlwb", "bin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "telemetry"), script)
}
