package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// recordFile, in the directory of a life, names the hosts of the life. It is
// written before anything is put on any of them.
const recordFile = "hosts.json"

// Up reaches every host, takes each of them for this life, and returns them as
// nodes. A host that another cluster has is refused, and then none is kept.
func (p *Provider) Up(ctx context.Context, life cloud.Life, spec cloud.Spec, progress cloud.Progress) (cloud.Cluster, error) {
	if progress == nil {
		progress = func(int, string) {}
	}
	fail := func(err error) (cloud.Cluster, error) {
		return cloud.Cluster{}, fmt.Errorf("take the hosts of cluster %s: %w", spec.Name, err)
	}
	machines, err := p.machines(spec)
	if err != nil {
		return fail(err)
	}
	before, err := sameAsBefore(life, machines)
	if err != nil {
		return fail(err)
	}
	calls := p.holding(ctx, spec)
	defer calls.close()
	contacts, err := p.reachAll(ctx, calls, machines, progress)
	if err != nil {
		return fail(err)
	}
	if err := stillThere(ctx, life, contacts, before); err != nil {
		return fail(err)
	}
	met := recallShared(contacts, before)
	openDoors(ctx, contacts)
	record := func() error {
		for i, c := range contacts {
			machines[i] = c.machine
		}
		return writeRecord(life, machines)
	}
	if err := record(); err != nil {
		return fail(err)
	}
	if err := takeAll(ctx, life, contacts, met); err != nil {
		return fail(err)
	}
	if err := record(); err != nil {
		return fail(err)
	}
	if text := sharedNotice(machines); text != "" && !met {
		progress(-1, text)
	}
	c := describe(life, machines)
	if c.Notices, err = p.novelties(machines); err != nil {
		c.Notices = append(c.Notices, "that could not be written down, and will be said again: "+err.Error())
	}
	return c, nil
}

// reachAll connects to all hosts at once. The first one that can't be used
// ends it.
func (p *Provider) reachAll(ctx context.Context, calls *caller, machines []machine, progress cloud.Progress) ([]*contact, error) {
	contacts := make([]*contact, len(machines))
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range machines {
		group.Go(func() (err error) {
			if contacts[i], err = p.reach(ctx, calls, m); err != nil {
				return err
			}
			progress(i, fmt.Sprintf("%s answers after %s", m.Entry, units.Duration(contacts[i].took)))
			for _, text := range []string{m.ignoredText(), m.unheededText()} {
				if text != "" {
					progress(i, m.Entry+": "+text)
				}
			}
			return nil
		})
	}
	return contacts, group.Wait()
}

// reach connects to a host. A person is asked about each host key on the way
// of which nothing is known.
func (p *Provider) reach(ctx context.Context, calls *caller, m machine) (*contact, error) {
	for range jumpDepth + 1 {
		c, err := calls.call(ctx, m)
		var unknown *Problem
		if !errors.As(err, &unknown) || unknown.Fingerprint == "" || p.options.Confirm == nil {
			return c, err
		}
		if err := p.confirm(unknown); err != nil {
			return nil, err
		}
		calls.forget()
	}
	return nil, fmt.Errorf("%s: it shows another host key each time", m.Alias)
}

// confirm asks about a host key, unless somebody has just said yes to it.
func (p *Provider) confirm(unknown *Problem) error {
	p.asking.Lock()
	defer p.asking.Unlock()
	if k, err := knownOf(unknown.machine); err == nil {
		if _, err := k.check(unknown.key); err == nil {
			return nil
		}
	}
	if !p.options.Confirm(unknown.machine.String(), unknown.Fingerprint) {
		return unknown
	}
	return confirmKey(p.options.Dir, unknown.machine, unknown.key)
}

// takeAll takes all hosts for a life, or none, and finds out what they share, unless
// that is known and all of them have been this life's before.
func takeAll(ctx context.Context, life cloud.Life, contacts []*contact, met bool) error {
	word := meeting(len(contacts))
	if met {
		word = ""
	}
	fresh, err := claimAll(ctx, life, contacts, word)
	if err != nil {
		return err
	}
	if met && slices.Contains(fresh, true) {
		word = meeting(len(contacts))
		_, err = claimAll(ctx, life, contacts, word)
	}
	if err != nil {
		return err
	}
	return findShared(ctx, life, contacts, word)
}

// claimAll takes all hosts for a life, or none: those that it has just taken
// are given back when another is refused.
func claimAll(ctx context.Context, life cloud.Life, contacts []*contact, word string) ([]bool, error) {
	// Once begun it is seen to its end: a claim that arrives after Down has
	// looked would stay for ever.
	ctx = context.WithoutCancel(ctx)
	fresh := make([]bool, len(contacts))
	errs := make([]error, len(contacts))
	var all sync.WaitGroup
	for i, c := range contacts {
		all.Go(func() { fresh[i], errs[i] = c.claim(ctx, life, word, i, len(contacts)) })
	}
	all.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return fresh, nil
	}
	for i, c := range contacts {
		if fresh[i] {
			_, _ = c.remove(ctx, life, c.bounds.Script)
		}
	}
	return fresh, err
}

