package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// headKey is the key of a profile that asks for a machine more, which is the head.
const headKey = "machines.head_instance"

// workers is how many of the nodes do the work.
func workers(nodes []Node) (n int) {
	for _, node := range nodes {
		if !node.Head {
			n++
		}
	}
	return n
}

// headRanks is how many ranks the head has; an error where the nodes have a head
// and the engine nothing to run there: it would be paid for and idle.
func (e engine) headRanks(nodes []Node, job Job) (int, error) {
	at := slices.IndexFunc(nodes, func(n Node) bool { return n.Head })
	switch {
	case at < 0:
		return 0, nil
	case at > 0 || workers(nodes) != len(nodes)-1:
		return 0, errors.New("the head of a cluster is its first node, and there is one")
	case e.onHead == nil:
		return 0, fmt.Errorf("%s makes a machine on which no rank runs, and it has nothing else to start there: remove the key, or use engine %s",
			headKey, strings.Join(withHead(), " or "))
	}
	return e.onHead(job)
}

// withHead are the engines that have something to run on a head.
func withHead() (names []string) {
	for _, e := range engines {
		if e.onHead != nil {
			names = append(names, e.name)
		}
	}
	return names
}

// driverOnHead: Ray's head and the driver are there, whose rank is no worker.
func driverOnHead(Job) (int, error) { return 0, nil }

// chiefOnHead: with parameter servers the chief only hands out the work.
func chiefOnHead(j Job) (int, error) {
	if j.ParameterServers == 0 {
		return 0, fmt.Errorf("%s makes a machine for a chief that does not train, which there is with %s only: set that, or remove %s", headKey, optServers, headKey)
	}
	return 1, nil
}
