// Package told puts events into lines for people, as commands without a screen print
// them.
package told

import (
	"fmt"
	"io"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/sweep"
	"github.com/dlwb/dlwb/workbench/tunnel"
)

// Event is an event as a line for people; empty for those that are told by
// others.
func Event(b event.Body) string {
	switch b := b.(type) {
	case event.PlanMade:
		return sanitize.Sprintf("plan: %s on %s of %s, %s, %s%s", b.Profile, nodes(b.Nodes), b.Provider, b.Engine, b.Command, price(b.PricePerHour))
	case event.StepStarted:
		return sanitize.Sprintf("… %s: %s", b.Step, b.Text)
	case event.StepProgress:
		return sanitize.Sprintf("    %s%s", at(b.Node, b.Host), b.Text)
	case event.StepEnded:
		return stepText(b)
	case event.NodeChanged:
		return sanitize.Sprintf("  %s: %s %s", event.NodeText(b.Node, b.Host), b.State, b.Why)
	case event.ClusterUp:
		return upText(b)
	case event.CheckpointSaved:
		if b.Place != "" {
			return sanitize.Sprintf("  checkpoint %s is kept: %s, %s", b.Name, b.Place, event.SizeText(b.Files, b.Bytes))
		}
		return sanitize.Sprintf("  checkpoint %s of %s is home: %s", b.Name, event.NodeText(b.Node, b.Host), event.SizeText(b.Files, b.Bytes))
	case event.ChainStep:
		return strings.TrimRight(sanitize.Sprintf("step %d of %d, %s: %s  %s %s", b.Step, b.Steps, b.Profile, b.State, b.Run, b.Why), " ")
	case event.SweepChanged:
		return sanitize.Word(sweep.Headline(b))
	case event.SpotNotice:
		return sanitize.Sprintf("warning: node%d will be taken away by its provider at %s (%s)", b.Node, b.At.Local().Format("15:04:05"), b.Action)
	case event.ClusterStopped:
		return "  the machines are stopped; their disks cost " + units.PerHour(b.PricePerHour)
	case event.RunStarted:
		text := sanitize.Sprintf("  %s, world size %d on %s", b.Engine, b.WorldSize, nodes(b.Nodes))
		if b.Python != "" { // which one there is in a container nobody has asked
			text += sanitize.Sprintf(", with %s", b.Python)
		}
		return text
	case event.RankEnded:
		return rankText(b)
	case event.RunEnded:
		return Run(b)
	case event.ForwardOpened:
		return Forward(b)
	case event.ForwardChanged:
		return forwardStateText(b)
	case event.ForwardClosed:
		return sanitize.Sprintf("%s on local port %d: %s", b.Name, b.LocalPort, b.Why)
	case event.ReceiptMade:
		return Receipt(b)
	case event.MetricAdded:
		return sanitize.Sprintf("its output is now read for %s too, by %s", b.Name, b.Regex)
	case event.Noticed:
		return noticeText(b)
	case event.Failed:
		return faultText("✗ ", &b.Fault)
	}
	return ""
}

