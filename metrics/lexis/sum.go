package lexis

// Sum is where the terms end that a value is said to be the sum of, "0.59=0.58 + 0.01", whose sign is
// at i; i where none are told. The last term may be left out.
func Sum(line string, i int) int {
	if i >= len(line) || line[i] != '=' {
		return i
	}
	end := i
	for at := i + 1; ; at = SkipBlanks(line, end+1) {
		f, ok := Number(line, SkipBlanks(line, at))
		if !ok {
			break
		}
		if end = SkipBlanks(line, f.Next); end == len(line) || line[end] != '+' {
			if line[at-1] == '=' { // one number is no sum
				return i
			}
			return f.Next
		}
	}
	if end > i {
		return end + 1
	}
	return i
}
