package mlflow

import (
	"strconv"
	"strings"
	"time"
)

// Line reads a line of a metric as MLflow's file store keeps it, "timestamp value
// step", the time in milliseconds (mlflow.store.tracking.file_store).
func Line(line string) (v Value, ok bool) {
	cells := strings.Fields(line)
	if len(cells) < 3 || len(cells) > 5 || len(cells[0]) != 13 || strings.Trim(cells[0], "0123456789") != "" { // newer ones name the data set behind
		return v, false
	}
	ms, err := strconv.ParseInt(cells[0], 10, 64)
	number, bad := strconv.ParseFloat(cells[1], 64)
	step, worse := strconv.ParseInt(cells[2], 10, 64)
	return Value{Number: number, Step: step, Time: time.UnixMilli(ms)}, err == nil && bad == nil && worse == nil
}

// IsLine reports whether a line is one of a metric.
func IsLine(line string) bool {
	_, ok := Line(line)
	return ok
}
