// Package console is what a command asks of the terminal that it was started in:
// whether it can be put aside, when its size changes, when it is gone, and the way out
// of a shell on a node that has it.
package console
