//go:build !race

package metrics

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

// resident is the memory that this process has, as the system counts it.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("only Linux tells in /proc/self/statm how much memory a process has")
	}
	pages, err := strconv.Atoi(string(bytes.Fields(b)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// What a point takes is told by the system, not by the size of its type.
func TestAPointTakesAtMost32BytesOfResidentMemory(t *testing.T) {
	const n = 2_000_000
	var set Set
	before := resident(t)
	names := []string{"loss", "lr", "val/loss", "grad_norm"}
	for i := range int64(n) {
		epoch := float64(i) / 1000
		p := stepped(names[i%4], i, float64(i%977))
		p.Epoch = &epoch
		set.Add(p)
	}
	taken := resident(t) - before
	runtime.KeepAlive(&set)
	if kept := set.points(); kept != n {
		t.Fatalf("%d points are kept", kept)
	}
	per := float64(taken) / n
	t.Logf("%.1f bytes of resident memory for each of %d points", per, n)
	if per > 32 || per < 16 {
		t.Errorf("%.1f bytes of resident memory for each point", per)
	}
}
