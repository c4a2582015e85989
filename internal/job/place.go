package job

import (
	"fmt"
	"strconv"
	"strings"
)

// Port stands, in what is planned before a job has begun, for the port of
// replica 0 at which the ranks meet.
const Port = "dlwb-port.invalid"

// HostOf stands, in what is planned before a job has begun, for the name by
// which the others reach a replica. No machine has such a name.
func HostOf(replica int) string { return fmt.Sprintf("dlwb-replica-%d.invalid", replica) }

// Places puts hosts and the port where HostOf and Port stand for them in a text.
type Places struct {
	hosts *strings.Replacer
	port  int
}

// Placing makes Places of the names of the replicas and of a port. What stands for a
// replica that is not among hosts stays.
func Placing(hosts []string, port int) Places {
	var pairs []string
	for i, host := range hosts {
		pairs = append(pairs, HostOf(i), host)
	}
	return Places{strings.NewReplacer(pairs...), port}
}

// Replace gives a text with the places in it. A port that follows the first one is
// written with its distance: "dlwb-port.invalid+2".
func (p Places) Replace(text string) string {
	before, rest, more := strings.Cut(p.hosts.Replace(text), Port)
	for more {
		port := p.port
		if after, is := strings.CutPrefix(rest, "+"); is {
			digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
			if far, err := strconv.Atoi(after[:digits]); err == nil {
				port, rest = port+far, after[digits:]
			}
		}
		before += strconv.Itoa(port)
		var next string
		next, rest, more = strings.Cut(rest, Port)
		before += next
	}
	return before
}
