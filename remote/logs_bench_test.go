//go:build linux

package remote

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// BenchmarkAMillionLines is a log of a million lines, in two segments, as
// FollowLog brings it and as OpenSSH's client with cat does.
func BenchmarkAMillionLines(b *testing.B) {
	s := sshdtest.Start(b)
	n := openTest(b, s)
	dir := filepath.Join(s.Home, ".dlwb/runs/r1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	text := bytes.Repeat([]byte("step 12345 | loss 2.34567 | lr 0.00030 | 123456 tokens/s | grad norm 0.98765 | 12:34:56 | epoch 3\n"), 1_000_000)
	for i, piece := range slices.Collect(slices.Chunk(text, logSegment)) {
		name := filepath.Join(dir, "rank-0.log")
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		if err := os.WriteFile(name, piece, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("FollowLog", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			got := 0
			_ = n.FollowLog(testContext(b), "r1", "rank-0.log", 0, func(_ int64, p []byte) error {
				got += len(p)
				return enough(got >= len(text))
			}, nil)
			if got != len(text) {
				b.Fatalf("got %d bytes", got)
			}
		}
	})
	b.Run("ssh cat", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		_, port, _ := net.SplitHostPort(s.Addr)
		for b.Loop() {
			cmd := exec.Command("ssh", "-F", "none", "-i", s.KeyFile, "-p", port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
				"-o", "LogLevel=ERROR", s.User+"@127.0.0.1", "cat .dlwb/runs/r1/rank-0.log .dlwb/runs/r1/rank-0.log.1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			got, _ := io.Copy(io.Discard, out)
			if err := cmd.Wait(); err != nil || got != int64(len(text)) {
				b.Fatal(got, err)
			}
		}
	})
}

// BenchmarkDelay is how long a line that a rank prints takes to get here.
func BenchmarkDelay(b *testing.B) {
	s := sshdtest.Start(b)
	n := openTest(b, s)
	if err := n.Install(testContext(b)); err != nil {
		b.Fatal(err)
	}
	if err := n.Launch(testContext(b), launchOf(ranks("while :; do date +%s%N; sleep 0.02; done"))); err != nil {
		b.Fatal(err)
	}
	defer func() { _, _ = n.StopRun(testContext(b), "r1", 0, "enough") }()
	var took []time.Duration
	for b.Loop() {
		_ = n.FollowLog(testContext(b), "r1", "rank-0.log", 0, func(_ int64, p []byte) error {
			now := time.Now()
			lines := bytes.Fields(p)
			if nanos, err := strconv.ParseInt(string(lines[len(lines)-1]), 10, 64); err == nil && len(lines) == 1 {
				took = append(took, now.Sub(time.Unix(0, nanos)))
			}
			return enough(len(took) >= 200)
		}, nil)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
}
