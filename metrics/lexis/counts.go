package lexis

import (
	"math"
	"strings"
)

// What is said of a number that counts.

func words(list string) map[string]bool {
	t := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		t[w] = true
	}
	return t
}

// countNames are what counts where the run is called, or in the last part of its name
// (total_steps, env_frames), when a colon or a sign stands before the number.
var countNames = words("seen step steps timestep timesteps iter iters iteration iterations it frame frames sample samples example examples token tokens update updates episode" +
	" episodes minibatch batches interactions games e i j k n t")

// CountsOn reports whether a text ends in the name of a count and a sign, "Total steps: ", or is
// such a name.
func CountsOn(before string) bool {
	name := strings.TrimRight(before, " \t:=\"'")
	if name == "" || len(name) == len(before) || !strings.ContainsAny(before[len(name):], ":=") && strings.Contains(name, " ") {
		return false
	}
	name = strings.TrimSuffix(name, " so far")
	return countNames[strings.ToLower(name[strings.LastIndexAny(name, " _/\t|,(\"'")+1:])]
}

// BehindNo is where a number stands that is called one: "Step #0", "Iteration No: 1".
func BehindNo(line string, at int) int {
	if at >= len(line) {
		return at
	}
	switch line[at] {
	case '#':
		return SkipBlanks(line, at+1)
	case 'n', 'N':
		for _, word := range [...]string{"No", "no", "Number", "number", "Nr", "nr"} {
			if end := at + len(word); strings.HasPrefix(line[at:], word) && end < len(line) && strings.IndexByte(" .:#=", line[end]) >= 0 {
				return SkipBlanks(line, end+len(line[end:])-len(strings.TrimLeft(line[end:], ".:#= ")))
			}
		}
	}
	return at
}

// IsMeasured reports whether a number has two digits behind its point, as what is
// counted has not: "return per evaluation episode: 23.00".
func IsMeasured(text string) bool {
	point := strings.IndexByte(text, '.')
	return point >= 0 && Digits(text, point+1) >= point+3
}

// BehindUnit is where a phrase begins that seems to begin at i, when its first
// word is the unit of the number before it: "114.8 s Mean Reward: 0.4".
func BehindUnit(line string, i, last int) int {
	end := i
	for end < last && IsLetter(line[end]) {
		end++
	}
	stop := end
	if strings.HasPrefix(line[end:], ". ") { // 114.8 s. Mean Reward
		stop++
	}
	if end == last || end == i || line[stop] != ' ' || !IsUnit(line[i:end]) && !IsMeasure(line[i:end]) {
		return i
	}
	before := strings.TrimRight(line[:i], " /")
	if n := len(before); n == 0 || n == i || !IsDigit(before[n-1]) {
		return i
	}
	return SkipBlanks(line, stop)
}

// LargestCount is where floating-point numbers stop counting.
const LargestCount = 1 << 53

// Count is a number that counts, of how much, and where the two stand in a line.
type Count struct {
	N, Total    float64
	At, TotalAt int
	Times       float64 // by which the letter behind the number multiplies it; 0: there is none
}

// OfTotal reads "20/300", "3 of 10", "[20]/[300]" behind its first bracket, or "20" alone.
func OfTotal(line string, at int) (c Count, next int, ok bool) {
	f, ok := Number(line, at)
	if !ok || !(f.Value >= 0 && f.Value <= LargestCount) {
		return Count{}, at, false
	}
	c.N, c.At, next = f.Value, f.Start, f.Next
	if times, end := Thousandfold(line, next); end > next {
		c.N, next, c.Times = math.Round(c.N*times), end, times
	}
	if strings.HasPrefix(line[next:], "]/[") && at > 0 && line[at-1] == '[' {
		total, ok := Number(line, next+len("]/["))
		if ok && strings.HasPrefix(line[total.Next:], "]") && total.Value >= c.N && total.Value <= LargestCount {
			c.Total, c.TotalAt, next = total.Value, total.Start, total.Next
		}
		return c, next, true
	}
	slash := SkipBlanks(line, next)
	if strings.HasPrefix(line[slash:], "of ") {
		slash++
	}
	if slash < len(line) && (line[slash] == '/' || slash > next && line[slash] == 'f') {
		total, ok := Number(line, SkipBlanks(line, slash+1))
		if times, end := Thousandfold(line, total.Next); ok && end > total.Next {
			total.Value, total.Next, c.Times = math.Round(total.Value*times), end, max(c.Times, 1)
		}
		if ok && total.Value >= c.N && total.Value > 0 && total.Value <= LargestCount {
			c.Total, c.TotalAt, next = total.Value, total.Start, total.Next
		}
	}
	return c, next, true
}

