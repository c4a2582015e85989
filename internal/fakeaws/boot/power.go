package boot

import "path/filepath"

// powerFile is where a machine says that it powers itself off.
func (r *Rig) powerFile() string { return filepath.Join(r.opt.Dir, "power") }

// poweredOff passes a machine's own shutdown on to EC2.
func (r *Rig) poweredOff(id string) {
	g := r.find(id)
	if g == nil {
		return
	}
	g.mu.Lock()
	on, tell := g.end != nil, g.instance.PowerOff
	if on { // else its files are going, and one that comes then would stay
		g.say("powered off by itself")
	}
	g.mu.Unlock()
	if on && tell != nil {
		tell()
	}
}
