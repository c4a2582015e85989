package watch

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/tunnel"
)

// Forwards is every open tunnel; the cursor is on the one with an index.
func (p Page) Forwards(at, w int) []string {
	s, f := p.Styles, p.Of.State.Forwards
	if len(f) == 0 {
		return []string{"No tunnel is open.", "",
			s.Key.Of("J") + "  Jupyter      " + s.Dim.Of("started on node 0, opened here"),
			s.Key.Of("T") + "  TensorBoard  " + s.Dim.Of("the same for event files"),
			s.Key.Of("F") + "  any port     " + s.Dim.Of("of node 0, or of another as node1:PORT; or all of the profile")}
	}
	picked := text.Clamp(at, 0, len(f)-1)
	narrow := false // an address that is cut is no address: it then gets its own row
	for _, t := range f {
		narrow = narrow || text.Wide(t.Address()) > w-42
	}
	head := "  " + text.Fit("what", 14) + text.Fit("here", 10) + text.Fit("there", 16)
	if !narrow {
		head += "address"
	}
	out := []string{s.Dim.Of(text.Cut(head, w))}
	raw := false
	for i, t := range f {
		out = append(out, p.forward(t, i == picked, narrow, w)...)
		raw = raw || t.Kind == event.ForwardTCP
	}
	notes := []string{"Tunnels listen on 127.0.0.1 only. " + lasting(f), "An HTTP server is for browsers that were let in: enter opens one, y copies an address that lets one in, once."}
	if raw {
		notes = append(notes, "raw TCP: "+tunnel.RawReach+"; PORT/http guards an HTTP server.")
	}
	out = append(out, "")
	for _, note := range notes {
		for _, l := range text.Wrap(note, max(w, 1)) {
			out = append(out, s.Dim.Of(l))
		}
	}
	return out
}

// lasting says which tunnels end with dlwb.
func lasting(all []session.Forward) string {
	var end []string
	for _, f := range all {
		if !f.Kept {
			end = append(end, text.Word(f.Name))
		}
	}
	switch len(end) {
	case 0:
		return "They go on when dlwb ends, until d closes them or the cluster is taken down."
	case len(all):
		return "They end with dlwb."
	}
	return strings.Join(end, ", ") + " ends with dlwb; what else is open goes on until d closes it or the cluster is taken down."
}

// forward is one tunnel: a row, its address below where there is no room,
// and what is wrong with it.
func (p Page) forward(t session.Forward, picked, narrow bool, w int) []string {
	s := p.Styles
	here, there := fmt.Sprint(t.LocalPort), fmt.Sprintf("%s:%d", session.NodeName(t.Node), t.RemotePort)
	row := text.Fit(text.Word(t.Name), 14) + text.Fit(here, 10) + text.Fit(there, 16)
	address := t.Address()
	switch t.Kind {
	case event.ForwardTCP:
		address += " raw TCP"
	case event.ForwardReverse:
		address = "reverse: from the node to here"
	}
	mark := "  "
	if picked {
		mark, row = s.Picked.Of("› "), s.Picked.Of(row)
	}
	out := []string{text.Cut(mark+row+address, w)}
	if narrow {
		out[0] = text.Cut(mark+row, w)
		for _, l := range text.Wrap(address, max(w-4, 1)) {
			out = append(out, "    "+l)
		}
	}
	var wrong string
	switch {
	case !t.Away && t.Why == "":
		return out
	case t.Away:
		wrong = "? reconnecting: " + text.Word(t.Why)
	default:
		wrong = "! connected; what failed last: " + text.Word(t.Why)
	}
	for _, l := range text.WrapIn(s.Warn, wrong, max(w-4, 1)) {
		out = append(out, "    "+l)
	}
	return out
}
