package sweep

import "slices"

// Slots are the places for trials on nodes that have so many GPUs each. A trial of
// several nodes has all of theirs; one of a part of a node's GPUs (gpus, 0: all)
// shares the node. Neighbouring places are on different nodes.
func Slots(has []int, nodes, gpus int) (all []Slot) {
	if nodes > 1 {
		for first := 0; first+nodes <= len(has); first += nodes {
			slot := Slot{}
			for n := first; n < first+nodes; n++ {
				slot.Nodes = append(slot.Nodes, n)
			}
			all = append(all, slot)
		}
		return all
	}
	for round, more := 0, true; more; round++ {
		more = false
		for node, n := range has {
			switch {
			case gpus == 0 || n == 0 && round == 0:
				if round == 0 {
					all = append(all, Slot{Nodes: []int{node}})
				}
			case (round+1)*gpus <= n:
				slot := Slot{Nodes: []int{node}}
				for g := range gpus {
					slot.GPUs = append(slot.GPUs, round*gpus+g)
				}
				all, more = append(all, slot), true
			}
		}
	}
	return all
}

// room is what the trials that run have, by their numbers. Those of an earlier process
// may have other places than there are now.
type room map[int]Slot

// free finds a place that no trial has a part of, unless as many run as may at once;
// most 0: as many as there is room for.
func (r room) free(slots []Slot, most int) (Slot, bool) {
	if most > 0 && len(r) >= most {
		return Slot{}, false
	}
	for _, slot := range slots {
		taken := false
		for _, other := range r {
			taken = taken || slot.overlaps(other)
		}
		if !taken {
			return slot, true
		}
	}
	return Slot{}, false
}

// overlaps reports whether two places share a node, and there a GPU or the whole node.
func (s Slot) overlaps(other Slot) bool {
	return meet(s.Nodes, other.Nodes) && (s.GPUs == nil || other.GPUs == nil || meet(s.GPUs, other.GPUs))
}

func meet(a, b []int) bool {
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}
