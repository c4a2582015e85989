package logview

import (
	"fmt"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// numbered is a log of n lines "line 1", "line 2" and so on.
func numbered(n int) *Log {
	l := New(Limits{})
	for i := range n {
		l.Append(fmt.Appendf(nil, "line %d\n", i+1))
	}
	return l
}

// screen is what a view shows, without blanks at line ends.
func screen(v *View, w, h int) string {
	rows := strings.Split(ansi.Strip(v.Draw(w, h, Styles{})), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.Join(rows, "|")
}

func expect(t *testing.T, v *View, w, h int, want string) {
	t.Helper()
	if got := screen(v, w, h); got != want {
		t.Errorf("the screen is\n%q, want\n%q", got, want)
	}
}

func TestAViewFollowsTheEnd(t *testing.T) {
	l := numbered(10)
	v := NewView(l)
	expect(t, v, 10, 3, "line 8|line 9|line 10")
	l.Append([]byte("line 11\nopen"))
	expect(t, v, 10, 3, "line 10|line 11|open")
	l.Append([]byte("\rchanged"))
	expect(t, v, 10, 3, "line 10|line 11|changed")
	l.Append([]byte(" and closed\nx\n"))
	expect(t, v, 20, 3, "line 11|changed and closed|x")
}

func TestScrollingUpStaysOnWhatIsRead(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		l := numbered(10)
		v := NewView(l)
		v.SetWrap(wrap)
		screen(v, 10, 3)
		v.Scroll(-2)
		expect(t, v, 10, 3, "line 6|line 7|line 8")
		l.Append([]byte("more\nand more\n"))
		expect(t, v, 10, 3, "line 6|line 7|line 8")
		if v.Follow {
			t.Error("still following")
		}
		v.Scroll(100)
		expect(t, v, 10, 3, "line 10|more|and more")
		if !v.Follow {
			t.Error("reaching the end does not follow")
		}
		v.Top()
		expect(t, v, 10, 3, "line 1|line 2|line 3")
		v.Page(1)
		expect(t, v, 10, 3, "line 3|line 4|line 5")
		v.Scroll(-100)
		expect(t, v, 10, 3, "line 1|line 2|line 3")
		v.End()
		expect(t, v, 10, 3, "line 10|more|and more")
	}
}

func TestDroppedLinesMoveAReaderToTheOldest(t *testing.T) {
	l := New(Limits{Lines: 5})
	l.Append([]byte("1\n2\n3\n4\n5\n"))
	v := NewView(l)
	v.Top()
	expect(t, v, 5, 2, "1|2")
	v.Scroll(1)
	l.Append([]byte("6\n"))
	expect(t, v, 5, 2, "2|3")
	l.Append([]byte("7\n8\n"))
	expect(t, v, 5, 2, "4|5")
	if got := v.Status(); got != "5 of 8 lines, the oldest 3 dropped" {
		t.Errorf("status is %q", got)
	}
}

func TestLongLinesWrapOrMoveSideways(t *testing.T) {
	l := New(Limits{})
	l.Append([]byte("0123456789abcdefghij\nshort\n中文中文中文\n\ta\tb\n"))
	v := NewView(l)
	expect(t, v, 8, 5, "0123456›|short|中文中 ›|       ›|")
	v.Right(4)
	expect(t, v, 8, 5, "‹56789a›|‹|‹ 文中文|‹   a  ›|")
	v.Right(1)
	expect(t, v, 8, 5, "‹6789ab›|‹|‹文中文|‹  a   ›|")
	v.Left(100)
	v.SetWrap(true)
	expect(t, v, 8, 9, "01234567|89abcdef|ghij|short|中文中文|中文||a|b")
	expect(t, v, 8, 3, "|a|b")
	v.Scroll(-2)
	expect(t, v, 8, 3, "中文中文|中文|")
}

func TestAnEmptyLogSaysWhatItIsWaitingFor(t *testing.T) {
	v := NewView(New(Limits{}))
	v.Empty = "waiting for rank 0"
	expect(t, v, 30, 2, "waiting for rank 0|")
	expect(t, v, 5, 1, "waiti")
	if v.Status() != "no lines" || v.Search("x") || v.Next() || v.Prev() {
		t.Errorf("status is %q", v.Status())
	}
	v.Scroll(-3)
	v.Scroll(3)
	v.SetWrap(true)
	v.Scroll(-3)
	v.Scroll(3)
	expect(t, v, 30, 1, "waiting for rank 0")
}

func TestSearchGoesToMatchesAndCountsThem(t *testing.T) {
	l := numbered(100)
	l.Append([]byte("An Error here\nGrößer\n\x1b[31mer\x1b[1mror\x1b[0m\nopen error"))
	v := NewView(l)
	screen(v, 40, 5)
	v.Top()
	if !v.Search("error") {
		t.Fatal("nothing found")
	}
	expect(t, v, 40, 5, "line 100|An Error here|Größer|error|open error")
	if got := v.Status(); !strings.HasSuffix(got, "match 1 of 3") {
		t.Errorf("status is %q", got)
	}
	for _, want := range []string{"2 of 3", "3 of 3", "1 of 3"} {
		if !v.Next() || !strings.HasSuffix(v.Status(), want) {
			t.Errorf("status is %q, want %s", v.Status(), want)
		}
	}
	for _, want := range []string{"3 of 3", "2 of 3"} {
		if !v.Prev() || !strings.HasSuffix(v.Status(), want) {
			t.Errorf("status is %q, want %s", v.Status(), want)
		}
	}
	for query, want := range map[string]int{"Error": 1, "line": 100, "LINE": 0, "line 1": 12, "größer": 1, "GRÖSSER": 0, "31m": 0, "open": 1} {
		found := v.Search(query)
		for v.Scan(1000) {
		}
		if _, n, all := v.Matches(); n != want || !all || found != (want > 0) {
			t.Errorf("%q: %d matches, found %v, want %d", query, n, found, want)
		}
	}
	if v.Search(""); v.Query() != "" || strings.Contains(v.Status(), "match") {
		t.Errorf("an empty query does not end the search: %q", v.Status())
	}
}

func TestMatchesAreShown(t *testing.T) {
	l := New(Limits{})
	l.Append([]byte("an error, \x1b[31ma red error\x1b[0m\nerror\n"))
	v := NewView(l)
	st := Styles{Match: lipgloss.NewStyle().Bold(true), Current: lipgloss.NewStyle().Reverse(true)}
	v.Draw(30, 2, st)
	v.Search("error")
	want := "an \x1b[7merror\x1b[m, \x1b[31ma red \x1b[m\x1b[7merror\x1b[m"
	if got, _, _ := strings.Cut(v.Draw(30, 2, st), "\n"); strings.TrimRight(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestALongLineIsReadNoFurtherThanItIsSeen(t *testing.T) {
	l := New(Limits{})
	for range 3 {
		l.Append([]byte(strings.Repeat("\x1b[32m長い\x1b[0m行", 2000) + "\n"))
	}
	v := NewView(l)
	first := v.Draw(20, 3, Styles{})
	if got := len(v.line(0).text); got != 18000 {
		t.Errorf("the whole line has %d bytes", got)
	}
	if second := v.Draw(20, 3, Styles{}); first != second {
		t.Errorf("the beginning looks different alone:\n%q\n%q", first, second)
	}
	v.Right(11990)
	expect(t, v, 20, 3, "‹ 行長い行|‹ 行長い行|‹ 行長い行")
}

func TestASearchScrollsSidewaysAndIntoWrappedLines(t *testing.T) {
	l := New(Limits{})
	l.Append([]byte(strings.Repeat("x", 500) + "needle" + strings.Repeat("y", 500) + "\n"))
	for _, wrap := range []bool{false, true} {
		v := NewView(l)
		v.SetWrap(wrap)
		screen(v, 40, 5)
		v.Top()
		if !v.Search("needle") || !strings.Contains(screen(v, 40, 5), "needle") {
			t.Errorf("wrap %v: the match is not on the screen: %q", wrap, screen(v, 40, 5))
		}
	}
}

func TestALogHidesNothing(t *testing.T) {
	l := New(Limits{})
	l.Append([]byte("\x1b[8mconcealed\x1b[5m blinking\x1b[0m\n"))
	if got := NewView(l).Draw(30, 1, Styles{}); strings.TrimRight(got, " ") != "concealed blinking" {
		t.Errorf("%q", got)
	}
}

// sizes fails unless s is exactly h rows of exactly w cells.
func sizes(t interface{ Fatalf(string, ...any) }, s string, w, h int) {
	rows := strings.Split(s, "\n")
	if len(rows) != h {
		t.Fatalf("%d rows, want %d", len(rows), h)
	}
	for _, r := range rows {
		if got := ansi.StringWidth(r); got != w {
			t.Fatalf("a row of %d cells, want %d: %q", got, w, r)
		}
	}
}

var stuff = []string{
	"loss 1.25", "\n", "\n", "\r", "\b", "\t", "中文", "é", "e\u0301", "\x1b[31m", "\x1b[0m", "\x1b[1;38;5;208m", "\x1b[2K", "\x1b]0;t\x07",
	"한글", "ᄀ", "가", "👩\u200d👧", "क्षि", "กำ", "\xff", "\xe4\xb8", "\x00", strings.Repeat("long ", 40), strings.Repeat("長", 70),
}

// A change of style parts what would be one character without it: ᄀ and 한 are
// two then. What changes nothing does not.
func TestCharactersArePartedWhereTheStyleChangesAndNowhereElse(t *testing.T) {
	for _, c := range []struct{ text, query string }{
		{"ᄀ\x1b[0m한글", ""},
		{"\x1b[31mᄀ\x1b[0;31m한글", ""},
		{"ᄀ\x1b[31m\x1b[0m한글", ""},
		{"ᄀ\x1b[31m한글", ""},
		{"ᄀ\x1b[31m한글", "ᄀ한"},
	} {
		for _, st := range []Styles{{}, {Match: lipgloss.NewStyle().Bold(true), Current: lipgloss.NewStyle().Bold(true), Text: lipgloss.NewStyle().Faint(true)}} {
			for w := 1; w < 12; w++ {
				for _, wrap := range []bool{false, true} {
					l := New(Limits{})
					l.Append([]byte(c.text + "\n"))
					v := NewView(l)
					v.SetWrap(wrap)
					if c.query != "" && !v.Search(c.query) {
						t.Fatalf("%q is not found in %q", c.query, c.text)
					}
					sizes(t, v.Draw(w, 3, st), w, 3)
				}
			}
		}
	}
}

func TestEverySizeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Limits{Lines: rapid.IntRange(1, 30).Draw(t, "lines"), Line: rapid.IntRange(1, 300).Draw(t, "line")})
		v := NewView(l)
		v.Empty = "nothing yet 中文"
		st := Styles{Match: lipgloss.NewStyle().Bold(true), Text: lipgloss.NewStyle().Faint(true), Note: lipgloss.NewStyle().Italic(true)}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			n := rapid.IntRange(-40, 40).Draw(t, "n")
			switch rapid.IntRange(0, 10).Draw(t, "what") {
			case 0, 1, 2:
				l.Append([]byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(stuff), 0, 30).Draw(t, "text"), "")))
			case 3:
				v.Scroll(n)
			case 4:
				v.SetWrap(n > 0)
			case 5:
				v.Right(n + 40)
			case 6:
				v.Search(rapid.SampledFrom([]string{"", "o", "中", "LOSS", "g l", "長長", " "}).Draw(t, "query"))
			case 7:
				v.Next()
			case 8:
				v.Prev()
			case 9:
				v.Page(n / 10)
			case 10:
				if v.Top(); n > 0 {
					v.End()
				}
			}
			w, h := rapid.IntRange(1, 60).Draw(t, "w"), rapid.IntRange(1, 30).Draw(t, "h")
			sizes(t, v.Draw(w, h, st), w, h)
			v.Status()
		}
	})
}

func TestNoSizeIsTooSmall(t *testing.T) {
	l := New(Limits{})
	l.Append([]byte(strings.Join(stuff, "") + strings.Join(stuff, "\n")))
	for w := range 60 {
		for h := range 30 {
			v := NewView(l)
			v.SetWrap(h%2 == 0)
			out := v.Draw(w, h, Styles{})
			if w == 0 || h == 0 {
				if out != "" {
					t.Fatalf("%dx%d is %q", w, h, out)
				}
				continue
			}
			sizes(t, out, w, h)
		}
	}
}
