// Package ui is the screen of dlwb. It draws a workbench and sends it wishes;
// it knows no ssh and no YAML, and of clouds only the values that are shown:
// nodes, states, offers, prices.
//
// One file is one thing:
//
//	bench.go     what the screen drives, and what it is started with
//	run.go       from a call to a terminal and back
//	model.go     the one real model: messages in, one frame out
//	messages.go  every message, with a sentence
//	commands.go  all input and output, as commands that end in a message
//	keys.go      the one table of keys: dispatch, footer, help and docs/keys.md
//	screens.go   the one table of screens: name, title, draw, move, copy, back
//	actions.go   what the keys do
//	chart/       charts of curves: how they are looked at, and drawn
//	nodes/       panels of nodes, the heatmap of their GPUs
//	sign/        phases, verdicts, ends and faults in signs, words and inks
//	session/     a pure fold of events into what is known of what is looked at
//	bars.go      what stands above every screen: machines, alarms
//	new.go       the screen of wizard/, offers/ and plan/: a new profile
//	runs/        the table of runs; runkeys.go are its keys
//	watch/       steps, training, output and receipt of a cluster and its run
//	home/        the list of what exists
//	compare/     runs over each other; comparekeys.go are its keys
//	text/        fitting text into cells, numbers, tokens of colour, ASCII
//	…            and a file for each screen and each dialog
//
// The children of the model are plain structs with plain methods. Nothing in
// Update or View reads a file, a socket or a clock: time enters as a message.
package ui