// upText says what a cluster costs and when it ends by itself; of one that
// costs nothing there is nothing to say.
func upText(b event.ClusterUp) string {
	if b.PricePerHour == 0 {
		return ""
	}
	what := nodes(len(b.Nodes)) + " " + b.Instance
	if len(b.Nodes) > 0 && b.Nodes[0].Head {
		what = cloud.MachinesText(b.Nodes, b.Instance, b.Spot)
	}
	s := sanitize.Sprintf("  %s in %s%s", what, b.Zone, price(b.PricePerHour))
	if !b.Ends.IsZero() {
		s += ", shut themselves down at " + b.Ends.Local().Format("2006-01-02 15:04") + " at the latest"
	}
	return s
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func price(perHour float64) string {
	if perHour == 0 {
		return ""
	}
	return ", " + units.PerHour(perHour)
}

func at(node int, host string) string {
	if node < 0 {
		return ""
	}
	return event.NodeText(node, host) + ": "
}

func stepText(b event.StepEnded) string {
	mark := "✓"
	switch {
	case !b.OK:
		mark = "✗"
	case b.Skipped:
		mark = "="
	}
	head := sanitize.Sprintf("%s %-11s %7s  ", mark, b.Step, units.Seconds(b.Duration))
	if b.Failure != nil && b.Step != event.StepTrain {
		return faultText(head, b.Failure)
	}
	return head + sanitize.Word(b.Text)
}

func rankText(b event.RankEnded) string {
	switch {
	case b.ExitCode == 0:
		return ""
	case b.ByUs:
		return sanitize.Sprintf("  rank %d on %s was stopped", b.Rank, event.NodeText(b.Node, b.Host))
	case b.Signal != "":
		return sanitize.Sprintf("  rank %d on %s was ended by SIG%s", b.Rank, event.NodeText(b.Node, b.Host), b.Signal)
	}
	return sanitize.Sprintf("  rank %d on %s exited with code %d", b.Rank, event.NodeText(b.Node, b.Host), b.ExitCode)
}

// Run says how a run ended, with the last lines of who failed.
func Run(b event.RunEnded) string {
	s := sanitize.Sprintf("run %s in %s: %s (exit code %d)", b.Verdict, units.Seconds(b.Duration), b.Cause, b.ExitCode)
	for _, l := range b.LastLines {
		s += sanitize.Sprintf("\n  | %s", l)
	}
	return s
}

// Receipt lists what a cluster was made of, with the proof that it is gone or what is
// not known, and what all of it cost.
func Receipt(b event.ReceiptMade) string {
	var s strings.Builder
	for _, r := range b.Resources {
		sanitize.Fprintf(&s, "  %-10s %-8s %s: %s\n", r.Kind, string(r.State), r.ID, r.Proof)
	}
	head := "receipt: everything is gone"
	if !b.Proven {
		head = "receipt: UNRESOLVED"
	}
	fmt.Fprintf(&s, "%s; %d processes and %d files left; lived %s, cost %s", head, b.ProcessesLeft, b.FilesLeft,
		units.Seconds(b.Lived), units.USD(b.Cost))
	return s.String()
}

func noticeText(b event.Noticed) string {
	s := "note: "
	if b.Level == "warning" {
		s = "warning: "
	}
	s += sanitize.Word(b.Text)
	if b.Next != "" {
		s += "; " + sanitize.Word(b.Next)
	}
	return s
}

func faultText(head string, f *event.Fault) string {
	return head + sanitize.Word(f.Error()) + faultRest(f)
}

func faultRest(f *event.Fault) string {
	var b strings.Builder
	Fault(&b, f)
	return strings.TrimSuffix("\n"+b.String(), "\n")
}

// Forward says where a tunnel leads.
func Forward(b event.ForwardOpened) string {
	s := sanitize.Sprintf("%s: %s", b.Name, b.Address())
	switch b.Kind {
	case event.ForwardTCP:
		s += " (raw TCP: " + tunnel.RawReach + ")"
	case event.ForwardReverse:
		s = fmt.Sprintf("reverse: port %d of node%d (127.0.0.1 there) leads to port %d here", b.RemotePort, b.Node, b.LocalPort)
	}
	if b.Note != "" {
		s += "\n  note: " + sanitize.Word(b.Note)
	}
	return s
}

// forwardStateText says how a tunnel stands.
func forwardStateText(b event.ForwardChanged) string {
	name := sanitize.Sprintf("%s on local port %d: ", b.Name, b.LocalPort)
	switch {
	case b.Connected && b.Why == "":
		return name + "connected"
	case b.Connected:
		return name + "connected; the latest connection through it failed: " + sanitize.Word(b.Why)
	}
	return name + "reconnecting: " + sanitize.Word(b.Why)
}

// Fault prints the part of a fault that its one line does not hold.
func Fault(w io.Writer, f *event.Fault) {
	if f.Command != "" {
		sanitize.Fprintf(w, "  command: %s\n", f.Command)
	}
	for _, l := range f.LastLines {
		sanitize.Fprintf(w, "  | %s\n", l)
	}
	if f.Next != "" {
		sanitize.Fprintf(w, "  next: %s\n", f.Next)
	}
}
