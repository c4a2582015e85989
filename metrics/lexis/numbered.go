package lexis

// Numbered is where a name ends that begins at i with a number: i when there is none. "5-shot" and
// "3-way" are words, whatever follows; "2D/loss" and "3d_iou" are names where a value is given them,
// as the same form is a rate elsewhere: "12it/s". The end of a clock is none: "12:00:05,123-Speed".
func Numbered(line string, i int) int {
	n := Digits(line, i)
	if n == len(line) || line[n] != '-' && !IsLetter(line[n]) || i > 1 && (line[i-1] == ',' || line[i-1] == ':') && IsDigit(line[i-2]) {
		return i
	}
	word := n
	if line[n] == '-' {
		word++
	}
	end := word
	for end < len(line) && IsLetter(line[end]) && line[end] != '_' {
		end++
	}
	ends := end == len(line) || !IsKeyByte(line[end])
	switch {
	case word > n && ends:
		if end-word > 1 {
			return end
		}
	case end > word && !ends && end+1 < len(line) && (line[end] == '_' || line[end] == '/') && IsLetter(line[end+1]):
		for end < len(line) && IsKeyByte(line[end]) {
			end++
		}
		if at := SkipBlanks(line, end); at < len(line) && (line[at] == '=' || line[at] == ':') {
			return end
		}
	}
	return i
}
