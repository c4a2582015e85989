package cli

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
)

// Zones that nobody has named are unknown, and not none.
func TestZonesThatAreNotKnownAreNotNone(t *testing.T) {
	var out strings.Builder
	writeOffers(&out, cloud.Offers{Offers: []cloud.Offer{{Instance: "g5.xlarge", Region: "us-east-1"},
		{Instance: "g6.xlarge", Region: "us-east-1", Zones: []cloud.Zone{{Name: "us-east-1a"}, {Name: "us-east-1b"}}}}}, false)
	for i, want := range []string{"", "?", "2"} {
		if fields := strings.Fields(strings.Split(out.String(), "\n")[i]); i > 0 && fields[len(fields)-1] != want {
			t.Errorf("%q, want %q at its end", fields, want)
		}
	}
}
