// Package rankport chooses the port at which the ranks of a run find each other.
package rankport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// Seconds pass from the choice of a port until the first rank listens on it. So it
// is none of those that a system gives to whoever connects to somewhere (from 32768
// on Linux, from 49152 by RFC 6335), nor one of Kubernetes' NodePorts (from 30000).
const (
	firstPort = 20_000
	lastPort  = 29_999
	portTries = 50
)

// portScript prints those of its arguments, behind the first, from which on it can
// listen on as many ports as the first says.
const portScript = `import socket, sys
why, free = None, []
for port in map(int, sys.argv[2:]):
    for p in range(port, port + int(sys.argv[1])):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("", p))
        except OSError as e:
            why = e
            break
        finally:
            s.close()
    else:
        free.append(port)
print(*free)
if not free:
    sys.exit(str(why))
`

// Each does something on every one of the nodes at once.
type Each func(ctx context.Context, do func(ctx context.Context, node int, n *remote.Node) error) error

// Ask is what is asked for.
type Ask struct {
	Want    int      // run.master_port; 0: any
	Span    int      // how many ports in a row are needed
	Pythons []string // of each node that is asked; more than one where the row must be free on all
}

// Choose gives a port that is free on node 0, or, where several are needed, the first
// of a row of them that is free on all nodes.
func Choose(ctx context.Context, each Each, ask Ask) (int, error) {
	candidates := portsToTry(ask.Want, ask.Span)
	asked := len(ask.Pythons)
	if ask.Span <= 1 {
		asked = 1
	}
	free := make([][]string, asked)
	err := each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		if i >= asked {
			return nil
		}
		r, err := n.Exec(ctx, remote.Cmd{Line: portLine(ask.Pythons[i], ask.Span, candidates)})
		if err == nil && r.ExitCode != 0 {
			err = ask.none(i, string(r.Stderr))
		}
		free[i] = strings.Fields(string(r.Stdout))
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, port := range free[0] {
		if !slices.ContainsFunc(free, func(of []string) bool { return !slices.Contains(of, port) }) {
			return strconv.Atoi(port)
		}
	}
	return 0, ask.none(-1, "")
}

// none says that there is no port as it is needed.
func (ask Ask) none(node int, said string) error {
	ports := "the port is"
	if ask.Span > 1 {
		ports = fmt.Sprintf("one of %d ports from there on is", ask.Span)
	}
	f := &event.Fault{What: fmt.Sprintf("use run.master_port %d", ask.Want), Node: node,
		Why: ports + " taken there", Next: "leave master_port out and a free one is chosen", LastLines: event.LastLines(said, 3)}
	if ask.Want == 0 {
		f.What, f.Next = "find a port at which the ranks meet", "name a free one in run.master_port"
		f.Why = fmt.Sprintf("Python can listen there on none of %d ports between %d and %d", portTries, firstPort, lastPort)
	}
	return f
}

// portsToTry are the wanted port, or for 0 some drawn by chance, as others draw
// them at the same time.
func portsToTry(want, span int) []int {
	if want != 0 {
		return []int{want}
	}
	ports := make([]int, portTries)
	for i := range ports {
		ports[i] = firstPort + rand.IntN(max(lastPort-firstPort+1-span, 1))
	}
	return ports
}

// portLine is the command line that asks which of some ports are free, each with
// those behind it.
func portLine(python string, span int, ports []int) string {
	line := shellword.Join(python) + " -c " + shellword.Join(portScript) + fmt.Sprint(" ", span)
	for _, p := range ports {
		line += fmt.Sprint(" ", p)
	}
	return line
}
