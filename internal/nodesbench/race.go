package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// racer is one way to do what a figure is about.
type racer struct {
	name string
	// missing says why it can't run here; empty: it can.
	missing string
	// ready is done before each round and not timed; may be nil.
	ready func() error
	// just is done right before run and not timed either; may be nil.
	just func() error
	run  func() error
	// least is the ratio to the time of the first racer that is asked for;
	// 0: none is.
	least float64
	// rounds is how often it runs at most; 0: as often as the others. For
	// what takes minutes.
	rounds int
}

// settle is how long the machine rests before each measurement: what the one
// before left behind on the nodes goes away.
const settle = 400 * time.Millisecond

// race lets the racers do the same in turn, round by round, so that what else
// the machine does meets all of them alike, and tells the medians in seconds,
// and the ratios of all to the first one.
func (b *bench) race(name string, racers ...racer) map[string]time.Duration {
	if !b.wants(name) {
		return nil
	}
	took, failed := map[string][]time.Duration{}, map[string]error{}
	for round := range b.rounds {
		for i := range racers {
			r := racers[(i+round)%len(racers)]
			if r.missing != "" || failed[r.name] != nil || b.ctx.Err() != nil || r.rounds > 0 && round >= r.rounds {
				continue
			}
			t, err := r.once()
			if err != nil {
				failed[r.name] = err
				fmt.Fprintf(os.Stderr, "nodesbench: %s/%s by %s: %v\n", b.group, name, r.name, err)
				continue
			}
			took[r.name] = append(took[r.name], t)
		}
	}
	medians := map[string]time.Duration{}
	for _, r := range racers {
		if t := took[r.name]; len(t) > 0 && failed[r.name] == nil {
			medians[r.name] = median(t)
			b.told(name+"."+r.name, medians[r.name].Seconds(), "s")
		}
	}
	for _, r := range racers[1:] {
		b.compare(name, racers[0], r, medians, failed)
	}
	return medians
}

func (r racer) once() (took time.Duration, err error) {
	if r.ready != nil {
		if err := r.ready(); err != nil {
			return 0, fmt.Errorf("get ready: %w", err)
		}
	}
	time.Sleep(settle)
	if r.just != nil {
		if err := r.just(); err != nil {
			return 0, fmt.Errorf("get ready: %w", err)
		}
	}
	began := time.Now()
	err = r.run()
	return time.Since(began), err
}

// compare tells how much longer r took than the first one.
func (b *bench) compare(name string, first, r racer, medians map[string]time.Duration, failed map[string]error) {
	name += "." + r.name + "/" + first.name
	f := figure{Name: name, Unit: "x", OK: true}
	if r.least > 0 {
		f.Target = "≥" + short(r.least)
	}
	for _, x := range []racer{first, r} {
		switch {
		case x.missing != "":
			f.Missing = x.missing
		case failed[x.name] != nil:
			f.Missing = x.name + ": " + failed[x.name].Error()
		}
	}
	if f.Missing == "" {
		f.Value = medians[r.name].Seconds() / medians[first.name].Seconds()
		f.OK = f.Value >= r.least
	}
	b.add(f)
}

func median[T ~int64 | ~float64](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return 0
	}
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
