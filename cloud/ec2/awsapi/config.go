package awsapi

import "github.com/aws/aws-sdk-go-v2/aws"

// Config is what clients of other services are made of, for a region; empty: that
// of the user's configuration.
func (a *API) Config(region string) aws.Config {
	cfg := a.cfg.Copy()
	if region != "" {
		cfg.Region = region
	}
	return cfg
}
