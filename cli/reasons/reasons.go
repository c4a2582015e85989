// Package reasons tells why a series is shown, and why names and files are not.
package reasons

import (
	"fmt"
	"io"
	"strings"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/folder"
	"github.com/dlwb/dlwb/sanitize"
)

// Sort parts what speaks for series that are shown, by name, from names that wait.
func Sort(all []metrics.Evidence) (shown map[string]metrics.Evidence, waiting []metrics.Evidence) {
	shown = map[string]metrics.Evidence{}
	for _, e := range all {
		if e.Confidence == metrics.Waits {
			waiting = append(waiting, e)
		} else {
			shown[e.Name] = e
		}
	}
	return shown, waiting
}

// Write tells how well one series is known to be one, or why a name is in no chart.
func Write(out io.Writer, e metrics.Evidence) {
	if e.Confidence == metrics.Waits {
		sanitize.Fprintf(out, "%s is in no chart: %s\n", e.Name, e.Why)
		return
	}
	sanitize.Fprintf(out, "%s is %s: %s\n", e.Name, e.Confidence, e.Why)
}

// mostNamed bounds the files that are named for one reason.
const mostNamed = 3

// Unread tells which files were looked at and gave nothing, one line for each reason.
func Unread(out io.Writer, all []folder.Unread) {
	var reasons []string
	files := map[string][]string{}
	for _, u := range all {
		if files[u.Why] == nil {
			reasons = append(reasons, u.Why)
		}
		files[u.Why] = append(files[u.Why], u.File)
	}
	for _, why := range reasons {
		named := strings.Join(files[why][:min(len(files[why]), mostNamed)], ", ")
		if more := len(files[why]) - mostNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		sanitize.Fprintf(out, "not read: %s: %s\n", named, why)
	}
}
