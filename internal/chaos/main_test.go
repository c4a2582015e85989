//go:build linux

// Package chaos breaks what a run stands on, at moments drawn by chance, and
// holds dlwb to what it promises: every byte once, the right verdict, nothing
// destroyed by a failed look, nothing left, nothing believed that a node says.
//
// The hosts are those of package testbed, the program is dlwb as make build
// makes it. `make chaos` plays all of the cells, `make test` a slice of them;
// the seed that a test prints plays the same ones again.
package chaos

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dlwb/dlwb/internal/testbed"
)

const (
	// cellsVar is how many moments are drawn; seedVar draws the same ones again.
	cellsVar = "DLWB_CHAOS"
	seedVar  = "DLWB_CHAOS_SEED"
	// fewCells and fewCuts are the slice that make test plays; make chaos plays
	// 200 and allCuts.
	fewCells = 12
	fewCuts  = 6
	allCuts  = 20
)

// exe is the real dlwb. It is built without the race detector, whose memory
// would be measured instead of dlwb's.
var exe string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "dlwb-chaos-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		exe = filepath.Join(dir, "dlwb")
		build := exec.Command("make", "-C", "../..", "build", "BIN="+exe)
		build.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build dlwb: %v\n%s", err, out)
			return 1
		}
		flag.Parse()
		if err := flag.Set("test.parallel", "4"); err != nil { // they wait more than they work
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// asked is a number from the environment, or the usual one.
func asked(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return usual
}

// all reports whether everything is to be played, as make chaos does.
func all() bool { return asked(cellsVar, fewCells) > fewCells }

// dice are the moments of a test, which its name and the seed determine.
func dice(seed, stream int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(seed), uint64(stream)))
}

func seed(t *testing.T) int {
	t.Helper()
	s := asked(seedVar, rand.IntN(1_000_000)+1)
	t.Logf("%s=%d plays the same moments again", seedVar, s)
	return s
}

// hosts makes hosts, for a test and its subtests.
func hosts(t *testing.T, n int) *testbed.Bed {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN: makes real hosts; run without -short")
	}
	bed, err := testbed.Up(n, testbed.Options{GPUs: 1})
	if errors.Is(err, testbed.ErrMissing) {
		t.Skip("NOT RUN: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Down(); err != nil {
			t.Error(err)
		}
	})
	return bed
}
