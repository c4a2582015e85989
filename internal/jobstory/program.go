package jobstory

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var (
	building sync.Once
	built    string
	buildErr error
)

// Program is dlwb, built once for all tests of a package, whose TestMain calls Main.
func Program(t *testing.T) string {
	t.Helper()
	building.Do(func() {
		dir, err := os.MkdirTemp("", "dlwb-story")
		if buildErr = err; err != nil {
			return
		}
		built = filepath.Join(dir, "dlwb")
		if out, err := exec.Command("go", "build", "-o", built, "../..").CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("%w: %s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return built
}

// Main runs the tests and removes what Program has built.
func Main(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // they wait more than they work
		panic(err)
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}
