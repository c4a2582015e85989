package fakeaws

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/internal/fakeaws/machinetype"
	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// product is one thing of the price list.
type product struct {
	sku, family string
	attributes  map[string]string
	unit        string
	usd         float64
}

var locations = map[string]string{"us-east-1": "US East (N. Virginia)", "us-east-2": "US East (Ohio)", "us-west-2": "US West (Oregon)",
	"eu-central-1": "EU (Frankfurt)", "ap-east-1": "Asia Pacific (Hong Kong)"}

// lists are the price lists that were made, by the names of their regions: what
// costs what follows from those, and thousands of servers ask for the same.
var lists sync.Map

// products are what one has to look through to find the price of a Linux
// machine on demand: as in the real list there are others like it, some at 0.
func (s *Server) products() []product {
	key := strings.Join(each(s.regions, func(r *region) string { return r.Name }), " ")
	if list, ok := lists.Load(key); ok {
		return list.([]product)
	}
	var out []product
	for _, r := range s.regions {
		for _, t := range s.types {
			if t.PriceUSD > 0 && r.offered(t) {
				out = append(out, r.productsOf(t)...)
			}
		}
		out = append(out, product{sku("gp3", r.Name), "Storage", r.located(map[string]string{"volumeApiName": "gp3", "volumeType": "General Purpose",
			"usagetype": "EBS:VolumeUsage.gp3", "servicecode": "AmazonEC2"}), "GB-Mo", 0.08})
	}
	slices.SortFunc(out, func(a, b product) int { return strings.Compare(a.sku, b.sku) })
	lists.Store(key, out)
	return out
}

func (r *region) located(more map[string]string) map[string]string {
	where := locations[r.Name]
	orElse(&where, r.Name)
	return tags{"regionCode": r.Name, "location": where, "locationType": "AWS Region", "servicename": "Amazon Elastic Compute Cloud"}.with(more)
}

func (r *region) productsOf(t machinetype.Type) []product {
	variant := func(os, tenancy, status, software string, usd float64) product {
		family := "Compute Instance"
		if t.Metal() {
			family = "Compute Instance (bare metal)"
		}
		return product{sku(t.Name, r.Name, os, tenancy, status, software), family, r.located(map[string]string{
			"servicecode": "AmazonEC2", "instanceType": t.Name, "vcpu": fmt.Sprint(t.VCPUs), "memory": fmt.Sprintf("%d GiB", t.MemoryMiB/1024),
			"operatingSystem": os, "tenancy": tenancy, "capacitystatus": status, "preInstalledSw": software, "licenseModel": "No License required",
			"marketoption": "OnDemand", "operation": "RunInstances", "usagetype": "BoxUsage:" + t.Name, "currentGeneration": "Yes",
			"gpu": fmt.Sprint(t.Logical), "networkPerformance": t.Network, "instanceFamily": "GPU instance"}), "Hrs", usd}
	}
	p := r.price(t, r.zones()[0], false)
	return []product{
		variant("Linux", "Shared", "Used", "NA", p),
		variant("Linux", "Shared", "UnusedCapacityReservation", "NA", p),
		variant("Linux", "Shared", "AllocatedCapacityReservation", "NA", 0),
		variant("Linux", "Dedicated", "Used", "NA", p*1.1),
		variant("Linux", "Shared", "Used", "SQL Ent", p+1.5),
		variant("Windows", "Shared", "Used", "NA", p+0.184),
	}
}

func sku(parts ...string) string {
	return strings.ToUpper(strings.TrimPrefix(wire.FixedID("s", strings.Join(parts, "/")), "s-0"))
}

// json is the product as a string that is JSON.
func (p product) json() string {
	term := p.sku + ".JRTCKXETXF"
	rate := term + ".6YS6EN2CT7"
	dimension := map[string]any{"unit": p.unit, "endRange": "Inf", "beginRange": "0", "rateCode": rate, "appliesTo": []string{},
		"description":  fmt.Sprintf("$%g per On Demand %s %s", p.usd, p.attributes["operatingSystem"], p.attributes["instanceType"]),
		"pricePerUnit": map[string]string{"USD": fmt.Sprintf("%.10f", p.usd)}}
	terms := map[string]any{"OnDemand": map[string]any{term: map[string]any{"offerTermCode": "JRTCKXETXF", "sku": p.sku,
		"effectiveDate": "2026-10-01T00:00:00Z", "termAttributes": map[string]string{}, "priceDimensions": map[string]any{rate: dimension}}}}
	return string(wire.JSON(map[string]any{"serviceCode": "AmazonEC2", "version": "20261015183417", "publicationDate": "2026-10-15T18:34:17Z",
		"product": map[string]any{"productFamily": p.family, "sku": p.sku, "attributes": p.attributes}, "terms": terms}))
}

func (p product) field(name string) string {
	switch name {
	case "productFamily":
		return p.family
	case "sku":
		return p.sku
	}
	return p.attributes[name]
}

// pricesPage is the most products that are on one page.
const pricesPage = 100

func getProducts(q *request) (any, error) {
	if q.str("ServiceCode") != "AmazonEC2" {
		return nil, bad("NotFoundException", "The service code %s was not found", q.str("ServiceCode"))
	}
	var found []product
	filters := q.each("Filters")
	for _, p := range q.s.products() {
		if !slices.ContainsFunc(filters, func(f params) bool { return !p.matches(f) }) {
			found = append(found, p)
		}
	}
	found, next, err := page(q, found, pricesPage, func(p product) string { return p.sku })
	if err != nil {
		return nil, err
	}
	return struct {
		FormatVersion string
		PriceList     []string
		NextToken     string `json:",omitempty"`
	}{"aws_v1", each(found, product.json), next}, nil
}

// matches holds a product against one filter.
func (p product) matches(f params) bool {
	have, want := p.field(f.str("Field")), f.str("Value")
	switch f.str("Type") {
	case "ANY_OF":
		return slices.Contains(strings.Split(want, ","), have)
	case "NONE_OF":
		return !slices.Contains(strings.Split(want, ","), have)
	case "CONTAINS":
		return strings.Contains(have, want)
	case "EQUALS":
		return have == want
	}
	return strings.EqualFold(have, want)
}
