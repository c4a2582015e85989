package pack

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Lines tells which lines of a container's output are of a log ("rank-3.log"), and
// takes off what says so. Untagged output is one log as it is; what no rank has
// printed is that of the launcher.
func Lines(log string, tagged bool) func([]byte) ([]byte, bool) {
	if !tagged {
		return func(text []byte) ([]byte, bool) { return text, true }
	}
	rank, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(log, "rank-"), ".log"))
	if err != nil { // of the launcher
		return func(text []byte) ([]byte, bool) { return text, !isTagged(text) }
	}
	whole, part := fmt.Appendf(nil, "[rank%d] ", rank), fmt.Appendf(nil, "[rank%d]+ ", rank)
	return func(text []byte) ([]byte, bool) {
		if rest, is := bytes.CutPrefix(text, whole); is {
			return rest, true
		}
		rest, is := bytes.CutPrefix(text, part)
		return bytes.TrimSuffix(rest, []byte("\n")), is
	}
}

func isTagged(text []byte) bool {
	rest, is := bytes.CutPrefix(text, []byte("[rank"))
	end := bytes.IndexByte(rest, ']')
	if !is || end < 1 || end > 9 {
		return false
	}
	if _, err := strconv.Atoi(string(rest[:end])); err != nil {
		return false
	}
	return bytes.HasPrefix(rest[end:], []byte("] ")) || bytes.HasPrefix(rest[end:], []byte("]+ "))
}

// Original puts the bytes back that a driver has hidden from Ray, whose logs are text:
// each is a character of the private area from U+F700 on.
func Original(text []byte) []byte {
	if !bytes.Contains(text, []byte{0xEF, 0x9C}) && !bytes.Contains(text, []byte{0xEF, 0x9D}) && !bytes.Contains(text, []byte{0xEF, 0x9E}) && !bytes.Contains(text, []byte{0xEF, 0x9F}) {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if i+2 < len(text) && text[i] == 0xEF && text[i+1] >= 0x9C && text[i+1] <= 0x9F && text[i+2]&0xC0 == 0x80 {
			out = append(out, (text[i+1]-0x9C)<<6|text[i+2]&0x3F)
			i += 3
			continue
		}
		out = append(out, text[i])
		i++
	}
	return out
}
