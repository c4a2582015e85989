package fakeaws

import "time"

// Now is the virtual time.
func (s *Server) Now() time.Time { return s.clock.Now() }

// Advance moves the virtual clock forward at once.
func (s *Server) Advance(d time.Duration) { s.clock.Advance(d) }
