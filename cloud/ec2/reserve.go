package ec2

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// reservation is one of capacity: of machines of one type in one zone.
type reservation struct {
	ID, Instance, Zone string
	Block              bool // a capacity block for ML, which is paid for already
	Left               int
	Ends               time.Time // zero: it has no end
}

// reservation finds the one that the spec names in a region; nil when it names
// none.
func (p *Provider) reservation(ctx context.Context, region string, spec cloud.Spec) (*reservation, error) {
	id := own(spec).Reservation
	if id == "" {
		return nil, nil
	}
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return nil, err
	}
	out, err := ec2.DescribeCapacityReservations(ctx, &awsec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}})
	if err != nil {
		return nil, awsapi.Explain(err, awsapi.Call{Action: "DescribeCapacityReservations", Region: region, ID: id})
	}
	if len(out.CapacityReservations) != 1 {
		return nil, fmt.Errorf("there is no capacity reservation %s in %s: aws ec2 describe-capacity-reservations --region %s", id, region, region)
	}
	r := out.CapacityReservations[0]
	found := &reservation{ID: id, Instance: aws.ToString(r.InstanceType), Zone: aws.ToString(r.AvailabilityZone),
		Block: r.ReservationType == types.CapacityReservationTypeCapacityBlock, Left: int(aws.ToInt32(r.AvailableInstanceCount)), Ends: aws.ToTime(r.EndDate)}
	return found, found.fits(r, spec)
}

// fits says why a reservation can't be used.
func (f *reservation) fits(r types.CapacityReservation, spec cloud.Spec) error {
	switch {
	case r.State == types.CapacityReservationStateScheduled || r.State == types.CapacityReservationStatePending:
		return fmt.Errorf("%s has not begun: it does at %s", f.ID, aws.ToTime(r.StartDate).UTC().Format("2006-01-02 15:04 UTC"))
	case r.State != types.CapacityReservationStateActive:
		return fmt.Errorf("%s is %s: nothing can be started in it", f.ID, r.State)
	case spec.Instance != "" && spec.Instance != f.Instance:
		return fmt.Errorf("%s is for %s, and machines.instance is %s", f.ID, f.Instance, spec.Instance)
	case spec.Spot:
		return fmt.Errorf("%s is a reservation, and spot machines use none: leave machines.spot out", f.ID)
	case f.Left < wanted(spec):
		return fmt.Errorf("%s has room for %d more machines, and %d are needed", f.ID, f.Left, wanted(spec))
	}
	return nil
}

// reserve puts a launch into the reservation. Machines of a capacity block need no
// placement group: they stand near each other anyway.
func (f *reservation) reserve(l *launch) {
	if f == nil {
		return
	}
	l.Reservation, l.Block = f.ID, f.Block
	if f.Block {
		l.Placement = ""
	}
}

// text is it for a person.
func (f *reservation) text() string {
	kind := "capacity reservation "
	if f.Block {
		kind = "capacity block "
	}
	text := fmt.Sprintf("%s%s: %s in %s, room for %d", kind, f.ID, f.Instance, f.Zone, f.Left)
	if f.Ends.IsZero() {
		return text
	}
	text += "; it ends at " + f.Ends.UTC().Format("2006-01-02 15:04 UTC")
	if f.Block {
		text += ", and AWS ends the machines from 30 minutes before that"
	}
	return text
}
