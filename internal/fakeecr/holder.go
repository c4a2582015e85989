//go:build unix

package fakeecr

import (
	"slices"
	"sync"
)

// Holder is what a stand-in of several services has of an account: its repositories, and
// what its roles may not do. Tests change it while it is asked.
type Holder struct {
	mu      sync.Mutex
	refused []string
	ecr     *Fake
}

// Refuse has no role do what the actions name.
func (a *Holder) Refuse(actions ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = actions
}

// Refuses reports whether an action holds that no role may do.
func (a *Holder) Refuses(is func(action string) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.refused, is)
}

// RefusesTo reports whether no role may do an action.
func (a *Holder) RefusesTo(action string) bool {
	return a.Refuses(func(refused string) bool { return refused == action })
}

// SetECR gives the account repositories.
func (a *Holder) SetECR(e *Fake) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ecr = e
}

// ECR are the account's repositories; nil: it has none.
func (a *Holder) ECR() *Fake {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ecr
}
