package ui_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"github.com/dlwb/dlwb/internal/scenes"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/charmbracelet/x/exp/teatest/v2.NewTestModel.func2"))
}

// updating reports whether golden files are to be written. The flag is
// registered by teatest; a second one of that name would panic.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

func TestScenesLookAsTheyDid(t *testing.T) {
	drawsOnly(t)
	for _, sc := range scenes.All() {
		t.Run(sc.Name, func(t *testing.T) {
			for _, size := range scenes.Sizes {
				s := sc.Build(size[0], size[1], "dark")
				checkFrame(t, s.Model.Frame(), size[0], size[1])
				compare(t, fmt.Sprintf("%s-%dx%d.txt", sc.Name, size[0], size[1]), s.Screen()+"\n")
				s.Close()
			}
		})
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if updating() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./ui -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it, and if it is right: go test ./ui -update\n%s", name, firstDifference(got, string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "(no row)", "(no row)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("row %d\n got  %s\n want %s", i, a, b)
		}
	}
	return ""
}

// checkFrame holds what is true of every frame: h rows, none wider than w,
// nothing but printable characters and SGR.
func checkFrame(t *testing.T, frame string, w, h int) {
	t.Helper()
	rows := strings.Split(frame, "\n")
	if len(rows) != h {
		t.Fatalf("%d×%d: %d rows", w, h, len(rows))
	}
	for y, row := range rows {
		if n := ansi.StringWidth(row); n > w {
			t.Fatalf("%d×%d: row %d is %d wide: %q", w, h, y, n, row)
		}
		for _, r := range ansi.Strip(row) {
			if unicode.IsControl(r) {
				t.Fatalf("%d×%d: row %d has a control character %U: %q", w, h, y, r, row)
			}
		}
	}
}

func TestEverySizeSurvives(t *testing.T) {
	drawsOnly(t)
	var widths, heights []int
	for i := 1; i <= 220; i += 1 + i/2 {
		widths = append(widths, i)
	}
	for i := 1; i <= 70; i += 1 + i/2 {
		heights = append(heights, i)
	}
	for _, sc := range scenes.All() {
		s := sc.Build(80, 24, "dark")
		for _, w := range widths {
			for _, h := range heights {
				checkFrame(t, s.Resize(w, h).Model.Frame(), w, h)
			}
		}
		s.Close()
	}
}

func TestEverySmallSizeSurvives(t *testing.T) {
	drawsOnly(t)
	for _, sc := range scenes.All() {
		switch sc.Name {
		case "home", "train-16x8", "teardown", "logs", "wizard-machine", "wizard-compare", "wizard-review", "spot-notice", "runs-wrong", "runs-filter", "compare", "compare-facts":
		default:
			continue
		}
		s := sc.Build(80, 24, "light")
		for w := 1; w <= 56; w++ {
			for h := 1; h <= 18; h++ {
				checkFrame(t, s.Resize(w, h).Model.Frame(), w, h)
			}
		}
		s.Close()
	}
}

func TestColourCarriesNoMeaningAlone(t *testing.T) {
	// The golden frames hold no colour; what follows must be in them as words.
	for name, words := range map[string][]string{
		"train-simulated": {"SIMULATED"}, "unresolved": {"UNRESOLVED", "unknown", "alive"},
		"spot-notice": {"taken away in", "! ends in"}, "stopped": {"stopped"}, "wizard-facts": {"not live"},
		"train-stale": {"unknown since"}, "train-failed": {"failed (3)"}, "train": {"no GPU"}, "steps-failed": {"failed"},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", name+"-80x24.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s does not say %q", name, w)
			}
		}
	}
}
