package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestAFigureIsOneLine(t *testing.T) {
	for _, c := range []struct {
		f    figure
		want string
	}{
		{figure{Name: "a/b", Value: 7.254, Unit: "x", Target: "≥5", OK: true}, "BENCH a/b 7.25 x target ≥5 ok"},
		{figure{Name: "a/b", Value: 123.4, Unit: "ms", Target: "≤20"}, "BENCH a/b 123 ms target ≤20 short"},
		{figure{Name: "a/b", Value: 0.03456, Unit: "s", OK: true}, "BENCH a/b 0.0346 s target - ok"},
		{figure{Name: "a/b", Target: "≥3", Missing: "pdsh is\nnot installed"}, "BENCH a/b - - target ≥3 not run: pdsh is not installed"},
	} {
		if got := c.f.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestMedians(t *testing.T) {
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Error(m)
	}
	if m := median([]time.Duration{4, 1, 3, 2}); m != 2 {
		t.Error(m)
	}
	if m := median([]float64(nil)); m != 0 {
		t.Error(m)
	}
}

// racing is a bench without hosts.
func racing(t *testing.T, rounds int) *bench {
	every := regexp.MustCompile("")
	return &bench{options: options{rounds: rounds, only: [2]*regexp.Regexp{every, every}}, ctx: context.Background(), group: "g", dir: t.TempDir()}
}

func TestARaceTellsRatiosAndWhoCouldNotRun(t *testing.T) {
	b := racing(t, 2)
	var order []string
	did := func(name string, err error) func() error {
		return func() error { order = append(order, name); time.Sleep(time.Millisecond); return err }
	}
	b.race("r",
		racer{name: "us", run: did("us", nil)},
		racer{name: "them", least: 1e6, rounds: 1, run: did("them", nil)},
		racer{name: "gone", missing: "gone is not installed", run: did("gone", nil)},
		racer{name: "broken", run: did("broken", errors.New("no"))})
	if got := strings.Join(order, " "); got != "us them broken us" {
		t.Errorf("they ran as %s", got)
	}
	var lines []string
	for _, f := range b.figures {
		lines = append(lines, f.String())
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{
		"g/r.us ", "g/r.them ", "g/r.them/us", "target ≥1000000 short",
		"g/r.gone/us - - target - not run: gone is not installed", "g/r.broken/us - - target - not run: broken: no",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
}

func TestATableIsWrittenBetweenItsMarksAndNowhereElse(t *testing.T) {
	b := racing(t, 1)
	b.atLeast("x", 2, "x", 1)
	path := filepath.Join(b.dir, "bench.md")
	if err := os.WriteFile(path, []byte("head\n"+tableBegins+"\nold\n"+tableEnds+"\ntail\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.document(path, time.Minute); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	for _, want := range []string{"head\n" + tableBegins, "| x | 2.00 x | ≥1 | ok |", tableEnds + "\ntail\n", " cores of "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Error("the old table is still there")
	}
	if err := b.document(b.dir+"/none", 0); err == nil {
		t.Error("a table was written into a file that is not there")
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-n", "two"}, {"-only", "("}, {"-quick", "-write", "x"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	o, err := parse([]string{"-n", "2,8", "-only", "exec/open"})
	if err != nil || len(o.counts) != 2 || !o.only[0].MatchString("exec") || o.only[1].MatchString("cold-lan-2") {
		t.Errorf("%+v, %v", o, err)
	}
}
