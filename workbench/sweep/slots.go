package sweep

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