// running are what is counted through a whole run, in the middle of the name of a count.
var running = words("train training env environment agent learner optimizer actor")

// onePlace are names of what counts that tell of one and not of how many.
var onePlace = words("step timestep iter iteration update t")

// MayRun reports whether a name in lower case is of a total of what counts, total_steps: how many
// there will be, or, where it goes up, how many there were.
func MayRun(name string) bool {
	of, ok := strings.CutPrefix(name, "total_")
	return ok && len(of) > 2 && countNames[of[strings.LastIndexByte(of, '_')+1:]]
}

// IsRunning reports whether a name in lower case is of a count of several words that goes on through
// the whole run: total_train_updates, num_env_steps, t_env. Of two words it is as often how many there will be.
func IsRunning(name string) bool {
	first, rest, _ := strings.Cut(name, "_")
	if running[first] && onePlace[rest] || onePlace[first] && running[rest] { // env_step, t_env
		return true
	}
	if first != "total" && first != "num" {
		return false
	}
	middle, last, _ := strings.Cut(rest, "_")
	return running[middle] && countNames[last] && len(last) > 2
}

// OfBatches reports whether a count that ends at i is all that stands between
// two bars, but for its name: "|   200/ 2983 batches |".
func OfBatches(line string, i int) bool {
	i = SkipBlanks(line, i)
	for _, word := range [...]string{"batches", "steps", "iters", "iterations"} {
		if strings.HasPrefix(line[i:], word) {
			i = SkipBlanks(line, i+len(word))
			break
		}
	}
	return i == len(line) || line[i] == '|' || line[i] == ','
}

// CloseBracket is behind the bracket that a counter in brackets ends with, also
// "] " behind a percentage; 0 when there is none.
func CloseBracket(line string, i int) int {
	close := strings.IndexByte(line[i:min(len(line), i+12)], ']')
	if close < 0 {
		return 0
	}
	return i + close + 1
}

// OrdinalBefore reads the number that stands as an ordinal before a word that counts: "This is
// 1-th epoch", "2nd epoch".
func OrdinalBefore(before string) (c Count, ok bool) {
	end := strings.TrimRight(before, " -")
	if len(end) < 3 || len(end) == len(before) || !ordinalEnds[end[len(end)-2:]] {
		return c, false
	}
	number := strings.TrimSuffix(end[:len(end)-2], "-")
	at := len(strings.TrimRight(number, "0123456789"))
	if at == len(number) || at > 0 && number[at-1] != ' ' {
		return c, false
	}
	c, next, ok := OfTotal(number, at)
	return c, ok && next == len(number)
}

// ordinalEnds are what stands behind a number that is one of a row.
var ordinalEnds = words("st nd rd th")

// Share reads "3/12 - 25.00%" that is all of a line: the percentage says that the run
// is there, where the two agree.
func Share(line string) (c Count, ok bool) {
	if line == "" || line[len(line)-1] != '%' {
		return c, false
	}
	c, next, ok := OfTotal(line, SkipBlanks(line, 0))
	if !ok || c.Total == 0 {
		return c, false
	}
	rest := strings.Trim(line[next:], " \t-()[]|:")
	percent, ok := Number(rest, 0)
	return c, ok && rest[percent.Next:] == "%" && math.Abs(percent.Value-100*c.N/c.Total) <= 1
}

// AllDigits reports whether a text is digits and no more.
func AllDigits(s string) bool { return s != "" && Digits(s, 0) == len(s) }

// mostSmall bounds what SmallInt counts to.
const mostSmall = 1 << 20 / 10

// SmallInt is the number that the digits of a text are, or a large one.
func SmallInt(s string) int {
	n := 0
	for i := 0; i < len(s) && n < mostSmall; i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// seen are words behind a plural that make it where the run is, and not how long it will be: "Epochs seen: 3".
var seen = [...]string{" seen", " done", " completed", " finished", " elapsed"}

// BehindSeen is where a line goes on behind such a word at i; i where there is none, or no colon behind it.
func BehindSeen(line string, i int) int {
	for _, word := range seen {
		if strings.HasPrefix(line[i:], word+":") {
			return i + len(word)
		}
	}
	return i
}

// IsSeen reports whether a text ends in such a word and its colon.
func IsSeen(text string) bool {
	text = strings.TrimRight(text, " ")
	cut := strings.LastIndexByte(text, ' ')
	return cut > 0 && BehindSeen(text, cut) > cut
}
