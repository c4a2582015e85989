package fakeaws

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// instancesBy finds the instances of ids as a caller sees them; all or an error.
func (q *request) instancesBy(ids []string) ([]instance, error) {
	var out []instance
	var missing []string
	for _, id := range ids {
		if !wire.WellFormedID("i", id) {
			return nil, bad("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		i, ok := q.region.instances.look(id)
		if !ok || q.region.forgotten(i, q.s.clock.Now()) {
			missing = append(missing, id)
		}
		out = append(out, i)
	}
	switch len(missing) {
	case 0:
		return out, nil
	case 1:
		return nil, bad("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	}
	return nil, bad("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(missing, ", "))
}

// instancesAsked are those that a list call is about: by id and filter, in
// order, one page of them.
func (q *request) instancesAsked(most int, keep func(instance) bool) ([]instance, string, error) {
	ids, now := q.list("InstanceId"), q.s.clock.Now()
	if len(ids) > 0 && q.has("MaxResults") {
		return nil, "", bad("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	all := q.region.instances.listed()
	if len(ids) > 0 {
		var err error
		if all, err = q.instancesBy(ids); err != nil {
			return nil, "", err
		}
		slices.SortFunc(all, func(a, b instance) int {
			return cmp.Compare(q.region.instances.order(a), q.region.instances.order(b))
		})
	}
	var out []instance
	for _, i := range all {
		ok, err := q.passes(i.Tags, q.region.instanceFields(i))
		if err != nil {
			return nil, "", err
		}
		if ok && keep(i) && !q.region.forgotten(i, now) {
			out = append(out, i)
		}
	}
	if len(ids) > 0 { // which AWS answers whole
		return out, "", nil
	}
	return page(q, out, most, func(i instance) string { return sortable(q.region.instances.order(i)) })
}

func (r *region) instanceFields(i instance) fields {
	x := r.instanceXML(i)
	return fields{"instance-id": one(i.ID), "instance-state-name": one(x.State.Name), "instance-state-code": one(strconv.Itoa(x.State.Code)),
		"instance-type": one(i.Type), "availability-zone": one(i.Zone), "client-token": one(i.ClientToken), "key-name": one(i.Key),
		"image-id": one(i.Image), "vpc-id": one(x.VPC), "subnet-id": one(x.Subnet), "reservation-id": one(i.Reservation),
		"spot-instance-request-id": one(i.Spot), "instance-lifecycle": one(x.Lifecycle), "placement-group-name": one(i.Placement),
		"instance.group-id": i.Groups, "private-ip-address": one(x.PrivateIP), "ip-address": one(x.PublicIP),
		"owner-id": one(r.s.opt.Account), "architecture": one(i.Arch), "state-reason-code": one(i.Code), "launch-time": one(wire.Time(i.Launched))}
}

func describeInstances(q *request) (any, error) {
	found, next, err := q.instancesAsked(1000, func(instance) bool { return true })
	if err != nil {
		return nil, err
	}
	var out []reservationXML
	for _, i := range found {
		at := slices.IndexFunc(out, func(r reservationXML) bool { return r.ID == i.Reservation })
		if at < 0 {
			out = append(out, reservationXML{ID: i.Reservation, Owner: q.s.opt.Account})
			at = len(out) - 1
		}
		out[at].Instances.Items = append(out[at].Instances.Items, q.region.instanceXML(i))
	}
	return struct {
		Reservations wire.Set[reservationXML] `xml:"reservationSet"`
		listing
	}{wire.SetOf(out), listing{next}}, nil
}

type statusXML struct {
	ID       string   `xml:"instanceId"`
	Zone     string   `xml:"availabilityZone"`
	State    stateXML `xml:"instanceState"`
	System   checkXML `xml:"systemStatus"`
	Instance checkXML `xml:"instanceStatus"`
}

type checkXML struct {
	Status  string          `xml:"status"`
	Details wire.Set[check] `xml:"details"`
}

type check struct {
	Name   string `xml:"name"`
	Status string `xml:"status"`
}

func describeInstanceStatus(q *request) (any, error) {
	now := q.s.clock.Now()
	found, next, err := q.instancesAsked(1000, func(i instance) bool {
		return i.state(now) == running || q.is("IncludeAllInstances")
	})
	if err != nil {
		return nil, err
	}
	return struct {
		Statuses wire.Set[statusXML] `xml:"instanceStatusSet"`
		listing
	}{wire.SetOf(each(found, func(i instance) statusXML {
		status, reach := "not-applicable", "insufficient-data"
		if i.state(now) == running {
			if status, reach = "initializing", "initializing"; now.After(i.Until.Add(q.s.opt.StatusChecks)) {
				status, reach = "ok", "passed"
			}
		}
		c := checkXML{status, wire.SetOf([]check{{"reachability", reach}})}
		return statusXML{i.ID, i.Zone, i.stateXML(now), c, c}
	})), listing{next}}, nil
}

type changeXML struct {
	ID       string   `xml:"instanceId"`
	Current  stateXML `xml:"currentState"`
	Previous stateXML `xml:"previousState"`
}

// changing does something to each instance of the call: all of them, or none.
func (q *request) changing(do func(instance) error) (any, error) {
	ids := q.list("InstanceId")
	if len(ids) == 0 {
		return nil, bad("MissingParameter", "The request must contain the parameter InstanceId")
	}
	if _, err := q.instancesBy(ids); err != nil {
		return nil, err
	}
	var out []changeXML
	for _, id := range ids {
		i, now := q.truth(id), q.s.clock.Now()
		before := i.stateXML(now)
		if err := do(i); err != nil {
			return nil, err
		}
		out = append(out, changeXML{id, q.truth(id).stateXML(q.s.clock.Now()), before})
	}
	return struct {
		Changes wire.Set[changeXML] `xml:"instancesSet"`
	}{wire.SetOf(out)}, nil
}

// truth is an instance that is known to be there.
func (q *request) truth(id string) instance {
	i, _ := q.region.instances.get(id)
	return i
}

const byUser = "Client.UserInitiatedShutdown"

func terminateInstances(q *request) (any, error) {
	return q.changing(func(i instance) error {
		if i.Protect {
			return bad("OperationNotPermitted", "The instance '%s' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.", i.ID)
		}
		q.region.end(i, byUser, byUser+": User initiated shutdown", q.region.userInitiated())
		return nil
	})
}

func stopInstances(q *request) (any, error) {
	return q.changing(func(i instance) error {
		switch state := i.state(q.s.clock.Now()); {
		case i.OneTime:
			return bad("UnsupportedOperation", "You can't stop the Spot Instance '%s' because it is associated with a one-time Spot Instance request. "+
				"You can only stop Spot Instances associated with persistent Spot Instance requests.", i.ID)
		case i.Want == stopped:
			return nil
		case state != running:
			return bad("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be stopped.", i.ID)
		}
		q.region.rest(i, byUser, byUser+": User initiated shutdown", q.region.userInitiated())
		return nil
	})
}

func startInstances(q *request) (any, error) {
	return q.changing(func(i instance) error {
		r, now := q.region, q.s.clock.Now()
		switch state := i.state(now); {
		case i.Want == running:
			return nil
		case state != stopped:
			return bad("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be started.", i.ID)
		}
		t := q.s.byName[i.Type]
		if r.room(t, i.Zone, i.Spot != "") < 1 {
			return bad("InsufficientInstanceCapacity", "Insufficient capacity.")
		}
		if code := t.QuotaCode(i.Spot != ""); float64(r.used(code)+t.VCPUs) > r.quota(code) {
			return bad("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %.0f allows.", r.quota(code))
		}
		i.Boots++
		i.Want, i.Since, i.Until, i.Launched = running, now, now.Add(q.s.opt.Pending), now
		i.Code, i.Why, i.Transition = "pending", "pending", ""
		r.instances.put(i)
		q.s.after = append(q.s.after, func() { r.boot(i) })
		return nil
	})
}

func rebootInstances(q *request) (any, error) {
	if _, err := q.instancesBy(q.list("InstanceId")); err != nil {
		return nil, err
	}
	return done{true}, nil
}

type attribute struct {
	Value string `xml:"value"`
}

// describeInstanceAttribute answers one attribute, as AWS does.
func describeInstanceAttribute(q *request) (any, error) {
	found, err := q.instancesBy([]string{q.str("InstanceId")})
	if err != nil {
		return nil, err
	}
	type reply struct {
		ID        string     `xml:"instanceId"`
		Behaviour *attribute `xml:"instanceInitiatedShutdownBehavior"`
		UserData  *attribute `xml:"userData"`
		Protect   *attribute `xml:"disableApiTermination"`
		Type      *attribute `xml:"instanceType"`
		Root      *attribute `xml:"rootDeviceName"`
	}
	i := found[0]
	out := reply{ID: i.ID}
	switch name := q.str("Attribute"); name {
	case "instanceInitiatedShutdownBehavior":
		out.Behaviour = &attribute{i.Behaviour}
	case "userData":
		out.UserData = &attribute{i.UserData}
	case "disableApiTermination":
		out.Protect = &attribute{strconv.FormatBool(i.Protect)}
	case "instanceType":
		out.Type = &attribute{i.Type}
	case "rootDeviceName":
		out.Root = &attribute{i.Root}
	default:
		return nil, bad("InvalidParameterValue", "Value (%s) for parameter attribute is invalid. Unknown attribute.", name)
	}
	return out, nil
}

func modifyInstanceAttribute(q *request) (any, error) {
	if _, err := q.instancesBy([]string{q.str("InstanceId")}); err != nil {
		return nil, err
	}
	i := q.truth(q.str("InstanceId"))
	value := func(old, name string) string { // both ways to say it
		if q.str("Attribute") == old {
			return q.str("Value")
		}
		return q.str(name + ".Value")
	}
	if v := value("instanceInitiatedShutdownBehavior", "InstanceInitiatedShutdownBehavior"); v != "" {
		if v != "stop" && v != "terminate" {
			return nil, bad("InvalidParameterValue", "Value (%s) for parameter value is invalid.", v)
		}
		i.Behaviour = v
	}
	if v := value("disableApiTermination", "DisableApiTermination"); v != "" {
		i.Protect = v == "true"
	}
	if v := value("userData", "UserData"); v != "" {
		if i.state(q.s.clock.Now()) != stopped {
			return nil, bad("IncorrectInstanceState", "The instance '%s' is not in the 'stopped' state.", i.ID)
		}
		i.UserData = v
	}
	if groups := q.list("GroupId"); len(groups) > 0 {
		for _, id := range groups {
			if _, ok := q.region.groups.usable(id); !ok {
				return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
			}
		}
		i.Groups = groups
	}
	q.region.instances.put(i)
	return done{true}, nil
}

// getConsoleOutput has something to say some time after the start.
func getConsoleOutput(q *request) (any, error) {
	found, err := q.instancesBy([]string{q.str("InstanceId")})
	if err != nil {
		return nil, err
	}
	i, now, text := found[0], q.s.clock.Now(), ""
	if late := i.Launched.Add(3 * q.s.opt.Pending); now.After(late) {
		said := fmt.Sprintf("[    0.000000] Linux version 6.17.0-aws\ncloud-init: %s boot %d\n", i.ID, i.Boots)
		if c, has := q.s.opt.Boot.(Consoler); has {
			said += c.Console(i.ID)
		}
		text = base64.StdEncoding.EncodeToString([]byte(said))
	}
	return struct {
		ID     string `xml:"instanceId"`
		At     string `xml:"timestamp"`
		Output string `xml:"output"`
	}{i.ID, wire.Time(now), text}, nil
}

func (i instance) stateXML(now time.Time) stateXML {
	s := i.state(now)
	return stateXML{stateCode[s], s}
}
