package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud"
)

// mostSingly is how many types are priced one by one before the whole list is
// read instead.
const mostSingly = 12

// prices gives the price on demand of the scope's types. The price list calls
// GPU types a family of their own; whichever it counts elsewhere is asked for
// by name.
func (l live) prices(ctx context.Context, names func() []string) (map[string]float64, error) {
	if !l.scope.gpu {
		return l.linux(ctx, l.scope.priceFilter()...)
	}
	found, err := l.linux(ctx, match("instanceFamily", "GPU instance"))
	if err != nil {
		return nil, err
	}
	missing := without(names(), found)
	if len(missing) > mostSingly {
		return l.linux(ctx)
	}
	l.addSingly(ctx, found, missing)
	return found, nil
}

// priceFilter picks the scope's types out of the price list.
func (s scope) priceFilter() []types.Filter {
	if len(s.patterns) == 0 {
		return nil
	}
	return []types.Filter{match("instanceType", s.patterns[0])}
}

// without are the names that have no price yet.
func without(names []string, found map[string]float64) []string {
	var missing []string
	for _, name := range names {
		if _, ok := found[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// addSingly prices types by name. One that fails stays without a price.
func (l live) addSingly(ctx context.Context, found map[string]float64, names []string) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(4)
	for _, name := range names {
		g.Go(func() error {
			one, err := l.linux(ctx, match("instanceType", name))
			if price, ok := one[name]; err == nil && ok {
				mu.Lock()
				found[name] = price
				mu.Unlock()
			}
			return nil
		})
	}
	_ = g.Wait() // none returns an error
}

// linux lists prices for plain Linux on shared machines, on demand.
func (l live) linux(ctx context.Context, filters ...types.Filter) (map[string]float64, error) {
	prices := map[string]float64{}
	other := "" // a price in another currency
	err := l.products(ctx, append(filters,
		match("operatingSystem", "Linux"),
		match("tenancy", "Shared"),
		match("preInstalledSw", "NA"),
		match("capacitystatus", "Used"),
		match("licenseModel", "No License required"),
	), func(p product) {
		a := p.Product.Attributes
		// Reserved blocks of time are in the list too, with a price of their
		// own kind.
		if a.Market != "" && a.Market != "OnDemand" {
			return
		}
		// Should the list have two, the higher one is the promise to keep.
		prices[a.Instance] = max(prices[a.Instance], p.perUnit("Hrs"))
		if other == "" && prices[a.Instance] == 0 {
			other = p.otherwise(a.Instance, "Hrs")
		}
	})
	for name, price := range prices {
		if price == 0 || name == "" {
			delete(prices, name)
		}
	}
	if err == nil && len(prices) == 0 && other != "" {
		return nil, fmt.Errorf("the price list of %s is not in US dollars (%s), in which dlwb counts: limits.lifetime ends machines there, limits.budget can't", l.region, other)
	}
	if err == nil && len(prices) == 0 {
		err = errors.New("the price list has nothing for " + l.region)
	}
	return prices, err
}

// disk gives the price of one GB of gp3 for a month.
func (l live) disk(ctx context.Context) (float64, error) {
	price := 0.0
	err := l.products(ctx, []types.Filter{match("productFamily", "Storage"), match("volumeApiName", "gp3")},
		func(p product) { price = max(price, p.perUnit("GB-Mo")) })
	return price, err
}

// products calls f for every product of EC2 in the region that has all of the
// attributes.
func (l live) products(ctx context.Context, filters []types.Filter, f func(product)) error {
	if strings.HasPrefix(l.region, "us-gov-") && l.api.Endpoint() == "" {
		return errors.New("AWS serves no price list to accounts of GovCloud; https://aws.amazon.com/govcloud-us/pricing/ has one")
	}
	pages := pricing.NewGetProductsPaginator(l.priceList(), &pricing.GetProductsInput{
		ServiceCode: aws.String("AmazonEC2"),
		Filters:     append(filters, match("regionCode", l.region)),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return l.explained("GetProducts", err)
		}
		for _, text := range page.PriceList {
			var p product
			if err := json.Unmarshal([]byte(text), &p); err == nil { // one that cannot be read has no price
				f(p)
			}
		}
	}
	return nil
}

func match(field, value string) types.Filter {
	return types.Filter{Type: types.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value)}
}

// product is one entry of the price list, which comes as a string of JSON.
type product struct {
	Product struct {
		Attributes struct {
			Instance string `json:"instanceType"`
			Market   string `json:"marketoption"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			Dimensions map[string]struct {
				Unit  string            `json:"unit"`
				Price map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// perUnit is the price in US dollars; 0 when there is none for the unit, or in
// another currency only.
func (p product) perUnit(unit string) float64 {
	price := 0.0
	for _, term := range p.Terms.OnDemand {
		for _, d := range term.Dimensions {
			if dollars, ok := amount(d.Price["USD"]); ok && d.Unit == unit {
				price = max(price, dollars)
			}
		}
	}
	return price
}

// otherwise is the price in another currency, with its name; empty: there is none.
func (p product) otherwise(name, unit string) string {
	for _, term := range p.Terms.OnDemand {
		for _, d := range term.Dimensions {
			for _, currency := range slices.Sorted(maps.Keys(d.Price)) {
				if v, ok := amount(d.Price[currency]); ok && v > 0 && d.Unit == unit {
					return fmt.Sprintf("%s: %s %.4g/h", name, currency, v)
				}
			}
		}
	}
	return ""
}

// DiskPrice is what one GB of gp3 disk (2^30 bytes, as AWS counts) costs for an
// hour: from the price list when AWS can be asked, else what dlwb itself knows.
func (m *Market) DiskPrice(ctx context.Context, region string) cloud.Price {
	s, err := m.shelf(ctx, region, false)
	if err != nil {
		return DiskPrice(region)
	}
	l := live{api: m.api, region: region}
	month := ask(ctx, s, part{name: "disk"}, youngPrices, l.disk)
	if !month.ok || month.value <= 0 {
		return DiskPrice(region)
	}
	return cloud.Price{PerHour: month.value / hoursPerMonth, Source: listSource, At: month.at}
}
