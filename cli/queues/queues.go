// Package queues writes the table of machines that are waited for in a queue.
package queues

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
)

// Any reports whether some of the offers are of a queue.
func Any(offers []cloud.Offer) bool {
	return slices.ContainsFunc(offers, func(o cloud.Offer) bool { return o.Queue != nil })
}

// Write writes offers of a queue, a row for each kind of machines.
func Write(out io.Writer, found cloud.Offers) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PARTITION\tGPUS\tFREE\tNODES\tIDLE\tCPU\tRAM\tAT MOST\tBEGINS\tACCOUNTS\tQOS\tNOTES")
	for _, o := range found.Offers {
		q := o.Queue
		if q == nil {
			continue
		}
		gpus, free := "-", "-"
		if o.GPUs > 0 {
			gpus, free = fmt.Sprintf("%d × %s", o.GPUs, o.GPU), fmt.Sprintf("%d of %d", q.FreeGPUs, q.GPUs)
		}
		sanitize.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Instance, gpus, free, upText(q), q.FreeNodes, o.VCPUs, units.Binary(o.Memory),
			Limit(q), Begins(q), listed(q.Accounts), listed(q.QOS), strings.Join(o.Notes, "; "))
	}
	t.Flush()
	for _, n := range found.Notes {
		sanitize.Fprintf(out, "%s\n", n)
	}
}

func upText(q *cloud.Queue) string {
	if q.Up == q.Nodes {
		return fmt.Sprint(q.Nodes)
	}
	return fmt.Sprintf("%d of %d up", q.Up, q.Nodes)
}

// Limit is how long a job may take.
func Limit(q *cloud.Queue) string {
	if q.TimeLimit == 0 {
		return "no limit"
	}
	return units.Duration(seconds(q.TimeLimit))
}

// Begins is when a job is expected to begin.
func Begins(q *cloud.Queue) string {
	switch {
	case q.BeginsIn == nil:
		return "?"
	case *q.BeginsIn < 60:
		return "now"
	}
	return "in " + units.Duration(seconds(*q.BeginsIn).Round(time.Minute))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func listed(words []string) string {
	if words == nil {
		return "-"
	}
	return strings.Join(words, ",")
}
