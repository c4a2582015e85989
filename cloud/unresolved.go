package cloud

import (
	"fmt"

	"github.com/dlwb/dlwb/internal/units"
)

// UnresolvedError says that teardown could not prove that everything is gone.
type UnresolvedError struct {
	Receipt Receipt
	// PerHour is what the cluster cost while it was up, in US dollars: as
	// long as nothing is proven, it may still do.
	PerHour float64
	Err     error // what the provider said; nil when it said nothing more
}

func (e *UnresolvedError) Error() string {
	open, which := e.Receipt.Open()
	s := fmt.Sprintf("cluster %s is UNRESOLVED: %d of its %d resources are not proven gone%s, %d processes and %d files are left",
		e.Receipt.Cluster, open, len(e.Receipt.Resources), which, e.Receipt.ProcessesLeft, e.Receipt.FilesLeft)
	if e.PerHour > 0 {
		s += "; it may cost up to " + units.PerHour(e.PerHour)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives what the provider said.
func (e *UnresolvedError) Unwrap() error { return e.Err }
