// Package ui is the screen of dlwb: the model of Bubble Tea, which draws a
// workbench and sends it wishes. It dials nothing and parses no profile; of
// clouds it has the values that are shown: nodes, states, offers, prices.
//
// The model keeps where we are, the size, the dialogs, what was asked for and the
// stream of events. What is shown, how it is looked at and how it is drawn are
// values in the packages below, which do not know the model:
//
//	session/   events folded into what is known of a cluster or a run
//	home/      the list of what exists
//	watch/     steps, training, output, tunnels and receipt of a cluster and its run
//	chart/     charts of curves
//	nodes/     panels of nodes, the heatmap of their GPUs
//	runs/      the table of runs
//	compare/   runs over each other
//	wizard/    a new profile, with its machines (offers/) and its plan (plan/)
//	sign/, text/, line/, plot/, logview/   what these are drawn with
//
// In ui itself one file is one thing:
//
//	bench.go     what the screen drives, and what it is started with
//	run.go       from a call to a terminal and back
//	model.go     messages in, one frame out
//	messages.go  every message, with a sentence
//	commands.go  all input and output, as commands that end in a message
//	screens.go   the table of screens; each screen has its row and its keys in
//	             the file that is named for it
//	keys.go      the table of keys: dispatch, footer, help and docs/keys.md
//	actions.go   what the keys of several screens do
//	move.go      from screen to screen; frame.go and bars.go draw what is around one
//	…            and a file for each dialog
//
// Nothing in Update or View reads a file or a socket; both tell the time by the
// model's Clock, which stands still in tests.
package ui
