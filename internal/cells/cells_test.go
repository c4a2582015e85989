package cells

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"pgregory.net/rapid"

	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/spark"
)

var pictures = flag.String("pictures", "", "folder to write the test frame to, to look at")

// frame is a screen with everything the painter knows.
func frame() string {
	border := lipgloss.NewStyle().Border(lipgloss.RoundedBorder()).BorderForeground(lipgloss.Color("8"))
	var train, val plot.Series
	for i := range 2000 {
		x := float64(i)
		train.Add(x, 3.2*math.Exp(-x/400)+1.2+0.1*math.Sin(x*1.7))
		if i%100 == 99 {
			val.Add(x, 3.2*math.Exp(-x/420)+1.35)
		}
	}
	chart := plot.Chart{Title: "loss", XLabel: "step", Series: []plot.Line{
		{Name: "train", Series: &train, Style: lipgloss.NewStyle().Foreground(lipgloss.Color("12"))},
		{Name: "val", Series: &val, Style: lipgloss.NewStyle().Foreground(lipgloss.Color("#e0af68"))},
	}, AxisStyle: lipgloss.NewStyle().Foreground(lipgloss.Color("8")), TitleStyle: lipgloss.NewStyle().Bold(true)}
	return strings.Join([]string{
		" \x1b[1;7m dlwb \x1b[0m charlm \x1b[32m● training\x1b[0m  epoch 3/10  \x1b[2mETA 0:42\x1b[0m   \x1b[33m$1.21/h\x1b[0m <&> \"quoted\" 中文 ✓ ✗ ▶ …",
		border.Render(chart.Draw(76, 12)),
		" gpu0 \x1b[36m" + spark.Bar(0.73, 20) + "\x1b[0m 73%  \x1b[35m" + spark.Sparkline([]float64{1, 3, 2, 5, 8, 6, 7, 4, 2, 9}, 10, 9) + "\x1b[0m  ░▒▓█ ▀▄▌▐ ▖▗▘▙▚▛▜▝▞▟ ▔▕",
		" ┌─┬─┐ ╔═╦═╗ ┏━┳━┓ ╭─╮ ╓─╥─╖ \x1b[41;97m fail \x1b[0m \x1b[48;5;236;38;5;214m 256 \x1b[0m \x1b[4munder\x1b[0m \x1b[9mstrike\x1b[0m \x1b[3mitalic\x1b[0m",
		" ├─┼─┤ ╠═╬═╣ ┣━╋━┫ │ │ ╟─╫─╢ ┄┄┄ ┆ ╌╌ ╱╲╳ ⠋⠙⠹⠸ ⣿⣿⣿",
		" └─┴─┘ ╚═╩═╝ ┗━┻━┛ ╰─╯ ╙─╨─╜ \x1b[30m0\x1b[31m1\x1b[32m2\x1b[33m3\x1b[34m4\x1b[35m5\x1b[36m6\x1b[37m7\x1b[90m8\x1b[91m9\x1b[92mA\x1b[93mB\x1b[94mC\x1b[95mD\x1b[96mE\x1b[97mF\x1b[0m",
	}, "\n")
}

func TestTheGridHasWhatTheViewShows(t *testing.T) {
	g := Parse("\x1b[1;31mab\x1b[0m中c\nsecond line that is cut", 8, 3)
	if got, want := g.Text(), "ab中c\nsecond l\n"; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
	if c := g.At(1, 0); c.Text != "b" || !c.Bold || c.Fg == nil {
		t.Errorf("cell 1,0 is %+v", c)
	}
	if c := g.At(2, 0); c.Text != "中" || c.Width != 2 || c.Bold || c.Fg != nil {
		t.Errorf("cell 2,0 is %+v", c)
	}
	if c := g.At(3, 0); c.Width != 0 || c.Text != "" {
		t.Errorf("the second half of a wide character is %+v", c)
	}
}

// checkXML fails unless b is well-formed.
func checkXML(t interface{ Fatalf(string, ...any) }, b []byte) {
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

func TestBoxesBlocksAndBrailleNeedNoFont(t *testing.T) {
	for r := rune(0x2500); r <= 0x28ff; r++ {
		if r > 0x259f && r < 0x2800 {
			continue
		}
		svg := string(SVG("\x1b[31m"+string(r), 1, 1, Dark))
		if strings.Contains(svg, "<text") {
			t.Errorf("%U is left to a font", r)
		}
		if r != 0x2800 && !strings.Contains(svg, `fill="`+hex(Dark.Palette[1])+`"`) {
			t.Errorf("%U draws nothing", r)
		}
	}
}

func TestEveryColourDepthIsDrawn(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mx":              hex(Light.Palette[1]),
		"\x1b[91mx":              hex(Light.Palette[9]),
		"\x1b[38;5;9mx":          hex(Light.Palette[9]),
		"\x1b[38;5;214mx":        "#ffaf00",
		"\x1b[38;2;1;2;3mx":      "#010203",
		"\x1b[48;2;9;8;7mx":      "#090807",
		"\x1b[7;38;2;10;20;30mx": "#0a141e",
	} {
		if svg := string(SVG(in, 2, 1, Light)); !strings.Contains(svg, `fill="`+want+`"`) {
			t.Errorf("%q has no %s", in, want)
		}
	}
}

func TestABackgroundNeverHidesABlockOfItsColour(t *testing.T) {
	svg := string(SVG("\x1b[41m \x1b[44;31m█\x1b[0m", 4, 1, Dark))
	red, blue := hex(Dark.Palette[1]), hex(Dark.Palette[4])
	if strings.LastIndex(svg, red) < strings.Index(svg, blue) {
		t.Errorf("the red block lies below the blue background:\n%s", svg)
	}
}

func TestTextIsEscapedAndKeptInItsCells(t *testing.T) {
	svg := string(SVG(`a <b> "c" & d`, 20, 1, Dark))
	for _, want := range []string{"&lt;b&gt;", "&quot;c&quot;", "&amp;", `x="32" y="27.6" textLength="27"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}

func TestAnyViewGivesAWellFormedPicture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a─╭⣿█ 中\x1b[1;31m\n<&")))).Draw(t, "view")
		w, h := rapid.IntRange(0, 40).Draw(t, "w"), rapid.IntRange(0, 10).Draw(t, "h")
		theme := Dark
		theme.Title = rapid.String().Draw(t, "title")
		checkXML(t, SVG(view, w, h, theme))
	})
}

func TestTheFrameBecomesAPicture(t *testing.T) {
	dir := *pictures
	if dir == "" {
		dir = t.TempDir()
	}
	for name, theme := range map[string]Theme{"dark": Dark, "light": Light} {
		theme.Title = "dlwb: " + name
		svg := SVG(frame(), 80, 20, theme)
		checkXML(t, svg)
		path := filepath.Join(dir, name+".svg")
		if err := os.WriteFile(path, svg, 0o644); err != nil {
			t.Fatal(err)
		}
		convert, err := exec.LookPath("rsvg-convert")
		if err != nil {
			continue // the XML was checked; the picture needs the tool
		}
		out, err := exec.Command(convert, "-z", "2", path, "-o", filepath.Join(dir, name+".png")).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("rsvg-convert: %v\n%s", err, out)
		}
	}
}

func BenchmarkSVG(b *testing.B) {
	view := frame()
	for b.Loop() {
		SVG(view, 160, 48, Dark)
	}
}
