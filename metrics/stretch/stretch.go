// Package stretch keeps of a stretch of points those that say most: the least and the greatest value,
// records, the first value that is no number, and the newest.
package stretch

// Point is what has a value.
type Point interface{ Y() float64 }

// Window is the newest stretch of a series that is thinned.
type Window[P Point] struct {
	Count int // points that it has had
	Kept  []Judged[P]
	Stays int // points at the end of the series that are the window's
}

// Judged is a point of a window; a record was the least or the greatest of the
// series when it came.
type Judged[P Point] struct {
	P      P
	Record bool
}

// Add takes a point, and drops those that say nothing beside it.
func (w *Window[P]) Add(p P, record bool) {
	w.Kept = append(w.Kept, Judged[P]{p, record})
	w.Count++
	w.Prune(true)
}

// Prune leaves the least and the greatest value, records, the first value that
// is no number and, where the newest counts too, that.
func (w *Window[P]) Prune(newest bool) {
	least, most, odd := -1, -1, -1
	for i, p := range w.Kept {
		y := p.P.Y()
		switch {
		case y-y != 0:
			if odd < 0 {
				odd = i
			}
			continue
		case least < 0:
			least, most = i, i
		}
		if y < w.Kept[least].P.Y() {
			least = i
		}
		if y > w.Kept[most].P.Y() {
			most = i
		}
	}
	kept := w.Kept[:0]
	for i, p := range w.Kept {
		if i == least || i == most || i == odd || p.Record || newest && i == len(w.Kept)-1 {
			kept = append(kept, p)
		}
	}
	w.Kept = kept
}
