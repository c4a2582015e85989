// Package boot plays the machines of a fake EC2: each instance is a node of
// the local provider, which reads its user-data as cloud-init would, listens
// for ssh on an address of its own, and can power itself off. What it runs is
// real; the paths and the commands of a whole machine that it must not touch
// stand for files and shims in a directory of the instance.
package boot

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud/local"
	"github.com/dlwb/dlwb/internal/fakeaws"
)

// Options say what machines a rig makes.
type Options struct {
	// Exe is the dlwb binary, which the nodes run as.
	Exe string
	// Dir is where everything of the rig is, and nothing else: Close removes
	// it. Empty: a new directory.
	Dir string
	// User is who logs in; empty: "ubuntu".
	User string
	// GPUs is how many simulated GPUs a machine of a type has; nil: none.
	GPUs func(instanceType string) int
}

// Rig makes machines of instances. It is a fakeaws.Booter and a
// fakeaws.Noticer.
type Rig struct {
	opt   Options
	made  bool // its directory
	local *local.Provider
	// keeper holds the port on 127.0.0.1, so that no other program gets it
	// anywhere on the loopback, and serves the metadata.
	keeper net.Listener
	net    byte // the machines' addresses are 127.net.x.y
	stop   []func()

	mu       sync.Mutex
	guests   map[string]*guest
	plans    map[string]plan // by id; "" is for all that have none
	consoles map[string]string
	given    int // addresses
	failed   []error
	closing  bool
}

// plan is what was said of a machine, maybe before it existed.
type plan struct {
	intercept func(net.Conn)
	delay     time.Duration
}

var (
	_ fakeaws.Booter  = (*Rig)(nil)
	_ fakeaws.Noticer = (*Rig)(nil)
)

// plainPath is a path that a shell and a unit's file read as one word.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._+@-]+$`)

// New makes a rig without machines. The error is an errors.ErrUnsupported
// where the system has only one loopback address.
func New(o Options) (*Rig, error) {
	o.User = cmp.Or(o.User, "ubuntu")
	r := &Rig{opt: o, net: byte(64 + rand.N(190)),
		guests: map[string]*guest{}, plans: map[string]plan{}, consoles: map[string]string{}}
	if err := r.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a rig of local machines: %w", err), r.Close())
	}
	return r, nil
}

// open makes what all machines share.
func (r *Rig) open() (err error) {
	if err := r.makeDir(); err != nil {
		return err
	}
	if err := r.watch(); err != nil {
		return err
	}
	r.local = local.New(filepath.Join(r.opt.Dir, "nodes"), r.opt.Exe)
	if r.keeper, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	r.stop = append(r.stop, func() { _ = r.keeper.Close() })
	probe, err := net.Listen("tcp", r.address(0xfffe))
	if err != nil {
		return fmt.Errorf("%w: machines need addresses of their own, and only 127.0.0.1 can be listened on: %w", errors.ErrUnsupported, err)
	}
	_ = probe.Close()
	r.stop = append(r.stop, r.serveMetadata())
	hearing, err := r.hearPower()
	if err == nil {
		r.stop = append(r.stop, hearing)
	}
	return err
}

// makeDir makes the rig's directory, of a name that scripts can hold.
func (r *Rig) makeDir() (err error) {
	if r.opt.Dir == "" {
		r.opt.Dir, err = os.MkdirTemp("", "dlwb-rig-")
	} else if r.opt.Dir, err = filepath.Abs(r.opt.Dir); err == nil {
		err = os.Mkdir(r.opt.Dir, 0o700)
	}
	if r.made = err == nil; !r.made {
		return err
	}
	if !plainPath.MatchString(r.opt.Dir) || guestPaths.MatchString(r.opt.Dir) {
		return fmt.Errorf("its directory %s can't be written into scripts as it is; use another one", r.opt.Dir)
	}
	return nil
}

//go:embed watchdog.sh
var watchdog string

// watch starts a process that removes the rig's directory, and with it all
// machines, should this process be killed. It hears that by its input's end.
func (r *Rig) watch() error {
	dog := exec.Command("/bin/sh", "-c", watchdog, r.opt.Dir)
	if _, err := dog.StdinPipe(); err != nil {
		return err
	}
	if err := dog.Start(); err != nil {
		return err
	}
	r.stop = append(r.stop, func() {
		_ = dog.Process.Kill()
		_ = dog.Wait()
	})
	return nil
}

