package sshconn

import "time"

// Bounds are how long each kind of call on a connection may take. What takes
// longer ends the connection: on one that does not answer nothing else is sure
// to return. docs/bounds.md tells people of them.
type Bounds struct {
	// Dial bounds everything from the TCP dial to the accepted key: the version,
	// the keys, the host's key, each way to log in.
	Dial time.Duration
	// Open bounds the opening of a channel: a session, a tunnel's connection.
	Open time.Duration
	// Reply bounds the answer to a request: a command, a terminal, a
	// subsystem. sshd starts the user's shell before it
	// answers, and a node under load takes its time for that.
	Reply time.Duration
	// Every is how long a connection may be silent before it is asked for an
	// answer, and Answer how long that may take.
	Every, Answer time.Duration
	// Shell bounds what the node's login shell does before a command begins. It
	// may hang while sshd is well: on a home directory that is not there, or a
	// full table of processes.
	Shell time.Duration
	// Quiet is how long a command may be silent that a healthy node answers in
	// seconds.
	Quiet time.Duration
	// Script bounds one of the scripts that look at a host before it is a node.
	Script time.Duration
}

// Standard are the bounds that dlwb uses. Tests set smaller ones before they
// open anything.
var Standard = Bounds{
	Dial: 10 * time.Second, Open: 10 * time.Second, Reply: 15 * time.Second,
	Every: 5 * time.Second, Answer: 10 * time.Second,
	Shell: 60 * time.Second, Quiet: 2 * time.Minute, Script: 20 * time.Second,
}
