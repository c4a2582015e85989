package session

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// Forward is an open tunnel and how it stands.
type Forward struct {
	event.ForwardOpened
	Away bool   // its node is not reached, and dialed again and again
	Why  string // what failed last
}

// is reports whether an event is about this tunnel.
func (f Forward) is(kind string, local, remote int) bool {
	reverse := kind == event.ForwardReverse
	if reverse != (f.Kind == event.ForwardReverse) {
		return false
	}
	if reverse {
		return f.RemotePort == remote
	}
	return f.LocalPort == local
}

// openForward keeps a tunnel in its place when it only has a fresh address.
func (s *State) openForward(b event.ForwardOpened) {
	b.URL, b.Entry = text.Word(b.URL), text.Word(b.Entry)
	if i := s.forwardAt(b.Kind, b.LocalPort, b.RemotePort); i >= 0 {
		s.Forwards = slices.Clone(s.Forwards)
		if had := s.Forwards[i]; b.Entry == "" && had.URL == b.URL {
			b.Entry = had.Entry
		}
		s.Forwards[i].ForwardOpened = b
		return
	}
	s.Forwards = append(s.Forwards, Forward{ForwardOpened: b})
}

// ShowEntry shows the whole address of a tunnel that no browser was opened for,
// and says which tunnel that is.
func (s *State) ShowEntry(address string, at func(i int)) {
	for i, f := range s.Forwards {
		if f.URL != "" && (address == f.URL || strings.HasPrefix(address, f.URL+"?")) {
			s.Forwards = slices.Clone(s.Forwards)
			s.Forwards[i].Entry = address
			at(i)
		}
	}
}

func (s *State) changeForward(b event.ForwardChanged) {
	if i := s.forwardAt(b.Kind, b.LocalPort, b.RemotePort); i >= 0 {
		s.Forwards = slices.Clone(s.Forwards)
		s.Forwards[i].Away, s.Forwards[i].Why = !b.Connected, b.Why
	}
}

func (s *State) closeForward(b event.ForwardClosed) {
	if i := s.forwardAt(b.Kind, b.LocalPort, b.RemotePort); i >= 0 {
		s.Forwards = slices.Delete(slices.Clone(s.Forwards), i, i+1)
	}
}

func (s *State) forwardAt(kind string, local, remote int) int {
	return slices.IndexFunc(s.Forwards, func(f Forward) bool { return f.is(kind, local, remote) })
}
