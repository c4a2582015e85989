package fakeaws

import (
	"fmt"
	"slices"
	"time"
)

// instance is the record of one instance. Where it stands follows from what it
// was last told, from the clock, and from its machine.
type instance struct {
	common
	Reservation, ClientToken          string
	Zone, Subnet, Image, Type, Arch   string
	Root                              string // device name
	Key, Profile, Placement           string
	Spot                              string // id of the request; empty: on demand
	OneTime                           bool
	Groups                            []string
	Index                             int
	PrivateIP, IPv6                   string
	Metadata6                         string // IMDS by IPv6: "enabled" or "disabled"
	Launched                          time.Time
	Behaviour                         string // on the guest's own shutdown: "stop" or "terminate"
	UserData                          string // base64
	Tokens                            string // IMDS: "required" or "optional"
	Hops                              int
	EbsOptimized, Monitoring, Protect bool
	Boots                             int

	Want       string    // running, stopped or terminated
	Since      time.Time // when it was told so
	Until      time.Time // before that it is on its way
	Code       string    // of the StateReason: "Client.UserInitiatedShutdown"
	Why        string    // its message
	Transition string    // StateTransitionReason

	Price    float64 // per hour
	Reserved string  // the capacity reservation that it uses; empty: none
	m        *machine
}

func (i instance) labelled(t tags) instance { i.Tags = t; return i }

// The states of an instance.
const (
	pending      = "pending"
	running      = "running"
	shuttingDown = "shutting-down"
	terminated   = "terminated"
	stopping     = "stopping"
	stopped      = "stopped"
)

// stateCode is AWS's number of a state.
var stateCode = map[string]int{pending: 0, running: 16, shuttingDown: 32, terminated: 48, stopping: 64, stopped: 80}

// state is where the instance stands at a time.
func (i instance) state(now time.Time) string {
	arrived := !now.Before(i.Until)
	switch {
	case i.Want == running && arrived && i.m.up:
		return running
	case i.Want == running:
		return pending
	case i.Want == stopped && arrived && i.m.idle():
		return stopped
	case i.Want == stopped:
		return stopping
	case arrived && i.m.idle():
		return terminated
	}
	return shuttingDown
}

// alive reports whether it takes capacity and quota.
func (i instance) alive(now time.Time) bool {
	s := i.state(now)
	return s == pending || s == running || s == stopping
}

// endedAt is when it was terminated, if it is.
func (i instance) endedAt() time.Time {
	if i.m.downAt.After(i.Until) {
		return i.m.downAt
	}
	return i.Until
}

// machine is what an instance runs on; the server's lock guards it.
type machine struct {
	up       bool // booted; it stays so, for those who see the past, until the next boot
	halting  int  // orders to end that the Booter has not carried out
	downAt   time.Time
	publicIP string
	last     chan struct{} // closed when the order given last is carried out
	runs     []span
	none     bool // it was planted: the Booter knows nothing of it
}

// span is a time that is paid for; a zero to: it goes on.
type span struct{ from, to time.Time }

func (m *machine) idle() bool { return m.halting == 0 }

// order gives the Booter something to do, after what it was given before.
func (s *Server) order(m *machine, do func()) {
	if s.opt.Boot == nil || m.none {
		return
	}
	before, done := m.last, make(chan struct{})
	m.last = done
	s.spawn(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		do()
	})
}

// spawn runs something that Close waits for; the lock is held. A closed server
// begins nothing any more.
func (s *Server) spawn(do func()) {
	select {
	case <-s.done:
	default:
		s.wg.Go(do)
	}
}

// orderEnd is order for what an instance has to wait for before it has ended.
func (s *Server) orderEnd(m *machine, do func()) {
	m.halting++
	ended := func() {
		m.halting--
		m.downAt = s.clock.Now()
	}
	if s.opt.Boot == nil || m.none {
		ended()
		return
	}
	s.order(m, func() {
		do()
		s.mu.Lock()
		defer s.mu.Unlock()
		ended()
	})
}

// boot starts an instance's machine; the lock is held.
func (r *region) boot(i instance) {
	m, now := i.m, r.s.clock.Now()
	m.runs = append(m.runs, span{from: now})
	if r.s.opt.Boot == nil || m.none {
		m.up, m.publicIP = true, r.s.publicIP()
		return
	}
	m.up, m.publicIP = false, ""
	told := r.told(i)
	r.s.order(m, func() { r.start(told, m) })
}

