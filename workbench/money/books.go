package money

import (
	"sync"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
)

// Books are the accounts of lives of clusters. What was folded is kept, so that a list
// that is drawn each second reads only what is new. It is safe for use by several.
type Books struct {
	read  func(life, after int64) ([]event.Event, error)
	mu    sync.Mutex
	lives map[int64]*page
}

// page is how far the events of a life were folded.
type page struct {
	seq     int64
	account Account
	// checkpoint is the newest of the run that told of one last.
	checkpoint event.Checkpoint
}

// NewBooks makes books; read gives the events of a life behind a number.
func NewBooks(read func(life, after int64) ([]event.Event, error)) *Books {
	return &Books{read: read, lives: map[int64]*page{}}
}

// Of is the account of a life as it stands now.
func (b *Books) Of(life int64) (Account, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.lives[life]
	if p == nil {
		p = &page{}
		b.lives[life] = p
	}
	events, err := b.read(life, p.seq)
	if err != nil {
		return Account{}, err
	}
	for _, e := range events {
		p.seq = e.Seq
		p.account.Apply(e)
		p.checkpoint.Apply(e)
	}
	return p.account.Clone(), nil
}

// Counted is a receipt of a life with what its machines have cost, which a provider that
// could not be asked does not know.
func (b *Books) Counted(life int64, now time.Time, r event.ReceiptMade) event.ReceiptMade {
	if a, err := b.Of(life); err == nil {
		r.Cost = a.Owed(r, now)
	}
	return r
}

// Checkpoint is the newest one of a run, as Of has folded it; nil: none is known.
func (b *Books) Checkpoint(life int64, run string, now time.Time) *event.Checkpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.lives[life]
	if p == nil {
		return nil
	}
	return p.checkpoint.At(now, run)
}
