package cloud

import (
	"encoding/json"
	"time"
)

// Life is one life of a cluster: from the first intent to make something for
// it until everything is proven gone. A name may have many lives, one at a
// time.
type Life struct {
	Name string // of the cluster
	// ID is random and unique for all time, 12 characters of [0-9a-f]. It is
	// part of the name, the token and the tags of every resource.
	ID    string
	Began time.Time
	// Ends is when the lease of the machines ends them at the latest; zero
	// where they have none, or it is not known.
	Ends time.Time
	// Dir is a private directory (0700) of this life, for keys. It is made
	// and removed by the caller.
	Dir string
	// Ledger records paid resources; nil for providers that need none.
	Ledger Ledger
}

// Ledger is the durable record of the paid resources of one life. What a
// method has written is on the disk when it returns without an error, and an
// error means: do not go on.
type Ledger interface {
	// Intend commits that a resource is about to be made, before the call
	// that makes it. The token is unique for all time; where the call takes
	// a client token, it is that one. detail is the provider's own, enough
	// to send the very same call again and to look for what it made.
	Intend(kind, token string, detail any) error
	// Resolve records what the provider made of an intent: one id or, with
	// commas, several.
	Resolve(token, id string) error
	// Close records that what an intent made is gone, or was never made, and
	// how that is known.
	Close(token, proof string) error
	// Entries lists all of this life, oldest first, closed ones too.
	Entries() ([]Entry, error)
}

// Entry is one paid resource in the ledger.
type Entry struct {
	Kind       string // "security-group", "key-pair", "placement-group", "instances"
	Token      string
	Detail     json.RawMessage
	ID         string // empty: nobody knows what became of the intent
	IntentAt   time.Time
	ResolvedAt *time.Time
	ClosedAt   *time.Time // nil: it may still cost money
	Proof      string
}

// Open reports whether the resource may still exist.
func (e Entry) Open() bool { return e.ClosedAt == nil }
