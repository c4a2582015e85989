//go:build linux

package remote

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// telemetry is a running telemetry script.
type telemetry struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	frames chan []string
	stderr strings.Builder
	temp   string
}

// telemetry starts the script with a fake nvidia-smi: the lines of a sh
// program, or none at all.
func (b *box) telemetry(smi string, args ...string) *telemetry {
	b.t.Helper()
	temp := filepath.Join(b.home, "tmp")
	must(b.t, os.MkdirAll(temp, 0o700))
	if smi != "" {
		must(b.t, os.WriteFile(filepath.Join(b.bin, "nvidia-smi"), []byte("#!/bin/sh\n"+smi+"\n"), 0o700))
	}
	tel := &telemetry{t: b.t, temp: temp, frames: make(chan []string, 100)}
	tel.cmd = exec.Command(filepath.Join(b.bin, "sh"), append([]string{filepath.Join(b.home, ".dlwb/bin/telemetry")}, args...)...)
	tel.cmd.Env = append(slices.Clone(b.env), "TMPDIR="+temp)
	tel.cmd.Stderr = &tel.stderr
	var err error
	tel.stdin, err = tel.cmd.StdinPipe()
	must(b.t, err)
	out, err := tel.cmd.StdoutPipe()
	must(b.t, err)
	must(b.t, tel.cmd.Start())
	go tel.read(out)
	return tel
}

// read cuts the output into frames.
func (tel *telemetry) read(out io.Reader) {
	defer close(tel.frames)
	var frame []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if frame = append(frame, lines.Text()); lines.Text() == "end" {
			tel.frames <- frame
			frame = nil
		}
	}
	if frame != nil {
		tel.frames <- append(frame, "CUT OFF")
	}
}

// until returns the first frame that has a line which begins as a pattern says.
func (tel *telemetry) until(begin string) []string {
	tel.t.Helper()
	limit := time.After(8 * time.Second)
	var seen [][]string
	for {
		select {
		case f, ok := <-tel.frames:
			if !ok {
				tel.t.Fatalf("telemetry ended before a line %q", begin)
			}
			seen = append(seen, f)
			if slices.ContainsFunc(f, regexp.MustCompile("^"+begin).MatchString) {
				return f
			}
		case <-limit:
			tel.t.Fatalf("no line %q in %q", begin, seen)
		}
	}
}

var noRecord = regexp.MustCompile(`(?m)^.*: wait_for: No record of process \d+\n`)

// end closes stdin and checks that nothing stays.
func (tel *telemetry) end(b *box) {
	tel.t.Helper()
	must(tel.t, tel.stdin.Close())
	began := time.Now()
	for range tel.frames {
	}
	if err := tel.cmd.Wait(); err != nil || time.Since(began) > 2*time.Second {
		tel.t.Errorf("ended after %v: %v", time.Since(began), err)
	}
	// bash itself complains at its end, once in thousands of times, that it has no
	// record of a process. That is no word of the script's.
	if said := noRecord.ReplaceAllString(tel.stderr.String(), ""); said != "" {
		tel.t.Errorf("it said: %s", said)
	}
	b.wantNothingLeft()
	if files, _ := os.ReadDir(tel.temp); len(files) > 0 {
		tel.t.Errorf("files are left: %v", files)
	}
}

func wantLine(t *testing.T, frame []string, pattern string) {
	t.Helper()
	if !slices.ContainsFunc(frame, regexp.MustCompile("^"+pattern+"$").MatchString) {
		t.Errorf("no line %q in %q", pattern, frame)
	}
}

func TestTelemetryTellsWhatTheNodeIsDoing(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.env = append(b.env, "DLWB_SIMULATED_GPUS=2")
		tel := b.telemetry("printf '0, A, 5, 1, 2, 3, 4, 5\\n1, B, [N/A], 1, 2, 3, 4, 5\\n'", "lo")
		first := tel.until("disk ")
		for _, p := range []string{`frame \d+\.\d\d`, `cores \d+`, `cpu \d+ \d+`, `mem \d+ \d+`, `net \d+ \d+`, `disk \d+ \d+`, "sim", "end"} {
			wantLine(t, first, p)
		}
		frame := tel.until("smi ")
		wantLine(t, frame, `smi 0, A, 5, 1, 2, 3, 4, 5`)
		wantLine(t, frame, `smi 1, B, \[N/A\], 1, 2, 3, 4, 5`)
		wantLine(t, frame, `smiage [01]`)
		// The period is a second, and does not drift.
		begin, before := time.Now(), seconds100(t, frame)
		for range 2 {
			frame = tel.until("frame ")
		}
		if took := seconds100(t, frame) - before; took < 150 || took > 290 || time.Since(begin) > 4*time.Second {
			t.Errorf("two frames took %d hundredths of a second", took)
		}
		tel.end(b)
	})
}

