package lexis

import "strings"

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
var countNames = words("step steps timestep timesteps iter iters iteration iterations it frame frames sample samples example examples token tokens update updates episode" +
	" episodes minibatch batches interactions games e i j k n t")

// CountsOn reports whether a text ends in the name of a count and a sign, "Total steps: ", or is
// such a name.
func CountsOn(before string) bool {
	name := strings.TrimRight(before, " \t:=")
	if name == "" || len(name) == len(before) || !strings.ContainsAny(before[len(name):], ":=") && strings.Contains(name, " ") {
		return false
	}
	name = strings.TrimSuffix(name, " so far")
	return countNames[strings.ToLower(name[strings.LastIndexAny(name, " _/\t|,(")+1:])]
}

// BehindNo is where a number stands that is called one: "Step #0", "Iteration No: 1".
func BehindNo(line string, at int) int {
	if at >= len(line) {
		return at
	}
	switch line[at] {
	case '#':
		return at + 1
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
	if end == last || end == i || line[end] != ' ' || !IsUnit(line[i:end]) && !IsMeasure(line[i:end]) {
		return i
	}
	before := strings.TrimRight(line[:i], " /")
	if n := len(before); n == 0 || n == i || !IsDigit(before[n-1]) {
		return i
	}
	return SkipBlanks(line, end)
}
