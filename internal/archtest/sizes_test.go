package archtest

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A package is what one reads before one changes it. These limits are without
// tests; rigs below internal count like the program.
const (
	mostLines  = 6000
	mostFiles  = 40
	mostMedian = 450 // lines of the median package
)

// larger are the packages over a limit, with what they have now: the numbers may
// fall, and a package leaves the list when it is below both limits. Formats are
// added to metrics, which has a bound of its own instead.
var larger = map[string]struct {
	lines, files int
	why          string
}{
	"metrics": {8000, 40, "what reads one format needs the words of all others: cutting it widens its surface"},
}

func TestPackagesAreSmallEnoughToBeRead(t *testing.T) {
	lines, files := map[string]int{}, map[string]int{}
	for rel, name := range programFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(filepath.ToSlash(rel))
		lines[dir] += bytes.Count(text, []byte("\n"))
		files[dir]++
	}
	var all []int
	for dir, n := range lines {
		all = append(all, n)
		limit, over := larger[dir]
		switch {
		case over && n <= mostLines && files[dir] <= mostFiles:
			t.Errorf("%s is below the limits now: take it off the list", dir)
		case over && (n > max(limit.lines, mostLines) || files[dir] > max(limit.files, mostFiles)):
			t.Errorf("%s has grown to %d lines in %d files, from %d in %d", dir, n, files[dir], limit.lines, limit.files)
		case !over && (n > mostLines || files[dir] > mostFiles):
			t.Errorf("%s has %d lines in %d files; %d in %d are the most", dir, n, files[dir], mostLines, mostFiles)
		}
	}
	slices.Sort(all)
	median := all[len(all)/2]
	t.Logf("%d packages, the median has %d lines", len(all), median)
	if median > mostMedian {
		t.Errorf("the median package has %d lines, %d are the most", median, mostMedian)
	}
}

// The table of CONTRIBUTING.md says the one job of each package, by its path or,
// in the row of its parent, by its last name. The parts of the agent have a page
// of their own: docs/agent.md.
func TestEveryPackageStandsInTheTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for rel := range programFiles(t) {
		seen[path.Dir(filepath.ToSlash(rel))] = true
	}
	for dir := range seen {
		if dir == "." || strings.HasPrefix(dir, "remote/agent/") || strings.HasSuffix(dir, "/options") {
			continue
		}
		if !strings.Contains(string(page), "`"+dir+"`") && !strings.Contains(string(page), "`"+path.Base(dir)+"`") {
			t.Errorf("CONTRIBUTING.md does not say what %s is for", dir)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join("..", "..", row[1])); err != nil && strings.Contains(row[1], "/") {
			t.Errorf("CONTRIBUTING.md says what %s is for, which is not there", row[1])
		}
	}
}
