package fakeaws

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// requestSpot makes the request that gets a spot instance.
func (q *request) requestSpot(o order, i instance) (id string, oneTime bool) {
	m, now := o.market, q.s.clock.Now()
	req := spotRequest{common: common{newSpotID(), o.tags["spot-instances-request"]}, Instance: i.ID, Zone: i.Zone, Type: i.Type, Image: i.Image,
		Price: m.str("MaxPrice"), Persistent: m.str("SpotInstanceType") == "persistent", State: "active", Status: "fulfilled",
		Message: "Your Spot request is fulfilled.", Made: now, Updated: now, Interruption: m.str("InstanceInterruptionBehavior")}
	orElse(&req.Price, strconv.FormatFloat(o.kind.PriceUSD, 'f', 6, 64))
	orElse(&req.Interruption, "terminate")
	q.region.spots.put(req)
	return req.ID, !req.Persistent
}

// newSpotID is shaped as AWS's: eight characters after "sir-".
func newSpotID() string { return fmt.Sprintf("sir-%x", wire.Random(4)) }

// mark notes what is said of a spot request.
func (r *region) mark(id, status, message string) {
	q, ok := r.spots.get(id)
	if !ok {
		return
	}
	q.Status, q.Message, q.Updated = status, message, r.s.clock.Now()
	r.spots.put(q)
}

// endRequest says what becomes of the request of an instance that has ended:
// one for one time is over, a persistent one waits for the next instance.
func (r *region) endRequest(i instance) {
	q, ok := r.spots.get(i.Spot)
	if !ok || !q.live() {
		return
	}
	q.Instance, q.State, q.Updated = "", "closed", r.s.clock.Now()
	q.Status, q.Message = "instance-terminated-by-user", "Your Spot Instance was terminated."
	if i.Code == "Server.SpotInstanceTermination" {
		q.Status = "instance-terminated-no-capacity"
	}
	if q.Persistent {
		q.State, q.Status, q.Message = "open", "pending-evaluation", "Your Spot request has been submitted for review."
	}
	r.spots.put(q)
}

type spotXML struct {
	ID           string           `xml:"spotInstanceRequestId"`
	Price        string           `xml:"spotPrice"`
	Type         string           `xml:"type"`
	State        string           `xml:"state"`
	Status       statusOfXML      `xml:"status"`
	Spec         specXML          `xml:"launchSpecification"`
	Instance     string           `xml:"instanceId,omitempty"`
	Made         string           `xml:"createTime"`
	Product      string           `xml:"productDescription"`
	Zone         string           `xml:"launchedAvailabilityZone,omitempty"`
	Tags         wire.Set[tagXML] `xml:"tagSet"`
	Interruption string           `xml:"instanceInterruptionBehavior"`
}

type statusOfXML struct {
	Code    string `xml:"code"`
	Updated string `xml:"updateTime"`
	Message string `xml:"message"`
}

type specXML struct {
	Image string `xml:"imageId"`
	Type  string `xml:"instanceType"`
}

func (q spotRequest) kind() string {
	if q.Persistent {
		return "persistent"
	}
	return "one-time"
}

func (q spotRequest) xml() spotXML {
	return spotXML{q.ID, q.Price, q.kind(), q.State, statusOfXML{q.Status, wire.Time(q.Updated), q.Message}, specXML{q.Image, q.Type},
		q.Instance, wire.Time(q.Made), "Linux/UNIX", q.Zone, q.Tags.xml(), q.Interruption}
}

func (q *request) spotsBy(ids []string) error {
	for _, id := range ids {
		if _, ok := q.region.spots.look(id); !ok {
			return bad("InvalidSpotInstanceRequestID.NotFound", "The spot instance request ID '%s' does not exist", id)
		}
	}
	return nil
}

func describeSpotInstanceRequests(q *request) (any, error) {
	ids := q.list("SpotInstanceRequestId")
	if err := q.spotsBy(ids); err != nil {
		return nil, err
	}
	var found []spotRequest
	for _, v := range q.region.spots.listed() {
		ok, err := q.passes(v.Tags, fields{"spot-instance-request-id": one(v.ID), "state": one(v.State), "instance-id": one(v.Instance),
			"status-code": one(v.Status), "type": one(v.kind()), "launched-availability-zone": one(v.Zone), "launch.instance-type": one(v.Type)})
		if err != nil {
			return nil, err
		}
		if ok && among(v.ID, ids) {
			found = append(found, v)
		}
	}
	found, next, err := page(q, found, 1000, func(v spotRequest) string { return sortable(q.region.spots.order(v)) })
	if err != nil {
		return nil, err
	}
	return struct {
		Requests wire.Set[spotXML] `xml:"spotInstanceRequestSet"`
		listing
	}{wire.SetOf(each(found, spotRequest.xml)), listing{next}}, nil
}

