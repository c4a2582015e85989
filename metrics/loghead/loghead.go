// Package loghead knows what loggers and launchers write around a message: dates, levels, names and
// places in the code before it, and the rank behind it.
package loghead

import "strings"

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// isKeyByte reports whether a byte may stand in the name of a logger.
func isKeyByte(c byte) bool { return isLetter(c) || c >= '-' && c <= '9' || c == '@' || c == '\\' }

// digits is where the digits end that begin at i.
func digits(line string, i int) int {
	for i < len(line) && isDigit(line[i]) {
		i++
	}
	return i
}

func allDigits(s string) bool { return s != "" && digits(s, 0) == len(s) }

// Of is where the message of a log line begins: behind dates, levels and the
// names of loggers. What it does not know it leaves, so that no message loses
// its beginning.
func Of(line string) int {
	i := 0
	for {
		at := i
		for at < len(line) && strings.IndexByte(" \t-|>:", line[at]) >= 0 {
			at++
		}
		if at >= len(line) || at == i && i > 0 && line[i-1] != ']' {
			return i
		}
		end := headPart(line, at)
		if end > at && isDigit(line[at]) {
			if rest := line[end:]; strings.HasPrefix(rest, " AM ") || strings.HasPrefix(rest, " PM ") {
				end += len(" AM")
			}
			end = behindLevel(line, end)
		}
		if end == at {
			if i == 0 {
				return 0
			}
			return at
		}
		i = end
	}
}

// headPart is where one part of a log line's head ends that begins at i.
func headPart(line string, i int) int {
	switch c := line[i]; {
	case c == '[':
		end := strings.IndexByte(line[i:], ']') + i
		if end > i && end-i < 100 && (isHeadBracket(line[i+1:end]) || beforeLevel(line[end+1:])) {
			return end + 1
		}
	case c == '(': // of "[2024-05-01 12:30:45 swin](main.py 231): INFO"
		if end := strings.IndexByte(line[i:], ')') + i; i > 0 && line[i-1] == ']' && end > i && end-i < 80 && strings.Contains(line[i:end], ".py ") {
			return end + 1
		}
	case isDigit(c):
		if end := namedMonth(line, i); end > i && i == 0 {
			return end
		}
		end := i
		for end < len(line) && (isDigit(line[end]) || strings.IndexByte("-/:.,TZ", line[end]) >= 0) {
			end++
		}
		if strings.Count(line[i:end], ":") >= 2 || strings.Count(line[i:end], "-") == 2 || strings.Count(line[i:end], "/") >= 1 && (end == len(line) || line[end] == ' ' && !strings.HasPrefix(line[end:], " (epoch ")) && (i == 0 || strings.Count(line[i:end], "/") == 2) && isDate(line[i:end]) {
			return end
		}
	case c >= 'A' && c <= 'Z':
		return headWord(line, i)
	case isLetter(c):
		return headPlace(line, i)
	}
	return i
}

// namedMonth reads "01 Jan 12:00" and "01 Jan 2024 12:00:05" at i.
func namedMonth(line string, i int) int {
	day := digits(line, i)
	if day-i > 2 || len(line) < day+len(" Jan 12:00") || line[day] != ' ' || line[day+4] != ' ' || strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", line[day+1:day+4])%3 != 0 {
		return i
	}
	end := day + len(" Jan ")
	if digits(line, end) == end+4 && end+5 < len(line) && line[end+4] == ' ' {
		end += 5
	}
	minute := digits(line, end)
	if minute != end+2 || minute == len(line) || line[minute] != ':' {
		return i
	}
	for end = minute; end < len(line) && (isDigit(line[end]) || line[end] == ':'); end++ {
	}
	return end
}

// headPlace reads the place in the code that loguru writes, "trainer.loop:fit:112 - ", and the name of
// a logger behind the level, "package.module - Text".
func headPlace(line string, i int) int {
	end := i
	for end < len(line) && (isKeyByte(line[end]) || line[end] == ':' || line[end] == '<' || line[end] == '>') {
		end++
	}
	if i > 0 && strings.HasPrefix(line[end:], " - ") && strings.IndexByte(line[i:end], '.') > 0 && !strings.ContainsAny(line[i:end], ":/<>") && end+3 < len(line) && line[end+3] >= 'A' && line[end+3] <= 'Z' {
		return end + len(" -")
	}
	number := strings.LastIndexByte(line[i:end], ':') + i + 1
	if i > 0 && allDigits(line[number:end]) && isFile(line[i:number-1]) && end < len(line) && line[end] == ' ' { // trainer.py:12 | Text
		return end
	}
	if strings.HasPrefix(line[end:], " - ") && allDigits(line[number:end]) && strings.Count(line[i:end], ":") == 2 {
		return end + len(" -")
	}
	return i
}

