//go:build unix

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
)

// probeLimit is how long a node may take to answer a probe.
const probeLimit = 3 * time.Second

// Probe reports the state of each node. Alive: its process runs and its port
// answers with its host key. Gone: no process has its pid and start time. All
// else is Unknown.
func (p *Provider) Probe(ctx context.Context, c cloud.Cluster) ([]cloud.Status, error) {
	states := make([]cloud.Status, len(c.Nodes))
	dir, err := p.clusterDir(c.Name)
	if err != nil {
		for i := range states {
			states[i].State = cloud.Unknown
		}
		return states, err
	}
	done := make(chan struct{})
	for i := range c.Nodes {
		go func() {
			defer func() { done <- struct{}{} }()
			states[i].State = probeListed(ctx, dir, c.Nodes[i])
		}()
	}
	for range c.Nodes {
		<-done
	}
	return states, nil
}

// probeListed finds out the state of a node of which also the caller knows
// something. That counts only when the cluster's directory is not there any
// more: taken down as a rule, but it may also have been deleted by hand.
func probeListed(ctx context.Context, dir string, n cloud.Node) cloud.State {
	if _, err := readIntent(dir); !errors.Is(err, errNoCluster) {
		state, _ := probe(ctx, dir, n.Index)
		return state
	}
	_, port, err := net.SplitHostPort(n.Addr)
	key, _, _, _, err2 := ssh.ParseAuthorizedKey([]byte(n.HostKey))
	if err != nil || err2 != nil {
		return cloud.Gone // it never listened
	}
	number, _ := strconv.Atoi(port)
	switch err := answers(ctx, number, key); {
	case err == nil:
		return cloud.Alive
	case errors.Is(err, errOther):
		return cloud.Gone // a node keeps its port as long as it lives
	}
	return cloud.Unknown
}

// probe finds out the state of one node, and says how it knows.
func probe(ctx context.Context, dir string, i int) (cloud.State, string) {
	node := nodeDir(dir, i)
	s, err := readServing(node)
	if errors.Is(err, errNoCluster) {
		return probeSilent(dir)
	}
	if err != nil {
		return cloud.Unknown, err.Error()
	}
	if !s.alive() {
		return cloud.Gone, fmt.Sprintf("no process has the pid %d and its start time", s.PID)
	}
	key, err := readKey(filepath.Join(node, hostKeyFile))
	if err != nil {
		return cloud.Unknown, err.Error()
	}
	if err := answers(ctx, s.Port, key.PublicKey()); err != nil {
		return cloud.Unknown, fmt.Sprintf("process %d runs, but 127.0.0.1:%d: %v", s.PID, s.Port, err)
	}
	return cloud.Alive, fmt.Sprintf("process %d answers on 127.0.0.1:%d with its host key", s.PID, s.Port)
}

// probeSilent finds out whether a node that has not said that it listens may
// be about to.
func probeSilent(dir string) (cloud.State, string) {
	in, err := readIntent(dir)
	if err != nil {
		return cloud.Unknown, err.Error()
	}
	switch mine, err := membersOf(in.ID)(); {
	case err != nil:
		return cloud.Unknown, err.Error()
	case len(mine) > 0:
		return cloud.Unknown, "it has not listened yet, and processes of its cluster run"
	}
	return cloud.Gone, "it never listened, and no process of its cluster runs"
}

// answers checks that an ssh server with this host key answers on a port. It
// does not log in.
func answers(ctx context.Context, port int, want ssh.PublicKey) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", itoa(port)))
	if err != nil {
		return refused(err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	seen := false
	_, _, _, err = ssh.NewClientConn(conn, "", &ssh.ClientConfig{
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		HostKeyCallback: func(_ string, _ net.Addr, got ssh.PublicKey) error {
			if !bytes.Equal(got.Marshal(), want.Marshal()) {
				return errOther
			}
			seen = true
			return errEnough
		},
	})
	if seen {
		return nil
	}
	if errors.Is(err, errOther) {
		return errOther
	}
	return fmt.Errorf("does not answer as the node's ssh server: %w", err)
}

// errEnough ends a handshake of which everything is known that was wanted.
var errEnough = errors.New("the host key is all that was asked for")

// errOther is the answer of a port that is not the node's any more.
var errOther = errors.New("nothing with the node's host key listens there")

func refused(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return errOther
	}
	return err
}
