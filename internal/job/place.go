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

// Placing puts hosts and the port where HostOf and Port stand for them in a text.
// What stands for a replica that is not among hosts stays.
func Placing(hosts []string, port int) *strings.Replacer {
	pairs := []string{Port, strconv.Itoa(port)}
	for i, host := range hosts {
		pairs = append(pairs, HostOf(i), host)
	}
	return strings.NewReplacer(pairs...)
}