// claim takes one host, and has it leave its mark for the others. It reports whether
// it was free before.
func (c *contact) claim(ctx context.Context, life cloud.Life, word string, number, among int) (fresh bool, err error) {
	r := lifeRequest(hostclaim.Take, life)
	r.Meeting, r.Number, r.Among = word, number, among
	r.Owner, r.Since, r.Dir = owner(), life.Began.Unix(), c.Option.Dir
	a, err := c.ask(ctx, r, c.bounds.Script)
	switch {
	case err != nil:
		why, next := unfitText(c.machine, err)
		if why == "" {
			why, next = err.Error(), c.login()+" df -h ."
		}
		return false, &Problem{Host: c.Alias, Why: "it can't be taken: " + why, Next: next}
	case a.Claim.Life != life.ID && a.Namesake:
		return false, &Problem{Host: c.Alias, Why: "its home directory is one that another cluster of the name " + life.Name + " has on another host, where its code lies in ~/dlwb/" + life.Name + ": " + a.Claim.String(),
			Next: "give this one another name, or dlwb down " + a.Claim.Cluster + " where " + a.Claim.Owner + " runs it"}
	case a.Claim.Life != life.ID:
		next := "dlwb down " + a.Claim.Cluster + " gives it back, where " + a.Claim.Owner + " runs it"
		if a.Claim.Owner == owner() {
			next += "; if nothing is on record any more: " + c.login() + " rm " + strings.Join(a.Files, " ")
		}
		return false, &Problem{Host: c.Alias, Why: a.Claim.String(), Next: next}
	case a.Claim.Dir != c.Option.Dir:
		return a.New, &Problem{Host: c.Alias, Why: fmt.Sprintf("this cluster took it with the directory %q, and %q was asked for", a.Claim.Dir, c.Option.Dir),
			Next: "dlwb down " + life.Name + ", then again"}
	}
	c.Beside = a.Beside
	return a.New, nil
}

// remove gives one host back.
func (c *contact) remove(ctx context.Context, life cloud.Life, limit time.Duration) (hostclaim.Answer, error) {
	return c.ask(ctx, lifeRequest(hostclaim.Remove, life), limit)
}

func lifeRequest(do hostclaim.Act, life cloud.Life) hostclaim.Request {
	return hostclaim.Request{Do: do, Cluster: life.Name, Life: life.ID}
}

// owner is who takes hosts: the user and the machine that dlwb runs on.
func owner() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return name + "@" + host
}

// describe says what a cluster consists of.
func describe(life cloud.Life, machines []machine) cloud.Cluster {
	c := cloud.Cluster{Name: life.Name, Provider: kind, CreatedAt: life.Began}
	for i, m := range machines {
		peer, port, given := m.peer()
		way, jumps := "", jumpsOf(m)
		if m.byCommand() {
			way, jumps = wayCommand, nil
		}
		called, user, key := m.Entry, m.User, m.HostKey
		if m.Own {
			way, called, user, key = cloud.ByOwnSSH, m.Alias, m.Door.User, m.Door.HostKey
		}
		c.Nodes = append(c.Nodes, cloud.Node{
			Index: i, Name: "node" + itoa(i), Called: called, ID: m.Entry, Addr: m.addr(), User: user, Keys: m.Keys,
			Jumps: jumps, Way: way, HostKey: key, PeerHost: peer, PeerPort: port, PeerUnsure: true, PeerGiven: given,
			GPUs: m.Option.GPUs, Python: m.Option.Python, Modules: m.Modules, Beside: m.Beside, HomeOf: firstName(m.HomeOf), CodeOf: firstName(m.CodeOf),
		})
	}
	return c
}

// peer is where the others reach a machine: as the profile says, or, which is a
// guess, as this one does.
func (m machine) peer() (host string, port int, given bool) {
	text := m.Option.Peer
	if text == "" && m.Own && m.Door.Addr != "" {
		return m.Door.Addr, m.Door.Port, false
	}
	if text == "" && m.Own {
		return m.HostName, 22, false
	}
	if text == "" {
		address, _, _ := strings.Cut(m.HostName, "%") // an interface of this machine is none of theirs
		return address, m.Port, false
	}
	if net.ParseIP(text) != nil {
		return text, 22, true
	}
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return strings.Trim(text, "[]"), 22, true
	}
	port, _ = strconv.Atoi(number)
	return host, port, true
}

// sameAsBefore refuses other hosts than an earlier Up of this life has taken, and gives
// the record of those; none: there was none.
func sameAsBefore(life cloud.Life, machines []machine) ([]machine, error) {
	before, err := readRecord(life)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	entries := func(all []machine) (names []string) {
		for _, m := range all {
			names = append(names, m.Entry)
		}
		return names
	}
	if err == nil && !slices.Equal(entries(before), entries(machines)) {
		err = &Problem{Host: life.Name, Why: fmt.Sprintf("it has the hosts %v, and %v were asked for", entries(before), entries(machines)),
			Next: "dlwb down " + life.Name + ", then again"}
	}
	return before, err
}

func readRecord(life cloud.Life) ([]machine, error) {
	b, err := os.ReadFile(filepath.Join(life.Dir, recordFile))
	if err != nil {
		return nil, err
	}
	var machines []machine
	if err := json.Unmarshal(b, &machines); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(life.Dir, recordFile), err)
	}
	return machines, nil
}

// writeRecord puts the record in place whole, and on the disk.
func writeRecord(life cloud.Life, machines []machine) error {
	b, err := json.MarshalIndent(machines, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(life.Dir, recordFile), append(b, '\n'), 0o600)
}
