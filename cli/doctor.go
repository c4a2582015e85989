package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/sanitize"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "look for what would keep dlwb from working here", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			findings := a.diagnose(c.Context())
			bad := 0
			for _, f := range findings {
				if !f.OK {
					bad++
				}
			}
			err := a.answer(doctorAnswer{Findings: findings, OK: bad == 0}, func(out io.Writer) { writeFindings(out, findings) })
			if err == nil && bad > 0 {
				err = runError{ExitFailed}
			}
			return err
		},
	}
}

// diagnose looks at everything. A state directory that can't be opened is a
// finding like every other: it is what people ask the doctor about.
func (a *app) diagnose(ctx context.Context) []cloud.Finding {
	findings := []cloud.Finding{{OK: true, What: "dlwb", Text: fmt.Sprintf("%s, %s/%s", Version, runtime.GOOS, runtime.GOARCH)}}
	w, err := a.bench()
	if err != nil {
		return append(findings, cloud.Finding{What: "state", Text: err.Error(), Next: "set DLWB_HOME to another directory, or mend this one"})
	}
	findings = append(findings, cloud.Finding{OK: true, What: "state", Text: w.Dir()})
	findings = append(findings, w.Market().Doctor(ctx)...)
	if err := w.Close(); err != nil {
		findings = append(findings, cloud.Finding{What: "state", Text: err.Error()})
	}
	return findings
}

func writeFindings(out io.Writer, findings []cloud.Finding) {
	for _, f := range findings {
		sanitize.Fprintf(out, "%s %-12s %s\n", f.Mark(), f.What, f.Text)
		if f.Next != "" {
			sanitize.Fprintf(out, "  %-12s next: %s\n", "", f.Next)
		}
	}
}
