package workbench

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// portScript prints the first of its arguments that is a port on which it can listen.
const portScript = `import socket, sys
why = None
for port in sys.argv[1:]:
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind(("", int(port)))
    except OSError as e:
        why = e
    else:
        print(port)
        sys.exit()
sys.exit(str(why))
`

// masterPort is the port at which the ranks find each other: the profile's, if
// it is free on node 0, else one that is.
func (d *drive) masterPort(ctx context.Context, python string) (int, error) {
	want := d.plan.Profile.Run.MasterPort
	r, err := d.link.nodes[0].Exec(ctx, remote.Cmd{Line: portLine(python, want)})
	if err != nil {
		return 0, err
	}
	if r.ExitCode != 0 {
		f := &event.Fault{What: fmt.Sprintf("use run.master_port %d", want), Node: 0,
			Why: "the port is taken there", Next: "leave master_port out and a free one is chosen",
			LastLines: event.LastLines(string(r.Stderr), 3)}
		if want == 0 {
			f.What, f.Next = "find a port at which the ranks meet", "name a free one in run.master_port"
			f.Why = fmt.Sprintf("Python can listen there on none of %d ports between %d and %d", portTries, firstPort, lastPort)
		}
		return 0, f
	}
	return strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
}

// portLine is the command line that asks for a port: the wanted one, or for 0
// some drawn by chance, as others draw them at the same time.
func portLine(python string, want int) string {
	line := shellword.Join(python) + " -c " + shellword.Join(portScript)
	if want != 0 {
		return fmt.Sprint(line, " ", want)
	}
	for range portTries {
		line += fmt.Sprint(" ", firstPort+rand.IntN(lastPort-firstPort+1))
	}
	return line
}
