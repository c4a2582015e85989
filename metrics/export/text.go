package export

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// CRI reads "2025-03-04T09:00:00.1Z stdout F line", as Kubernetes keeps it.
func CRI(line string) (inside string, whole, ok bool) {
	_, rest, found := strings.Cut(line[:min(len(line), 64)], " ")
	if !found || !strings.HasPrefix(rest, "stdout ") && !strings.HasPrefix(rest, "stderr ") || len(rest) < 8 {
		return "", false, false
	}
	at := len(line[:min(len(line), 64)]) - len(rest) + len("stdout ")
	if flag := line[at]; flag != 'F' && flag != 'P' || at+1 < len(line) && line[at+1] != ' ' {
		return "", false, false
	}
	return line[min(at+2, len(line)):], line[at] == 'F', true
}

// Unescape reads the escapes of a JSON string.
func Unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'b':
			b.WriteByte('\b')
		case 'u':
			if v, err := strconv.ParseUint(s[i+1:min(i+5, len(s))], 16, 32); err == nil && i+4 < len(s) {
				b.WriteRune(rune(v))
				i += 4
			} else {
				b.WriteRune(utf8.RuneError)
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