// start is the Booter's part; no lock is held.
func (r *region) start(told *Instance, m *machine) {
	s := r.s
	s.mu.Lock()
	i, ok := r.instances.get(told.ID)
	wanted := ok && i.Want == running
	s.mu.Unlock()
	if !wanted {
		return
	}
	started, err := s.opt.Boot.Boot(told)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok = r.instances.get(told.ID)
	if !ok {
		return
	}
	if err != nil {
		s.happen(func() {
			r.end(i, "Server.InternalError", "Server.InternalError: Internal error on launch", "Server.InternalError")
		})
		return
	}
	m.publicIP = started.PublicIP
	orElse(&m.publicIP, s.publicIP())
	if started.PrivateIP != "" {
		i.PrivateIP = started.PrivateIP
		r.instances.plant(i)
	}
	if i.IPv6 != "" && started.PublicIP != "" { // the machine is one of this machine's IPv4 addresses, written as one of IPv6
		i.IPv6 = "::ffff:" + started.PublicIP
		r.instances.plant(i)
	}
	m.up = true
}

// happen carries out what comes from no call; the lock is held.
func (s *Server) happen(what func()) {
	s.undo, s.after = nil, nil
	what()
	for _, f := range s.after {
		f()
	}
	s.undo, s.after = nil, nil
}

// told is what the Booter learns.
func (r *region) told(i instance) *Instance {
	id := i.ID
	out := &Instance{ID: id, Region: r.Name, Zone: i.Zone, Type: i.Type, Image: i.Image, Index: i.Index,
		KeyName: i.Key, UserData: fromBase64(i.UserData), Tags: i.Tags.with(nil), PrivateIP: i.PrivateIP,
		Spot: i.Spot != "", Boots: i.Boots, PowerOff: func() { r.s.GuestShutdown(id) }}
	if k, ok := r.keyNamed(i.Key); ok {
		out.PublicKey = k.Public
	}
	return out
}

// halt switches a machine off; the lock is held.
func (r *region) halt(i instance, keep bool) {
	m, now := i.m, r.s.clock.Now()
	if n := len(m.runs); n > 0 && m.runs[n-1].to.IsZero() {
		m.runs[n-1].to = now
	}
	boot := r.s.opt.Boot
	r.s.orderEnd(m, func() {
		boot.Halt(i.ID, keep)
		if !keep {
			boot.Remove(i.ID)
		}
	})
}

// change puts an instance on its way to a state; the lock is held.
func (r *region) change(i instance, want, code, why, transition string) {
	now := r.s.clock.Now()
	i.Want, i.Since, i.Until = want, now, now.Add(r.s.opt.ShuttingDown)
	i.Code, i.Why, i.Transition = code, why, transition
	r.instances.put(i)
}

// end terminates an instance.
func (r *region) end(i instance, code, why, transition string) {
	if i.Want == terminated {
		return
	}
	wasStopped := i.Want == stopped
	r.change(i, terminated, code, why, transition)
	if wasStopped {
		r.s.after = append(r.s.after, func() { r.discard(i) })
		return
	}
	r.s.after = append(r.s.after, func() { r.halt(i, false) })
}

// discard forgets the machine of a stopped instance.
func (r *region) discard(i instance) {
	r.s.orderEnd(i.m, func() { r.s.opt.Boot.Remove(i.ID) })
}

// rest stops an instance.
func (r *region) rest(i instance, code, why, transition string) {
	if i.Want != running {
		return
	}
	r.change(i, stopped, code, why, transition)
	r.s.after = append(r.s.after, func() { r.halt(i, true) })
}

// userInitiated is the reason of a state that a call led to.
func (r *region) userInitiated() string {
	return fmt.Sprintf("User initiated (%s GMT)", r.s.clock.Now().UTC().Format("2006-01-02 15:04:05"))
}

// alike counts the living instances that fit.
func (r *region) alike(fit func(instance) bool) int {
	now, n := r.s.clock.Now(), 0
	for _, i := range r.instances.all() {
		if i.alive(now) && fit(i) {
			n++
		}
	}
	return n
}

// removeMachines ends all machines; the lock is held.
func (s *Server) removeMachines() {
	if s.opt.Boot == nil {
		return
	}
	for _, r := range s.regions {
		for _, i := range r.instances.all() {
			switch i.Want {
			case running:
				r.halt(i, false)
			case stopped:
				r.discard(i)
			}
		}
	}
}

// spent is the cost of an instance until now.
func (i instance) spent(now time.Time) float64 {
	var hours float64
	for _, run := range i.m.runs {
		to := run.to
		if to.IsZero() {
			to = now
		}
		hours += to.Sub(run.from).Hours()
	}
	return hours * i.Price
}

// holds reports whether an instance needs a group: until some time after its
// end.
func (i instance) holds(group string, now time.Time, release time.Duration) bool {
	if !slices.Contains(i.Groups, group) {
		return false
	}
	return i.state(now) != terminated || now.Before(i.endedAt().Add(release))
}