// Close ends and removes all machines and everything else. The error names
// what is not proven gone, now or since the start.
func (r *Rig) Close() error {
	r.mu.Lock()
	r.closing = true
	ids := slices.Collect(maps.Keys(r.guests))
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() { r.Remove(id) })
	}
	all.Wait()
	for _, stop := range slices.Backward(r.stop) {
		stop()
	}
	r.stop = nil
	if r.made {
		r.fail(os.RemoveAll(r.opt.Dir))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.failed...)
}

func (r *Rig) fail(err error) {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = append(r.failed, err)
	}
}

// SSHPort is where the machines listen for ssh, on every address.
func (r *Rig) SSHPort() int { return r.keeper.Addr().(*net.TCPAddr).Port }

// address is number n of the machines' addresses, with the port.
func (r *Rig) address(n int) string {
	return fmt.Sprintf("127.%d.%d.%d:%d", r.net, n>>8, n&0xff, r.SSHPort())
}

// newAddress is one that no machine has had.
func (r *Rig) newAddress() string {
	r.given++
	if last := r.given & 0xff; last == 0 || last == 255 {
		return r.newAddress()
	}
	return r.address(r.given)
}

// Boot starts the machine of an instance and returns when its addresses are
// known; ssh answers a little later, as everywhere.
func (r *Rig) Boot(i *fakeaws.Instance) (*fakeaws.Machine, error) {
	r.mu.Lock()
	if r.closing {
		r.mu.Unlock()
		return nil, errors.New("the rig is closed")
	}
	g := r.guests[i.ID]
	if g == nil {
		g = newGuest(r, i.ID, r.newAddress())
		r.guests[i.ID] = g
	}
	public := r.newAddress()
	r.mu.Unlock()
	return g.start(*i, public)
}

// Halt switches a machine off and returns when it has ended. Its disk is
// removed unless it is kept.
func (r *Rig) Halt(id string, keepDisk bool) {
	if g := r.find(id); g != nil {
		r.fail(g.halt(context.Background(), keepDisk))
	}
}

// Remove forgets a machine, and ends it first if need be.
func (r *Rig) Remove(id string) {
	r.Halt(id, false)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.guests, id)
}

func (r *Rig) find(id string) *guest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guests[id]
}

// Intercept gives every connection to a machine's ssh port that is made from
// now on to f instead of the machine; nil: to the machine again. An empty id
// is every machine that has no plan of its own.
func (r *Rig) Intercept(id string, f func(net.Conn)) {
	r.replan(id, func(p *plan) { p.intercept = f })
}

// Dial connects to the ssh server of a machine as if nobody were in the
// middle. It is for who is.
func (r *Rig) Dial(id string) (net.Conn, error) {
	g := r.find(id)
	if g == nil {
		return nil, fmt.Errorf("there is no machine of %s", id)
	}
	g.mu.Lock()
	node := g.inside
	g.mu.Unlock()
	return net.Dial("tcp", node)
}

// AnswerAfter lets a machine that is started from now on refuse connections
// for that long. An empty id is every machine that has no plan of its own.
func (r *Rig) AnswerAfter(id string, d time.Duration) {
	r.replan(id, func(p *plan) { p.delay = d })
}

func (r *Rig) replan(id string, change func(*plan)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.planLocked(id)
	change(&p)
	r.plans[id] = p
}

func (r *Rig) planFor(id string) plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.planLocked(id)
}

func (r *Rig) planLocked(id string) plan {
	if p, own := r.plans[id]; own {
		return p
	}
	return r.plans[""]
}

// Cut cuts all connections to a machine. New ones are taken.
func (r *Rig) Cut(id string) {
	if g := r.find(id); g != nil {
		g.cut()
	}
}

// Answering is since when a machine's ssh port takes connections; zero while
// it doesn't.
func (r *Rig) Answering(id string) time.Time {
	g := r.find(id)
	if g == nil {
		return time.Time{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answering
}

// Console is what a machine's boot and its services have said, also after its
// end.
func (r *Rig) Console(id string) string {
	if text, err := os.ReadFile(filepath.Join(r.Dir(id), "console")); err == nil {
		return string(text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.consoles[id]
}

// keepConsole remembers the console of a machine whose files are about to go.
func (r *Rig) keepConsole(id string) {
	text := r.Console(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consoles[id] = text
}

// Dir is the directory that stands for a machine's file system: "lib" is its
// /var/lib/dlwb, "ssh" its /etc/ssh.
func (r *Rig) Dir(id string) string { return filepath.Join(r.opt.Dir, "guests", id) }
