package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A row of the table of attacks names its tests, then their package.
var namedTests = regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) \\(`([\\w/]+)`\\)")

// docs/security.md says which test holds each promise: a test that was renamed
// or removed must not leave the promise behind.
func TestEveryAttackInTheDocsNamesTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| attack | what happens | test |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 15 {
		t.Fatalf("the table of attacks has %d rows", len(rows))
	}
	for _, row := range rows {
		named := namedTests.FindAllStringSubmatch(row, -1)
		if len(named) == 0 {
			t.Errorf("no test holds: %s", row)
		}
		theyExist(t, "docs/security.md", named)
	}
}

// theyExist reports tests that a page names and that are not there.
func theyExist(t *testing.T, page string, named [][]string) {
	t.Helper()
	for _, n := range named {
		tests := testsOf(t, filepath.Join("..", "..", filepath.FromSlash(n[2])))
		for name := range strings.SplitSeq(n[1], ", ") {
			if name = strings.Trim(name, "`"); !strings.Contains(tests, "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s names %s of %s, which is not there", page, name, n[2])
			}
		}
	}
}

// docs/systems.md compares dlwb with what others built: each of its rows names tests
// that there are, or says that it is not built, or that no test holds it.
func TestEveryPointOfASystemHasATestOrSaysThatItHasNone(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "systems.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		named := namedTests.FindAllStringSubmatch(line, -1)
		theyExist(t, "docs/systems.md", named)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| point |") {
			continue
		}
		rows++
		cells := strings.Split(strings.TrimSpace(line), " |")
		if len(cells) != 4 {
			t.Errorf("%d cells instead of three: %s", len(cells)-1, line)
		}
		if len(named) == 0 && !strings.Contains(line, "**not yet**") && !strings.Contains(line, "no test") {
			t.Errorf("no test holds: %s", line)
		}
	}
	if rows < 50 {
		t.Errorf("the tables have %d rows", rows)
	}
}

// testsOf is the text of all tests of a package.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
