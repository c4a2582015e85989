// Package gputable sets what nvidia-smi answered in a table.
package gputable

import (
	"fmt"
	"io"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/smi"
	"github.com/dlwb/dlwb/sanitize"
)

// Write prints one line for each GPU and process, or what nvidia-smi said instead.
func Write(w io.Writer, gpus []metrics.GPU, apps []smi.App, wrong *smi.ErrorClass) {
	if len(gpus) > 0 {
		fmt.Fprintln(w, "GPU\tNAME\tUTIL %\tMEMORY\tOF\t°C\tW")
	}
	for _, g := range gpus {
		sanitize.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", g.Index, g.Name, known(g.Util), mebi(g.MemUsed), mebi(g.MemTotal), known(g.Temp), known(g.Power))
	}
	for _, p := range apps {
		sanitize.Fprintf(w, "process %d\t%s\t%s\n", p.PID, p.Name, mebi(p.Memory))
	}
	if wrong != nil && *wrong == smi.NotYet {
		fmt.Fprintln(w, "AMD's GPUs (amd-smi, rocm-smi) and AWS Neuron's devices are not read yet; nvidia-smi is")
	} else if wrong != nil {
		sanitize.Fprintf(w, "nvidia-smi said: %s\n", *wrong)
	}
}

// mebi is memory as nvidia-smi counts it, in MiB, or N/A.
func mebi(v *float64) string {
	if v == nil {
		return "N/A"
	}
	return units.Binary(int64(*v * (1 << 20)))
}

// known is a reading, or N/A.
func known(v *float64) string {
	if v == nil {
		return "N/A"
	}
	return fmt.Sprint(*v)
}
