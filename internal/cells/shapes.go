package cells

import (
	"fmt"
	"math"
	"strings"
)

// cellW and cellH are the size of a cell in the picture. Nine by eighteen has
// whole thirds, halves and eighths enough for blocks to meet without seams.
const (
	cellW = 9.0
	cellH = 18.0
)

// boxArms tells for every character from U+2500 on how thick its arms are: up,
// right, down, left; 1 light, 2 heavy, 3 double.
const boxArms = "0101 0202 1010 2020 0101 0202 1010 2020 " +
	"0101 0202 1010 2020 0110 0210 0120 0220 " +
	"0011 0012 0021 0022 1100 1200 2100 2200 " +
	"1001 1002 2001 2002 1110 1210 2110 1120 " +
	"2120 2210 1220 2220 1011 1012 2011 1021 " +
	"2021 2012 1022 2022 0111 0112 0211 0212 " +
	"0121 0122 0221 0222 1101 1102 1201 1202 " +
	"2101 2102 2201 2202 1111 1112 1211 1212 " +
	"2111 1121 2121 2112 2211 1122 1221 2212 " +
	"1222 2122 2221 2222 0101 0202 1010 2020 " +
	"0303 3030 0310 0130 0330 0013 0031 0033 " +
	"1300 3100 3300 1003 3001 3003 1310 3130 " +
	"3330 1013 3031 3033 0313 0131 0333 1303 " +
	"3101 3303 1313 3131 3333 0110 0011 1001 " +
	"1100 0000 0000 0000 0001 1000 0100 0010 " +
	"0002 2000 0200 0020 0201 1020 0102 2010 "

// dashes is into how many pieces the dashed lines are cut.
var dashes = map[rune]int{
	'┄': 3, '┅': 3, '┆': 3, '┇': 3, '┈': 4, '┉': 4, '┊': 4, '┋': 4, '╌': 2, '╍': 2, '╎': 2, '╏': 2,
}

// shape is the outline of r in the cell whose upper left corner is at x, y, as
// SVG path data, with its opacity. ok is false for characters left to a font.
func shape(r rune, x, y float64) (path string, opacity float64, ok bool) {
	switch {
	case r >= 0x2800 && r <= 0x28ff:
		return braille(r, x, y), 1, true
	case r >= 0x2580 && r <= 0x259f:
		path, opacity = block(r, x, y)
		return path, opacity, true
	case r >= 0x256d && r <= 0x2570:
		return arc(r, x, y), 1, true
	case r >= 0x2571 && r <= 0x2573:
		return diagonal(r, x, y), 1, true
	case r >= 0x2500 && r <= 0x257f:
		return box(r, x, y), 1, true
	}
	return "", 1, false
}

// num writes a coordinate without needless digits.
func num(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func rect(x, y, w, h float64) string {
	return "M" + num(x) + " " + num(y) + "h" + num(w) + "v" + num(h) + "h" + num(-w) + "z"
}

// braille draws dots at an even pitch over cell borders too, so that a curve
// looks like one.
func braille(r rune, x, y float64) string {
	const radius = 1.7
	places := [8][2]float64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}}
	var b strings.Builder
	for i, p := range places {
		if r&(1<<i) == 0 {
			continue
		}
		cx, cy := x+cellW/4+p[0]*cellW/2, y+cellH/8+p[1]*cellH/4
		d := num(2 * radius)
		a := "a" + num(radius) + " " + num(radius) + " 0 1 0 "
		b.WriteString("M" + num(cx-radius) + " " + num(cy) + a + d + " 0" + a + "-" + d + " 0z")
	}
	return b.String()
}

// block draws the block elements, eighths and quadrants.
func block(r rune, x, y float64) (path string, opacity float64) {
	switch {
	case r == 0x2580:
		return rect(x, y, cellW, cellH/2), 1
	case r <= 0x2588:
		h := cellH * float64(r-0x2580) / 8
		return rect(x, y+cellH-h, cellW, h), 1
	case r <= 0x258f:
		return rect(x, y, cellW*float64(0x2590-r)/8, cellH), 1
	case r == 0x2590:
		return rect(x+cellW/2, y, cellW/2, cellH), 1
	case r <= 0x2593:
		return rect(x, y, cellW, cellH), []float64{0.22, 0.42, 0.65}[r-0x2591]
	case r == 0x2594:
		return rect(x, y, cellW, cellH/8), 1
	case r == 0x2595:
		return rect(x+cellW*7/8, y, cellW/8, cellH), 1
	}
	// Quadrants: upper left 1, upper right 2, lower left 4, lower right 8.
	bits := []int{4, 8, 1, 13, 9, 7, 11, 2, 6, 14}[r-0x2596]
	var b strings.Builder
	for i := range 4 {
		if bits&(1<<i) != 0 {
			b.WriteString(rect(x+float64(i%2)*cellW/2, y+float64(i/2)*cellH/2, cellW/2, cellH/2))
		}
	}
	return b.String(), 1
}

