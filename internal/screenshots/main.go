// Command screenshots makes the pictures in screenshots/ from the scenes that
// the golden tests use: an SVG for each scene, size and theme, a PNG of the
// main ones where rsvg-convert is there, and one GIF of a run where ffmpeg is
// there too. The same scenes give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/cells"
	"github.com/dlwb/dlwb/internal/scenes"
)

// themes are the two terminals that every scene is shown on.
var themes = []struct {
	name  string
	cells cells.Theme
}{{"dark", cells.Dark}, {"light", cells.Light}}

// main scenes have a PNG too, for pages that show no SVG.
const mainScenes = "home,steps,train,logs,train-failed,receipt,wizard-machine,train-ec2,charts,heat"

func among(name, list string) bool { return strings.Contains(","+list+",", ","+name+",") }

func main() {
	dir := flag.String("out", "screenshots", "directory for the pictures")
	only := flag.String("only", "", "scenes to make, separated by commas; all when empty")
	png := flag.String("png", mainScenes, "scenes that get a PNG too, separated by commas, or all")
	gif := flag.Bool("gif", true, "make the GIF too")
	flag.Parse()
	if err := run(*dir, *only, *png, *gif); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(dir, only, png string, gif bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	drawn := has("rsvg-convert")
	n := 0
	for _, sc := range scenes.All() {
		if only != "" && !among(sc.Name, only) {
			continue
		}
		withPNG := drawn && (png == "all" || among(sc.Name, png))
		for _, size := range scenes.Sizes {
			for _, th := range themes {
				if err := picture(dir, sc, size, th.name, th.cells, withPNG); err != nil {
					return err
				}
				n++
			}
		}
	}
	fmt.Printf("%d pictures in %s\n", n, dir)
	if gif && drawn && has("ffmpeg") {
		return film(filepath.Join(dir, "run.gif"))
	}
	return nil
}

// picture writes one scene at one size in one theme.
func picture(dir string, sc scenes.Scene, size [2]int, name string, theme cells.Theme, png bool) error {
	stage := sc.Build(size[0], size[1], name)
	defer stage.Close()
	theme.Title = "dlwb"
	path := filepath.Join(dir, fmt.Sprintf("%s-%dx%d-%s.svg", sc.Name, size[0], size[1], name))
	if err := os.WriteFile(path, cells.SVG(stage.Model.Frame(), size[0], size[1], theme), 0o644); err != nil {
		return err
	}
	if !png {
		return nil
	}
	to := strings.TrimSuffix(path, ".svg") + ".png"
	if err := toPNG(path, to); err != nil || !has("ffmpeg") {
		return err
	}
	return fewColours(to)
}

// fewColours makes a picture a third of its size: a screen has few colours, so
// a palette shows them all.
func fewColours(path string) error {
	small := path + ".small.png"
	out, err := exec.Command("ffmpeg", "-loglevel", "error", "-y", "-i", path, "-bitexact", "-vf",
		"split[a][b];[a]palettegen=max_colors=128:reserve_transparent=1[p];[b][p]paletteuse=dither=none", small).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ffmpeg: %w: %s", err, out)
	}
	return os.Rename(small, path)
}

func toPNG(from, to string) error {
	out, err := exec.Command("rsvg-convert", "-o", to, from).CombinedOutput()
	if err != nil {
		return fmt.Errorf("rsvg-convert %s: %w: %s", from, err, out)
	}
	return nil
}

func has(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}

// film makes the GIF: a run from its first step to its receipt.
func film(to string) (err error) {
	dir, err := os.MkdirTemp("", "dlwb-film-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	n := 0
	shoot := func(frame string) error {
		svg := filepath.Join(dir, fmt.Sprintf("%03d.svg", n))
		theme := cells.Dark
		theme.Title = "dlwb demo"
		if err := os.WriteFile(svg, cells.SVG(frame, scenes.FilmW, scenes.FilmH, theme), 0o644); err != nil {
			return err
		}
		n++
		return toPNG(svg, strings.TrimSuffix(svg, ".svg")+".png")
	}
	if err := scenes.Film(shoot); err != nil {
		return err
	}
	out, err := exec.Command("ffmpeg", "-loglevel", "error", "-y", "-framerate", "5", "-i", filepath.Join(dir, "%03d.png"),
		"-vf", "split[a][b];[a]palettegen=max_colors=48[p];[b][p]paletteuse=dither=none", "-loop", "0", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ffmpeg: %w: %s", err, out)
	}
	if has("gifsicle") { // a sixth of the size, and nobody sees the difference
		if out, err := exec.Command("gifsicle", "-O3", "--lossy=20", "-b", to).CombinedOutput(); err != nil {
			return fmt.Errorf("gifsicle: %w: %s", err, out)
		}
	}
	fmt.Printf("%s: %d frames, %s\n", to, n, time.Duration(n)*time.Second/5)
	return nil
}
