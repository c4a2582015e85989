// Package options describes the provider of training jobs of SageMaker.
package options

import (
	"github.com/dlwb/dlwb/cloud/about"
)

// Provider is the description.
var Provider = about.Provider{
	Name: "sagemaker",
	Also: []string{"sm"},
	Doc:  "training jobs of Amazon SageMaker: AWS makes the machines for one run and ends them with it; needs AWS credentials and a role",
	Pays: "paid training jobs on SageMaker, with your AWS credentials",
	// A job has its time limit from its first moment, and the service ends it then.
	Traits: about.Traits{Sealed: true, Kept: true, RanksOnly: true, Deadline: true, Budgeted: true},
	Keys:   []string{"machines.instance", "machines.image", "machines.disk", "machines.region", "machines.spot"},
	Needs:  []string{"machines.instance", "machines.execution_role"}, Options: table,
	New:   func() any { return new(Machines) },
	Check: check, Effects: effects,
	Regions: []about.Region{
		{Name: "us-east-1", Place: "N. Virginia"}, {Name: "us-east-2", Place: "Ohio"}, {Name: "us-west-2", Place: "Oregon"},
		{Name: "eu-west-1", Place: "Ireland"}, {Name: "eu-central-1", Place: "Frankfurt"}, {Name: "eu-west-2", Place: "London"},
		{Name: "ap-northeast-1", Place: "Tokyo"}, {Name: "ap-southeast-2", Place: "Sydney"}, {Name: "ap-south-1", Place: "Mumbai"},
	},
}
