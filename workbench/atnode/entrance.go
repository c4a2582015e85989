package atnode

import (
	"context"
	"slices"
	"sync"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transport"
)

// Into is the way into a replica that lets commands be started in it.
func Into(r job.Entrance) transport.Opener {
	return func(context.Context) (transport.Machine, error) {
		return &inside{replica: r, running: map[*started]bool{}, done: make(chan struct{})}, nil
	}
}

// Ways are the ways into replicas; nil where there are none.
func Ways(replicas []job.Replica) func(replica int) transport.Opener {
	if _, can := Entrance(replicas); !can {
		return nil
	}
	return func(i int) transport.Opener { return Into(replicas[i].(job.Entrance)) }
}

// Entrance is the first of replicas, where they let commands be started in them.
func Entrance(replicas []job.Replica) (job.Entrance, bool) {
	if len(replicas) == 0 {
		return nil, false
	}
	e, can := replicas[0].(job.Entrance)
	return e, can
}

// Entered are replicas with what can be done on their machines, which are nodes.
func Entered(replicas []job.Replica, nodes []*remote.Node) []job.Replica {
	if len(nodes) != len(replicas) {
		return replicas
	}
	all := make([]job.Replica, len(replicas))
	for i, r := range replicas {
		n := Run{Node: nodes[i]}
		on := entered{r, n, n, n}
		all[i] = on
		if reader, can := r.(job.FileReader); can {
			all[i] = reading{on, reader}
		}
	}
	return all
}

// entered is a replica on whose machine commands can be run.
type entered struct {
	job.Replica
	job.Execer
	job.Dialer
	job.Teller
}

// reading is one whose files can be read too.
type reading struct {
	entered
	job.FileReader
}

// inside is an open way: the commands that run over it.
type inside struct {
	replica job.Entrance
	done    chan struct{}

	mu      sync.Mutex
	err     error
	running map[*started]bool
}

func (m *inside) Done() <-chan struct{} { return m.done }

func (m *inside) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *inside) Kill(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return
	}
	m.err = why
	for c := range m.running {
		go func() { _ = c.Command.Close() }() // which may wait for a network
	}
	close(m.done)
}

func (m *inside) Start(ctx context.Context, line string) (transport.Command, error) {
	if err := m.Err(); err != nil {
		return nil, err
	}
	c, err := m.replica.Start(ctx, line)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil { // killed meanwhile
		_ = c.Close()
		return nil, m.err
	}
	s := &started{c, m}
	m.running[s] = true
	return s, nil
}

// started is a command that the way forgets when it is closed.
type started struct {
	job.Command
	on *inside
}

func (c *started) Close() error {
	c.on.mu.Lock()
	delete(c.on.running, c)
	c.on.mu.Unlock()
	return c.Command.Close()
}

// Tells reports whether the service of a job tells what its machines do.
func Tells(replicas []job.Replica) bool {
	return slices.ContainsFunc(replicas, func(r job.Replica) bool { _, can := r.(job.Teller); return can })
}