// thickness of an arm's line by its weight, and gap between double lines.
var thickness = [4]float64{0, 1, 2, 1}

const gap = 3.0

// box draws lines from the middle of the cell to its sides.
func box(r rune, x, y float64) string {
	arms := boxArms[(r-0x2500)*5:][:4]
	if n := dashes[r]; n > 0 {
		return dashed(arms, n, x, y)
	}
	weight := func(i int) int { return int(arms[i] - '0') }
	// Arms reach over the middle by half of the thickest crossing line.
	reach := func(a, b int) float64 {
		over := 0.0
		for _, w := range []int{weight(a), weight(b)} {
			half := thickness[w] / 2
			if w == 3 {
				half += gap / 2
			}
			over = max(over, half)
		}
		return max(over, 0.5)
	}
	overX, overY := reach(0, 2), reach(1, 3)
	cx, cy := x+cellW/2, y+cellH/2
	var b strings.Builder
	for i := range 4 {
		t := thickness[weight(i)]
		if t == 0 {
			continue
		}
		offsets := []float64{0}
		if weight(i) == 3 {
			offsets = []float64{-gap / 2, gap / 2}
		}
		for _, o := range offsets {
			switch i {
			case 0:
				b.WriteString(rect(cx+o-t/2, y, t, cellH/2+overY))
			case 1:
				b.WriteString(rect(cx-overX, cy+o-t/2, cellW/2+overX, t))
			case 2:
				b.WriteString(rect(cx+o-t/2, cy-overY, t, cellH/2+overY))
			case 3:
				b.WriteString(rect(x, cy+o-t/2, cellW/2+overX, t))
			}
		}
	}
	return b.String()
}

func dashed(arms string, n int, x, y float64) string {
	var b strings.Builder
	for i := range n {
		at := (float64(i) + 0.2) / float64(n)
		size := 0.6 / float64(n)
		if t := thickness[arms[1]-'0']; t > 0 {
			b.WriteString(rect(x+at*cellW, y+(cellH-t)/2, size*cellW, t))
		} else {
			t := thickness[arms[0]-'0']
			b.WriteString(rect(x+(cellW-t)/2, y+at*cellH, t, size*cellH))
		}
	}
	return b.String()
}

// arc draws a rounded corner one unit thick: two quarter circles and the
// straight piece that leads to the cell's upper or lower side.
func arc(r rune, x, y float64) string {
	const outer, inner = cellW/2 + 0.5, cellW/2 - 0.5
	sx, sy := 1.0, 1.0 // from the middle towards the arms
	if r == '╮' || r == '╯' {
		sx = -1
	}
	if r == '╰' || r == '╯' {
		sy = -1
	}
	cx, cy := x+cellW/2, y+cellH/2
	side := cx + sx*cellW/2
	point := func(px, py float64) string { return num(px) + " " + num(py) }
	sweep := func(out bool) string {
		if (sx*sy > 0) == out {
			return "0 0 0 "
		}
		return "0 0 1 "
	}
	end := cy + sy*cellH/2
	bend := cy + sy*cellW/2
	return "M" + point(side, cy-sy*0.5) +
		"A" + num(outer) + " " + num(outer) + " " + sweep(true) + point(cx-sx*0.5, bend) +
		"L" + point(cx-sx*0.5, end) + "L" + point(cx+sx*0.5, end) + "L" + point(cx+sx*0.5, bend) +
		"A" + num(inner) + " " + num(inner) + " " + sweep(false) + point(side, cy+sy*0.5) + "z"
}

func diagonal(r rune, x, y float64) string {
	stroke := func(x0, y0, x1, y1 float64) string {
		d := math.Hypot(x1-x0, y1-y0)
		nx, ny := (y1-y0)/d*0.5, (x0-x1)/d*0.5
		return fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sz", num(x0+nx), num(y0+ny), num(x1+nx), num(y1+ny),
			num(x1-nx), num(y1-ny), num(x0-nx), num(y0-ny))
	}
	rising, falling := stroke(x, y+cellH, x+cellW, y), stroke(x, y, x+cellW, y+cellH)
	switch r {
	case '╱':
		return rising
	case '╲':
		return falling
	}
	return rising + falling
}
