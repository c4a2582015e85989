package atnode

import (
	"fmt"
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
