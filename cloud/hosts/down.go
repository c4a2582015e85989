package hosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/hostclaim"
)

// removeLimit bounds the removal of what lies on one host: environments are
// many files.
const removeLimit = 10 * time.Minute

// Down gives the hosts back: it ends what the cluster still runs on them,
// removes what it put there and nothing else, and looks again. A host that
// can't be reached is left as it is, and the receipt says so.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	if progress == nil {
		progress = func(int, string) {}
	}
	receipt := cloud.Receipt{Cluster: life.Name, Provider: kind, Lived: cloud.Lived(life.Began, time.Now())}
	machines, err := readRecord(life)
	if errors.Is(err, fs.ErrNotExist) {
		return receipt, nil // no host was ever taken
	}
	if err != nil {
		receipt.Resources = []cloud.Resource{{Kind: "host", ID: "all", State: cloud.Unknown, Proof: err.Error()}}
		return receipt, fmt.Errorf("give back the hosts of cluster %s: %w", life.Name, err)
	}
	calls := p.newCaller()
	defer calls.close()
	calls.mute = muteLimit + time.Duration(len(machines))*muteEach
	ends, now := make([]ending, len(machines)), make([]*machine, len(machines))
	var all sync.WaitGroup
	for _, group := range together(machines) {
		all.Go(func() {
			g := giving{p, calls, life, machines, ends, now}
			g.group(ctx, group)
			for _, i := range group {
				progress(i, machines[i].Entry+": "+ends[i].proof)
			}
		})
	}
	all.Wait()
	if err := rememberMoved(life, machines, now); err != nil {
		progress(-1, err.Error())
	}
	for i, e := range ends {
		receipt.ProcessesLeft += e.processes
		receipt.FilesLeft += e.files
		receipt.Resources = append(receipt.Resources, cloud.Resource{
			Kind: "host", ID: machines[i].Entry, Node: "node" + itoa(i), State: e.state, Proof: e.proof, Lived: receipt.Lived,
		})
	}
	if !receipt.Proven() {
		err = fmt.Errorf("give back the hosts of cluster %s: not everything is proven removed", life.Name)
	}
	return receipt, err
}

// muteLimit is how long a host has to take a connection when it is given back: one
// that does not is left as it is, and others don't wait for it. All are dialed at once,
// and the logins of hundreds keep a laptop busy: each adds muteEach.
const (
	muteLimit = 6 * time.Second
	muteEach  = 50 * time.Millisecond
)

// ending is what became of one host.
type ending struct {
	state            cloud.State
	proof            string
	processes, files int
}

// reachAgain connects to a host that a life has. It is known by the key that it
// showed when it was taken, or by the one that the user has come to know since.
func (p *Provider) reachAgain(ctx context.Context, calls *caller, m machine, life cloud.Life) (*contact, *ending) {
	pinned := m
	pinned.Vouched = m.HostKey
	pinned.Jumps = nil
	for _, j := range m.Jumps {
		j.Vouched = j.HostKey
		pinned.Jumps = append(pinned.Jumps, j)
	}
	c, err := calls.call(ctx, pinned)
	if err != nil {
		// Names, jump hosts and keys may be others by now.
		c, err = p.callAgain(ctx, calls, m, err)
	}
	if err == nil {
		return c, nil
	}
	var problem *Problem
	if errors.As(err, &problem) {
		err = errors.New(problem.whole())
	}
	return nil, &ending{state: cloud.Unknown, proof: fmt.Sprintf("it could not be looked at: %v; it may still run processes of this cluster, and hold ~/dlwb/%s and ~/.dlwb",
		err, life.Name)}
}

// callAgain reaches a host by what the ssh configuration says of it now.
func (p *Provider) callAgain(ctx context.Context, calls *caller, m machine, first error) (*contact, error) {
	r, err := p.resolver()
	if err != nil {
		return nil, first
	}
	now, err := r.host(m.Entry)
	if err != nil || errors.As(first, new(*muteError)) && now.sameWay(m) {
		return nil, first // nobody is there, and the way is the same
	}
	now.Vouched = m.Vouched
	c, err := calls.call(ctx, now)
	if err != nil {
		return nil, first
	}
	return c, nil
}

// endingOf reads the answer to a removal.
func endingOf(a hostclaim.Answer, life cloud.Life) ending {
	switch {
	case !a.Claim.Held():
		return ending{state: cloud.Gone, proof: "there is no ~/.dlwb/cluster: nothing of this life is there"}
	case a.Claim.Life != life.ID:
		return ending{state: cloud.Gone, proof: "this life no longer has it: " + a.Claim.String()}
	}
	e := ending{state: cloud.Gone, processes: a.Left.Processes}
	var left []string
	for _, place := range a.Left.Places {
		if place.Path == ".dlwb" && len(a.Left.Others) > 0 {
			continue // what others have put there stays
		}
		e.files += place.Files
		if !strings.HasPrefix(place.Path, "/") {
			place.Path = "~/" + place.Path
		}
		left = append(left, fmt.Sprintf("%d files in %s", place.Files, place.Path))
	}
	if e.processes > 0 {
		left = append([]string{fmt.Sprintf("%d processes with DLWB_RUN_DIR are still there after KILL", e.processes)}, left...)
	}
	if a.Left.Containers != "" {
		left = append([]string{a.Left.Containers}, left...)
	}
	if a.Left.Unsure {
		e.state, e.proof = cloud.Unknown, strings.Join(left, ", ")
		return e
	}
	if len(left) > 0 {
		e.state, e.proof = cloud.Alive, strings.Join(left, ", ")
		return e
	}
	e.proof = fmt.Sprintf("given back: no process carries DLWB_RUN_DIR, ~/dlwb/%s is not there", life.Name)
	if dir := a.Claim.Elsewhere(); dir != "" {
		e.proof += ", nor " + dir
	}
	if a.Left.Contained {
		e.proof += ", " + containers.Proof
	}
	if len(a.Left.Others) > 0 {
		e.proof += ", and of ~/.dlwb only what others have there: " + strings.Join(a.Left.Others, " ")
	} else {
		e.proof += ", ~/.dlwb is not there"
	}
	return e
}
