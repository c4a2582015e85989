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
