package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/remark"
)

// oddKey is where the colon stands that ends a name which has '=' or ':'
// inside, such as "recall@thr=0.5:" and "v_map_0.05:0.45:"; 0 when it is none.
func oddKey(line string, start, end int) int {
	if end >= len(line) || line[end] != '=' && line[end] != ':' || end+1 >= len(line) || !lexis.IsDigit(line[end+1]) {
		return 0
	}
	if u, _ := unitOf(line[start:end]); u != noUnit {
		return 0
	}
	i := end + 1
	for i < len(line) && lexis.IsKeyByte(line[i]) {
		i++
	}
	if i+1 < len(line) && line[i] == ':' && line[i+1] == ' ' && i-start <= longestName {
		return i
	}
	return 0
}

// behindNote is where a name that ends at i goes on behind a remark in brackets,
// when a number follows: "f1-score (micro avg)  0.41", "avg. loss [51-100]: 74.8".
func (s *scanner) behindNote(line string, i int) int {
	if c, end := interval(line, i); end > i {
		s.found.counters = append(s.found.counters, c)
		return end
	}
	if end := remark.OfOne(line, i); end > i {
		return end
	}
	if !strings.HasPrefix(line[i:], " (") || i+3 >= len(line) || !lexis.IsLetter(line[i+2]) {
		return i
	}
	close := strings.IndexByte(line[i:min(len(line), i+28)], ')')
	if close < 0 || i+close+1 >= len(line) || line[i+close+1] != ' ' && line[i+close+1] != ':' {
		return i
	}
	for _, c := range []byte(line[i+2 : i+close]) {
		if !lexis.IsLetter(c) && c != ' ' && c != '-' {
			return i
		}
	}
	if at := lexis.SkipBlanks(line, i+close+1); at < len(line) && (lexis.IsDigit(line[at]) || line[at] == ':') {
		return i + close + 1
	}
	return i
}

// interval reads the steps of which a value behind a name is told, " [51-100]: 74.8":
// it is of the last of them. end is i when there are none.
func interval(line string, i int) (last counter, end int) {
	if !strings.HasPrefix(line[i:], " [") {
		return last, i
	}
	dash := lexis.Digits(line, i+2)
	if dash == i+2 || dash >= len(line) || line[dash] != '-' {
		return last, i
	}
	from, _, _ := ofTotal(line, i+2)
	last, end, ok := ofTotal(line, dash+1)
	if !ok || last.n <= from.n || !strings.HasPrefix(line[end:], "]: ") || end+3 >= len(line) || !lexis.IsDigit(line[end+3]) && line[end+3] != '-' {
		return counter{}, i
	}
	last.unit, last.global = unitStep, true
	return last, end + 1
}

// valueAt reads the number of a value at i, also one in a list (the first
// counts) or in "tensor(1.5, device=…)".
func (s *scanner) valueAt(i int) (v value, ok bool) {
	line := s.line
	if f, in := lexis.InParens(line, i); in { // D loss: (-28.5)
		return value{figure: f}, true
	}
	opened, loose := 0, false // brackets, and a blank behind one, as arrays are printed
	for range 3 {
		if i >= len(line) || lexis.IsDigit(line[i]) || line[i] == '-' || line[i] == '.' {
			break
		}
		if line[i] == '[' || line[i] == '(' && i > 0 && line[i-1] == ':' { // lr:(2.0e-04,)
			opened, v.list = opened+1, true
			inside := lexis.SkipBlanks(line, i+1)
			i, loose = inside, loose || inside > i+1
			continue
		}
		inside := lexis.Unwrapped(line, i)
		if inside == i {
			break
		}
		i, v.list = inside, true
	}
	v.figure, ok = lexis.Number(line, i)
	if ok && v.list {
		after := byte(0)
		if end := lexis.SkipBlanks(line, v.Next); end < len(line) && (loose || opened == 0) && line[end] == ']' { // [ 0.5 ]
			v.Next = end
		}
		if v.Next < len(line) {
			after = line[v.Next]
		}
		if loose || opened > 2 { // an array of one number is that, of several it is none
			if after != ']' || v.Next+opened > len(line) || strings.Trim(line[v.Next:v.Next+opened], "]") != "" {
				return v, false
			}
			v.Next += opened - 1
		}
		switch after {
		case ',':
		case ']', ')':
			v.list = false // it is all that there is
			v.Next++
			if v.Next < len(line) && line[v.Next] == ')' {
				v.Next++
			}
		default:
			return v, false
		}
	}
	return v, ok
}

// ratio reads "9841/10000" of an accuracy as percent.
func ratio(line string, v value) (figure, bool) {
	if v.kind < weak || v.Real || v.Next >= len(line) || line[v.Next] != '/' || !strings.Contains(v.show, "acc") {
		return figure{}, false
	}
	total, ok := lexis.Number(line, v.Next+1)
	if next := total.Next; ok && next < len(line) && line[next] == '=' { // 9000/10000=0.9
		f, ok := lexis.Number(line, next+1)
		return f, ok && lexis.StandsAlone(line, f.Next)
	}
	if !ok || total.Value <= 0 || v.figure.Value > total.Value || !lexis.StandsAlone(line, total.Next) {
		return figure{}, false
	}
	return figure{Value: 100 * v.figure.Value / total.Value, Start: -1, Next: total.Next, Real: true}, true
}

// alone reports whether a word is all that stands between two bars or in
// brackets: "| valid |", "[val]".
func (s *scanner) alone(start, end int) bool {
	if end < len(s.line) && start > 0 && (s.line[end] == ']' && s.line[start-1] == '[' || s.line[start-1] == '(' && (strings.HasPrefix(s.line[end:], "):") || end+2 < len(s.line) && s.line[end] == ')' && s.line[end+1] == ' ' && strings.Trim(s.line[s.from:start-1], " -*") == "")) {
		return true
	}
	left := start - 1
	for left >= 0 && s.line[left] == ' ' {
		left--
	}
	right := lexis.SkipBlanks(s.line, end)
	return right < len(s.line) && (s.line[right] == '|' && (left < 0 || s.line[left] == '|') || s.line[right] == '#' && left >= 0 && s.line[left] == '#')
}

// figure is a number as it stands in a line.
type figure = lexis.Figure
