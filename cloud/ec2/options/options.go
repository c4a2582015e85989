// Package options describes the provider of EC2 instances.
package options

import (
	"slices"

	"github.com/dlwb/dlwb/cloud/about"
)

// Provider is the description.
var Provider = about.Provider{
	Name:   "ec2",
	Also:   []string{"aws", "amazon"},
	Doc:    "machines of Amazon EC2 by the second, with GPUs; needs AWS credentials",
	Pays:   "paid machines on EC2, with your AWS credentials",
	Traits: about.Traits{Leased: true, Priced: true},
	Keys: slices.Concat(about.InstanceKeys, about.PaidKeys, []string{
		"machines.spot", "run.on_notice", "limits.replacements",
	}),
	Needs:   []string{"machines.instance"},
	Options: table,
	New:     func() any { return new(Machines) },
	Check:   check,
	Effects: effects, PaysAlso: paysAlso,
	Head: func(own any) string { return about.Own[Machines](own).Head },
	Regions: []about.Region{
		{Name: "us-east-1", Place: "N. Virginia"}, {Name: "us-east-2", Place: "Ohio"}, {Name: "us-west-2", Place: "Oregon"},
		{Name: "us-west-1", Place: "N. California"}, {Name: "ca-central-1", Place: "Montreal"}, {Name: "eu-west-1", Place: "Ireland"},
		{Name: "eu-west-2", Place: "London"}, {Name: "eu-central-1", Place: "Frankfurt"}, {Name: "eu-north-1", Place: "Stockholm"},
		{Name: "eu-west-3", Place: "Paris"}, {Name: "eu-south-1", Place: "Milan"}, {Name: "ap-northeast-1", Place: "Tokyo"},
		{Name: "ap-northeast-2", Place: "Seoul"}, {Name: "ap-southeast-1", Place: "Singapore"}, {Name: "ap-southeast-2", Place: "Sydney"},
		{Name: "ap-south-1", Place: "Mumbai"}, {Name: "sa-east-1", Place: "São Paulo"},
	},
}
