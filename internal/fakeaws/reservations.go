package fakeaws

import (
	"slices"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

type reservationXMLOfCapacity struct {
	ID    string `xml:"capacityReservationId"`
	Type  string `xml:"instanceType"`
	Zone  string `xml:"availabilityZone"`
	Total int    `xml:"totalInstanceCount"`
	Left  int    `xml:"availableInstanceCount"`
	State string `xml:"state"`
	Kind  string `xml:"reservationType"`
	Match string `xml:"instanceMatchCriteria"`
	Start string `xml:"startDate"`
	End   string `xml:"endDate,omitempty"`
}

// reservation is the capacity reservation of an id.
func (r *region) reservation(id string) (Reservation, bool) {
	i := slices.IndexFunc(r.Reservations, func(v Reservation) bool { return v.ID == id })
	if i < 0 {
		return Reservation{}, false
	}
	return r.Reservations[i], true
}

// left is how many more instances a reservation has room for.
func (r *region) left(v Reservation) int {
	return v.Count - r.alike(func(i instance) bool { return i.Reserved == v.ID })
}

func describeCapacityReservations(q *request) (any, error) {
	r, ids := q.region, q.list("CapacityReservationId")
	for _, id := range ids {
		if _, ok := r.reservation(id); !ok {
			return nil, bad("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
		}
	}
	var found []reservationXMLOfCapacity
	for _, v := range r.Reservations {
		x := reservationXMLOfCapacity{v.ID, v.Type, r.Name + v.Zone, v.Count, r.left(v), "active", "default", "targeted", wire.Time(q.s.clock.Now()), ""}
		if v.Block {
			x.Kind, x.End = "capacity-block", wire.Time(q.s.clock.Now().Add(blockLasts))
		}
		if v.Waits {
			x.State, x.Start = "scheduled", wire.Time(q.s.clock.Now().Add(blockLasts))
		}
		if among(v.ID, ids) {
			found = append(found, x)
		}
	}
	return struct {
		Reservations wire.Set[reservationXMLOfCapacity] `xml:"capacityReservationSet"`
	}{wire.SetOf(found)}, nil
}

// orderReserved checks the reservation that is asked for.
func (q *request) orderReserved(o *order) error {
	o.reserved = q.str("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId")
	if o.reserved == "" {
		if o.block {
			return bad("InvalidParameterCombination", "A capacity block needs a capacity reservation target.")
		}
		return nil
	}
	v, ok := q.region.reservation(o.reserved)
	switch {
	case !ok:
		return bad("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", o.reserved)
	case v.Block != o.block:
		return bad("InvalidParameterValue", "The market type does not match the capacity reservation %s.", v.ID)
	case v.Type != o.kind.Name || o.zone != "" && o.zone != q.region.Name+v.Zone:
		return bad("InvalidParameterValue", "The instance type or the availability zone does not match the capacity reservation %s.", v.ID)
	case v.Waits:
		return bad("InvalidCapacityReservationState", "The capacity reservation %s is not active.", v.ID)
	}
	return nil
}

// reservedRoom is how many of an order the reservation has room for.
func (q *request) reservedRoom(o *order) (int, error) {
	v, _ := q.region.reservation(o.reserved)
	if n := min(o.max, q.region.left(v)); n >= o.min {
		return n, nil
	}
	return 0, bad("ReservationCapacityExceeded", "The requested capacity exceeds the capacity of the reservation %s.", v.ID)
}
