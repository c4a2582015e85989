package session

// Machines is what a cluster consists of, where it is paid for.
type Machines struct {
	text     string  // how many of which types
	Instance string  // the type; empty where there is no such thing
	place    string  // zone, or region
	PerHour  float64 // while they run, US dollars
	Stopped  bool
}

// String is how they are named in one line: 2 × g5.xlarge spot in us-east-1a.
func (c Machines) String() string {
	if c.place != "" {
		return c.text + " in " + c.place
	}
	return c.text
}