// cancelSpotInstanceRequests ends requests; their instances go on.
func cancelSpotInstanceRequests(q *request) (any, error) {
	ids := q.list("SpotInstanceRequestId")
	if err := q.spotsBy(ids); err != nil {
		return nil, err
	}
	type cancelled struct {
		ID    string `xml:"spotInstanceRequestId"`
		State string `xml:"state"`
	}
	var out []cancelled
	for _, id := range ids {
		v, _ := q.region.spots.get(id)
		if v.live() {
			v.Status, v.Message = "canceled-before-fulfillment", "Your Spot request is canceled."
			if v.State == "active" {
				v.Status = "request-canceled-and-instance-running"
			}
			v.State, v.Updated = "cancelled", q.s.clock.Now()
			q.region.spots.put(v)
		}
		out = append(out, cancelled{id, v.State})
	}
	return struct {
		Requests wire.Set[cancelled] `xml:"spotInstanceRequestSet"`
	}{wire.SetOf(out)}, nil
}

type priceXML struct {
	Type    string `xml:"instanceType"`
	Product string `xml:"productDescription"`
	Price   string `xml:"spotPrice"`
	At      string `xml:"timestamp"`
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	key     string
}

// describeSpotPriceHistory knows, for each type and zone, the price of now and
// one of six hours ago, which was higher.
func describeSpotPriceHistory(q *request) (any, error) {
	var found []priceXML
	now := q.s.clock.Now()
	start, _ := time.Parse(time.RFC3339, q.str("StartTime"))
	for _, t := range q.s.types {
		for _, sub := range q.region.subnets {
			if !q.region.offeredIn(t, sub.Zone) || !among(t.Name, q.list("InstanceType")) ||
				q.has("AvailabilityZone") && q.str("AvailabilityZone") != sub.Zone || t.PriceUSD == 0 || !slices.Contains(t.Usage, "spot") {
				continue
			}
			for back := range 2 {
				at := now.Add(-time.Hour * time.Duration(1+6*back))
				if back > 0 && !start.IsZero() && at.Before(start) {
					continue
				}
				price := math.Round(q.region.price(t, sub.Zone, true)*(1+0.1*float64(back))*1e6) / 1e6
				x := priceXML{t.Name, "Linux/UNIX", strconv.FormatFloat(price, 'f', 6, 64), wire.Time(at), sub.Zone, sub.ZoneID,
					fmt.Sprint(t.Name, " ", sub.Zone, " ", back)}
				ok, err := q.passes(nil, fields{"instance-type": one(x.Type), "availability-zone": one(x.Zone),
					"product-description": one(x.Product), "spot-price": one(x.Price), "timestamp": one(x.At)})
				if err != nil {
					return nil, err
				}
				if products := q.list("ProductDescription"); ok && (among(x.Product, products) || among(x.Product+" (Amazon VPC)", products)) {
					found = append(found, x)
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b priceXML) int { return strings.Compare(a.key, b.key) })
	found, next, err := page(q, found, 1000, func(x priceXML) string { return x.key })
	if err != nil {
		return nil, err
	}
	return struct {
		Prices wire.Set[priceXML] `xml:"spotPriceHistorySet"`
		listing
	}{wire.SetOf(found), listing{next}}, nil
}

type scoreXML struct {
	Region string `xml:"region"`
	ZoneID string `xml:"availabilityZoneId,omitempty"`
	Score  int    `xml:"score"`
}

// getSpotPlacementScores gives 9 to a zone with room and 1 to one without; of
// fewer than three types it thinks little, as AWS does.
func getSpotPlacementScores(q *request) (any, error) {
	var out []scoreXML
	for _, r := range q.s.regions {
		if !among(r.Name, q.list("RegionName")) || r.Disabled {
			continue
		}
		best := 1
		for _, sub := range r.subnets {
			score := 1
			for _, name := range q.list("InstanceType") {
				t, ok := q.s.byName[name]
				if ok && r.offeredIn(t, sub.Zone) && r.room(t, sub.Zone, true) >= q.num("TargetCapacity", 1) {
					score = 9
				}
			}
			if len(q.list("InstanceType")) < 3 {
				score = min(score, 3)
			}
			best = max(best, score)
			if q.is("SingleAvailabilityZone") {
				out = append(out, scoreXML{r.Name, sub.ZoneID, score})
			}
		}
		if !q.is("SingleAvailabilityZone") {
			out = append(out, scoreXML{r.Name, "", best})
		}
	}
	slices.SortFunc(out, func(a, b scoreXML) int { return strings.Compare(a.Region+a.ZoneID, b.Region+b.ZoneID) })
	out, next, err := page(q, out, 1000, func(x scoreXML) string { return x.Region + x.ZoneID })
	if err != nil {
		return nil, err
	}
	return struct {
		Scores wire.Set[scoreXML] `xml:"spotPlacementScoreSet"`
		listing
	}{wire.SetOf(out), listing{next}}, nil
}
