package profiles

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with go test ./profiles -update, and read it", err)
	}
	if string(got) != string(want) {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", file, got, want)
	}
}

// shell are the variables of the shell in the tests.
func shell(name string) (string, bool) {
	v, ok := map[string]string{"DLWB_TEST_SECRET": "s3cr3t value", "DLWB_TEST_USER": "ada", "HOME": "/home/ada"}[name]
	return v, ok
}

// files returns the profiles of a directory of testdata by base name.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test data in %s: %v", dir, err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = text
	}
	return all
}

func TestEachBrokenProfileSaysWhatIsWrongAndWhere(t *testing.T) {
	all := files(t, "broken")
	if len(all) < 30 {
		t.Errorf("only %d broken profiles", len(all))
	}
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			_, err := parse(name, text, shell)
			var faults Errors
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("got %v, want Errors", err)
			}
			for i, e := range faults {
				checkFault(t, e)
				if i > 0 && faults[i-1].Line > e.Line {
					t.Errorf("not in the order of the file: %v", e)
				}
			}
			golden(t, filepath.Join("testdata", "broken", strings.TrimSuffix(name, ".yaml")+".err"), []byte(faults.Detail()+"\n"))
		})
	}
}

// checkFault checks what holds for every message.
func checkFault(t *testing.T, e *Error) {
	t.Helper()
	if e.Line < 1 || e.Column < 1 || e.What == "" || e.Why == "" || e.Nearest == "" && e.Next == "" {
		t.Errorf("a fault without a place, a reason or a way out: %#v", e)
	}
	for _, secret := range []string{"AbCdEfGhIjKl", "0123456789abcdef", "IOSFODNN7", "hunter2", "s3cr3t"} {
		if strings.Contains(e.Detail(), secret) {
			t.Errorf("a secret is shown: %s", e.Detail())
		}
	}
	if strings.ContainsAny(e.Detail(), "\x1b\x07\r\u202e") {
		t.Errorf("something a terminal would obey is shown: %q", e.Detail())
	}
}