// Most of these come when a rest has only just begun.
func TestManyChangesOfPaceTakeNothingAway(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		tel := b.telemetry(`printf '0, A, 5, 1, 2, 3, 4, 5\n'`)
		tel.until("smi ")
		_, err := io.WriteString(tel.stdin, strings.Repeat("2\n1\n", 50)+"3\n")
		must(t, err)
		tel.until("every 3")
		frame := tel.until("every 3")
		wantLine(t, frame, `smi 0, A, 5, 1, 2, 3, 4, 5`)
		wantLine(t, frame, `disk \d+ \d+`)
		tel.end(b)
	})
}

func TestTelemetryChangesItsPaceWhenItIsAsked(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		tel := b.telemetry(`echo asked >>"$HOME/asked"; printf '0, A, 5, 1, 2, 3, 4, 5\n'`)
		ask := func(text string) {
			_, err := io.WriteString(tel.stdin, text)
			must(t, err)
		}
		tel.until("smi ")
		ask("nonsense\n0\n100\n3\n")
		// A new pace is a frame at once; from the one after it on it holds.
		before := seconds100(t, tel.until("every 3"))
		after := seconds100(t, tel.until("every 3"))
		if after == before {
			t.Error("a frame came twice")
		}
		last := seconds100(t, tel.until("every 3"))
		if took := last - after; took < 250 || took > 600 {
			t.Errorf("two frames took %d hundredths of a second, want 300", took)
		}
		ask("10\n")
		tel.until("every 10")
		asked, _ := os.ReadFile(filepath.Join(b.home, "asked"))
		ask("1\n")
		began := time.Now()
		for frame := tel.until("frame "); slices.Contains(frame, "every 10"); frame = tel.until("frame ") {
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the pace of a second came after %v", took)
		}
		within(t, 8*time.Second, "nvidia-smi is asked again each second", func() bool {
			now, _ := os.ReadFile(filepath.Join(b.home, "asked"))
			return len(now) >= len(asked)+12
		})
		tel.end(b)
	})
}

// seconds100 is a frame's time in hundredths of a second.
func seconds100(t *testing.T, frame []string) int {
	t.Helper()
	d, err := time.ParseDuration(strings.TrimPrefix(frame[0], "frame ") + "s")
	must(t, err)
	return int(d / (10 * time.Millisecond))
}

func TestTelemetryOutlivesANvidiaSmiThatHangs(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		// It answers once, then hangs and ignores TERM.
		tel := b.telemetry(`if mkdir "$HOME/asked" 2>/dev/null; then echo '0, A, 5, 1, 2, 3, 4, 5'; exit; fi
trap '' TERM
while :; do sleep 1; done`)
		frame := tel.until("smiage [3-9]")
		wantLine(t, frame, `smi 0, A, 5, 1, 2, 3, 4, 5`)
		wantLine(t, frame, `net \d+ \d+`)
		tel.end(b)
	})
}

func TestTelemetryPassesOnWhatNvidiaSmiComplainsAbout(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		tel := b.telemetry(`echo "NVIDIA-SMI has failed because it couldn't communicate with the driver."; echo "Make sure"; exit 9`)
		frame := tel.until("smierr ")
		wantLine(t, frame, `smierr NVIDIA-SMI has failed because it couldn't communicate with the driver\. Make sure`)
		tel.end(b)

		tel = b.telemetry("echo '0, A, 5, 1, 2, 3, 4, 5'; echo 'Unable to determine the device handle for GPU 1'; exit 15")
		frame = tel.until("smierr ")
		wantLine(t, frame, `smi 0, A, 5, 1, 2, 3, 4, 5`)
		wantLine(t, frame, `smierr Unable to determine the device handle for GPU 1`)
		tel.end(b)

		must(t, os.Remove(filepath.Join(b.bin, "nvidia-smi")))
		if _, err := exec.LookPath("nvidia-smi"); err == nil {
			return // a real one answers here
		}
		wantLine(t, b.telemetryOnce(), "smierr no GPU")
	})
}

func (b *box) telemetryOnce() []string {
	tel := b.telemetry("")
	frame := tel.until("frame ")
	tel.end(b)
	return frame
}
