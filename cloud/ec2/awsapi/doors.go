package awsapi

import (
	"context"
	"sync"
)

// Doors are the ways to the services of regions: one of each is made, when it is asked
// for first.
type Doors[D any] struct {
	Make func(api *API, region string) *D

	mu  sync.Mutex
	api *API
	all map[string]*D // by region
}

// Open gives the door to a region; empty: that of the user's configuration.
func (d *Doors[D]) Open(ctx context.Context, region string) (*D, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.api == nil {
		api, err := Load(ctx)
		if err != nil {
			return nil, err
		}
		d.api, d.all = api, map[string]*D{}
	}
	if region == "" {
		region = d.api.Region()
	}
	if region == "" {
		return nil, noRegionError{}
	}
	if d.all[region] == nil {
		d.all[region] = d.Make(d.api, region)
	}
	return d.all[region], nil
}

type noRegionError struct{}

func (noRegionError) Error() string {
	return "no region is set: neither machines.region nor your AWS configuration has one"
}

// Advice says what to do.
func (noRegionError) Advice() string {
	return "machines.region: us-east-1, or aws configure set region us-east-1"
}
