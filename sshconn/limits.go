package sshconn

import "time"

// Bounds are how long each kind of call on a connection may take. What takes
// longer ends the connection: on one that does not answer nothing else is sure
// to return.
type Bounds struct {
	// Open bounds the opening of a channel: a session, a tunnel's connection.
	Open time.Duration
	// Reply bounds the answer to a request: a command, a terminal, a
	// subsystem, a port to listen on. sshd starts the user's shell before it
	// answers, and a node under load takes its time for that.
	Reply time.Duration
	// Answer bounds the answer to a keepalive.
	Answer time.Duration
}

// Standard are the bounds that dlwb uses.
var Standard = Bounds{Open: 10 * time.Second, Reply: 15 * time.Second, Answer: 10 * time.Second}
