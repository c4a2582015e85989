package store

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/store.md is the schema for those who read the file with other programs:
// the same tables, columns and types in the same order, and the same version.
func TestThePageOfTheStoreIsTheSchema(t *testing.T) {
	page, err := os.ReadFile("../docs/store.md")
	check(t, err)
	s := open(t)
	tables := must[[]string](t)(query(s, "list tables", func(r row) (name string, err error) { return name, r.Scan(&name) },
		"SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'"))
	sections := strings.Split(string(page), "\n## ")
	told := map[string]string{}
	columns := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([A-Z]+) \\|")
	for _, section := range sections[1:] {
		name, text, _ := strings.Cut(section, "\n")
		for _, m := range columns.FindAllStringSubmatch(text, -1) {
			told[name] += m[1] + " " + m[2] + ", "
		}
	}
	for _, table := range tables {
		is := must[[]string](t)(query(s, "list columns", func(r row) (string, error) {
			var name, kind string
			err := r.Scan(&name, &kind)
			return name + " " + kind + ", ", err
		}, "SELECT name, type FROM pragma_table_info(?) ORDER BY cid", table))
		if got, want := told[table], strings.Join(is, ""); got != want {
			t.Errorf("docs/store.md has of table %s\n%s\nand it is\n%s", table, got, want)
		}
		delete(told, table)
	}
	for table := range told {
		t.Errorf("docs/store.md has a table %s that there is not", table)
	}
	if want := fmt.Sprintf("now **%d**", len(migrations)); !strings.Contains(string(page), want) {
		t.Errorf("docs/store.md does not say that the version is %s", want)
	}
}
