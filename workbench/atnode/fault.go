package atnode

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/workbench/event"
)

// EnvironmentFault is the failure of the first node that has one, with the names
// of the others; nil where there is none. What each said last is kept.
func EnvironmentFault(failures []*environment.Failure) error {
	var fault *event.Fault
	var others []string
	for i, f := range failures {
		switch {
		case f == nil:
		case fault == nil:
			fault = &event.Fault{What: "set up the environment", Node: i, Why: f.Why, Next: f.Next, Command: f.Command, LastLines: f.LastLines}
		case f.Why == fault.Why:
			others = append(others, fmt.Sprintf("node%d the same", i))
		default:
			others = append(others, fmt.Sprintf("node%d: %s", i, f.Why))
			fault.LastLines = append(fault.LastLines, fmt.Sprintf("node%d: %s", i, f.Command))
			fault.LastLines = append(fault.LastLines, f.LastLines[max(0, len(f.LastLines)-5):]...)
		}
	}
	if fault == nil {
		return nil
	}
	if len(others) > 0 {
		fault.Why += "; " + strings.Join(others, "; ")
	}
	return fault
}

// RoomNext says what to do about a full disk of a node; empty for any other
// failure. What failed there is a program that says it in its own words.
func RoomNext(err error, node int) string {
	if text := strings.ToLower(err.Error()); !strings.Contains(text, "no space left") && !strings.Contains(text, "disk full") {
		return ""
	}
	return fmt.Sprintf("free some space on node%d: its disk is full", node)
}

// Numbers are numbers with commas between them.
func Numbers(all []int) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}
