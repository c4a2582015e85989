package remote

import (
	"fmt"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// probeEvery is how many times the keepalive's interval an agent may be silent
// before it is asked whether it lives.
const probeEvery = 3

// probe asks an agent for an answer when it has been silent. Its sshd may be
// well while it is stopped, or waits for a disk that is gone. One that says
// nothing at all costs the link, and the next call starts another one.
func (n *Node) probe(l *link, s *wire.Session) {
	every, limit := probeEvery*n.bounds.Every, n.bounds.Shell
	if l.own { // nothing else tells that the connection is dead
		limit = n.bounds.Answer
	}
	for {
		select {
		case <-time.After(max(every-s.Silent(), every/probeEvery)):
		case <-s.Done():
			return
		}
		if s.Silent() < every {
			continue
		}
		select {
		case <-s.Ping():
		case <-s.Done():
			return
		case <-time.After(limit):
			if s.Silent() >= limit {
				l.kill(fmt.Errorf("the agent there did not answer within %v", limit))
				return
			}
		}
	}
}
