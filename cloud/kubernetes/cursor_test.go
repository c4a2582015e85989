package kubernetes

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/kubernetes/podlog"
	"github.com/dlwb/dlwb/internal/job"
)

// logOf is a log as the API gives it, with stamps, some of them the same.
func logOf(r *rand.Rand, lines int) (stamped []string, text string) {
	at := 0
	for i := range lines {
		if r.IntN(4) > 0 {
			at += r.IntN(300_000_000)
		}
		line := fmt.Sprintf("line %d%s\n", i, strings.Repeat("x", r.IntN(40)))
		stamped = append(stamped, fmt.Sprintf("2026-11-23T12:50:%02d.%09dZ %s", at/1_000_000_000%60, at%1_000_000_000, line))
		text += line
	}
	return stamped, text
}

// The API gives whole seconds again; the reader leaves out what was read, wherever
// a connection is cut, and another process goes on from the stored cursor.
func TestACursorGoesOnExactlyWhereverAConnectionIsCut(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		stamped, want := logOf(r, 1+r.IntN(60))
		var got bytes.Buffer
		stored, next := job.Cursor(""), job.Cursor("")
		for round := 0; ; round++ {
			at, err := podlog.Read(stored)
			if err != nil {
				t.Fatal(err)
			}
			var answer strings.Builder
			for _, line := range stamped {
				if at.Stamp == "" || line[:len("2026-11-23T12:50:00")] >= at.Stamp[:len("2026-11-23T12:50:00")] {
					answer.WriteString(line)
				}
			}
			text := answer.String()
			last := round > 6
			if !last {
				text = text[:r.IntN(len(text)+1)]
			}
			f := &follower{replica: &replica{}, pick: (&replica{}).pick("rank-0.log"), at: at, last: stored, sink: func(c job.Chunk) error {
				if c.From != next {
					return fmt.Errorf("from %q, where %q was next", c.From, next)
				}
				got.Write(c.Data)
				next = c.Next
				return nil
			}}
			if err := f.drain(strings.NewReader(text), last); err != nil {
				t.Fatal(err)
			}
			if stored = next; last {
				break
			}
		}
		if got.String() != want {
			t.Fatalf("seed %d:\n%q\nnot\n%q", seed, got.String(), want)
		}
	}
}

// A node that has rotated a log before it was read lacks the cursor's own line.
func TestARotatedLogIsTold(t *testing.T) {
	r := podlog.NewReader(podlog.Cursor{Stamp: "2026-11-23T12:50:23.000000001Z", Lines: 1})
	if _, gap := r.Take(podlog.Line{Stamp: "2026-11-23T12:50:25.000000001Z", Text: []byte("later\n")}); !gap {
		t.Error("lines are missing, and nobody says so")
	}
	r = podlog.NewReader(podlog.Cursor{Stamp: "2026-11-23T12:50:23.000000001Z", Lines: 1})
	_, first := r.Take(podlog.Line{Stamp: "2026-11-23T12:50:23.000000001Z", Text: []byte("seen\n")})
	text, second := r.Take(podlog.Line{Stamp: "2026-11-23T12:50:25.000000001Z", Text: []byte("later\n")})
	if first || second || string(text) != "later\n" {
		t.Errorf("%v %v %q", first, second, text)
	}
}

func FuzzACursorOrALineNeverPanics(f *testing.F) {
	f.Add(`{"p":"u","t":"2026-11-23T12:50:23.396621357Z","n":2,"b":3}`, []byte("2026-11-23T12:50:23.396621357Z a\nx\n2026-11-23T12:50:24Z b"))
	f.Fuzz(func(t *testing.T, text string, log []byte) {
		at, err := podlog.Read(job.Cursor(text))
		if err != nil {
			return
		}
		follow := &follower{replica: &replica{}, pick: (&replica{}).pick("rank-0.log"), at: at, sink: func(job.Chunk) error { return nil }}
		_ = follow.drain(bytes.NewReader(log), true)
	})
}
