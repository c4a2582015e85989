package awsapi

import (
	"encoding/json"
	"strconv"
	"strings"
)

// PerHour is the price in US dollars per hour of an entry of AWS's price list, which
// comes as a string of JSON; 0: there is none.
func PerHour(text string) float64 {
	var entry struct {
		Terms struct {
			OnDemand map[string]struct {
				Dimensions map[string]struct {
					Unit  string            `json:"unit"`
					Price map[string]string `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
	}
	if json.Unmarshal([]byte(text), &entry) != nil {
		return 0
	}
	for _, term := range entry.Terms.OnDemand {
		for _, dimension := range term.Dimensions {
			price, err := strconv.ParseFloat(dimension.Price["USD"], 64)
			if err == nil && price > 0 && strings.HasPrefix(strings.ToLower(dimension.Unit), "h") {
				return price
			}
		}
	}
	return 0
}
