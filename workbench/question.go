package workbench

import (
	"strings"

	"github.com/dlwb/dlwb/cloud"
)

// diskCost is what of a price goes on when the machines are stopped.
func diskCost(parts []cloud.Cost) (perHour float64) {
	for _, c := range parts {
		if strings.Contains(strings.ToLower(c.What), "disk") {
			perHour += c.PerHour
		}
	}
	return perHour
}
