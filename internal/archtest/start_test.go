package archtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// initLine is a line of GODEBUG=inittrace=1 (see the documentation of package runtime).
var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, \d+ allocs$`)

// What packages build as the program starts, every command waits for. Tables of all
// kinds of a cluster, or of all shapes of a cloud's service, once took half of the
// start: the packages that do so are used in another way, or in an earlier version.
func TestLittleIsBuiltAtStart(t *testing.T) {
	program := filepath.Join(t.TempDir(), "dlwb")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, "--version")
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	type one struct {
		name  string
		bytes int
	}
	var all []one
	total := 0
	for _, m := range initLine.FindAllStringSubmatch(string(out), -1) {
		bytes, _ := strconv.Atoi(m[2])
		all, total = append(all, one{m[1], bytes}), total+bytes
	}
	if len(all) < 50 {
		t.Fatalf("the trace is not understood:\n%.2000s", out)
	}
	if total > mostAtStart {
		slices.SortFunc(all, func(a, b one) int { return cmp.Compare(b.bytes, a.bytes) })
		most := ""
		for _, o := range all[:10] {
			most += fmt.Sprintf("\n%9d %s", o.bytes, o.name)
		}
		t.Errorf("%d bytes are allocated before main begins, %d may be; the most by:%s", total, mostAtStart, most)
	}
}