// isFile reports whether a word is the name of a file of source code: trainer.py.
func isFile(word string) bool {
	dot := strings.LastIndexByte(word, '.')
	return dot > 0 && dot+1 < len(word) && len(word)-dot <= len(".scala") && isLetter(word[dot-1]) && strings.Trim(word[dot+1:], "abcdefghijklmnopqrstuvwxyz") == ""
}

// longestHead is how far behind its time the level of a message is looked for.
const longestHead = 80

// behindLevel is where a head goes on whose time ends at i: behind the level,
// when only the names of loggers and processes are before it. The times of
// logging modules are followed by both, in any order.
func behindLevel(line string, i int) int {
	at := i
	for {
		for at < len(line) && strings.IndexByte(" \t-|[]:(),", line[at]) >= 0 {
			at++
		}
		end := at
		for end < len(line) && (isKeyByte(line[end]) || line[end] == '#') {
			end++
		}
		if end == at || end-i > longestHead {
			return i
		}
		if word := line[at:end]; len(word) > 1 && Levels[strings.ToUpper(word)] {
			if end < len(line) && strings.IndexByte(" :]|-", line[end]) >= 0 && (word == strings.ToUpper(word) || !isValued(line[end:])) {
				return end
			}
			return i
		}
		if end < len(line) && strings.IndexByte("=%", line[end]) >= 0 {
			return i
		}
		at = end
	}
}

// isValued reports whether a number follows a word, whose value it is: "success: 0.27", "error 0.3".
func isValued(rest string) bool {
	rest = strings.TrimLeft(rest, " :=-")
	return rest != "" && (isDigit(rest[0]) || rest[0] == '.')
}

// beforeLevel reports whether the level of a message follows: "[train][INFO]",
// where the name is that of a logger.
func beforeLevel(line string) bool {
	if line == "" || line[0] != '[' {
		return false
	}
	end := strings.IndexByte(line, ']')
	return end > 0 && Levels[line[1:end]]
}

// isDate reports whether text is 11/21 or 2024/05/01, followed by a time in a
// line's head.
func isDate(text string) bool {
	parts := strings.Split(text, "/")
	return len(parts) <= 3 && len(parts[0]) >= 2 && allDigits(parts[0]) && allDigits(parts[1]) && len(parts[1]) == 2
}

func isHeadBracket(inside string) bool {
	if inside == "" || strings.ContainsAny(inside, "|=") {
		return false
	}
	if date := strings.Trim(inside, " "); len(date) == len("Mon Jan  2 15:04:05 2006") && strings.Contains("SunMonTueWedThuFriSat", date[:3]) && strings.Count(date, ":") == 2 {
		return true
	}
	word, _, _ := strings.Cut(inside, " ")
	return Levels[word] && (len(word) > 1 || len(inside) == 1 || strings.Contains(inside, ":")) || inside == "titan" || isDigit(inside[0]) && strings.Count(inside, ":") >= 2 ||
		strings.Contains(inside, ".py:") || len(word) > 4 && isDigit(word[0]) && strings.Count(word, "/")+strings.Count(word, "-") >= 1 && isDigit(word[len(word)-1]) && strings.Contains(inside, ":")
}

// Levels are how loggers call how much a message matters.
var Levels = map[string]bool{"INFO": true, "DEBUG": true, "WARNING": true, "WARN": true, "ERROR": true, "CRITICAL": true, "I": true, "W": true, "E": true, "SUCCESS": true}

// headWord reads "INFO", "INFO:absl:", "DLL" and the head that glog and absl
// write: "I0731 09:47:48.898259  514 file.cc:493]".
func headWord(line string, i int) int {
	end := i
	for end < len(line) && isLetter(line[end]) {
		end++
	}
	word := line[i:end]
	switch {
	case len(word) == 1 && Levels[word] && digits(line, end) == end+4:
		if close := strings.IndexByte(line[end:], ']'); close > 0 && close < 120 && strings.IndexByte(line[end:end+close], '[') < 0 {
			return end + close + 1
		}
	case len(word) == 1 && Levels[word] && end < len(line) && line[end] == ' ': // I runner.py:310]
		if place, _, ok := strings.Cut(line[end+1:], "]"); ok && !strings.ContainsAny(place, " [") && allDigits(place[strings.LastIndexByte(place, ':')+1:]) {
			return end + 1 + len(place) + 1
		}
	case len(word) > 1 && Levels[word]:
		if end < len(line) && line[end] == ':' { // INFO:logger:
			for next := end + 1; next < len(line) && (isKeyByte(line[next])); next++ {
				if next+1 < len(line) && line[next+1] == ':' {
					return next + 2
				}
			}
		}
		return end
	case word == "DLL" && end < len(line) && line[end] == ' ':
		return end
	}
	return i
}

// AfterDash is what stands behind the name of a logger: "allennlp.training - loss".
func AfterDash(line string) string {
	if i := strings.LastIndex(line, " - "); i >= 0 {
		return strings.TrimLeft(line[i+3:], " ")
	}
	return line
}
