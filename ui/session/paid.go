package session

import (
	"fmt"
)

// Machines is what a cluster consists of, where it is paid for.
type Machines struct {
	count    int
	Instance string  // its type; empty where there is no such thing
	place    string  // zone, or region
	PerHour  float64 // while they run, US dollars
	spot     bool
	Stopped  bool
}

// String is how they are named in one line: 2 × g5.xlarge spot in us-east-1a.
func (c Machines) String() string {
	text := fmt.Sprintf("%d × %s", c.count, c.Instance)
	if c.spot {
		text += " spot"
	}
	if c.place != "" {
		text += " in " + c.place
	}
	return text
}
