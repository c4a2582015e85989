package planning

import (
	"context"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/settings"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/trust"
)

// Maker makes plans.
type Maker struct {
	owner     Owner
	checkouts sync.Map // directories that reruns were checked out to
}

// Owner is what a Maker needs of whoever carries plans out.
type Owner struct {
	Dir     string // the state directory
	Gate    *trust.Gate
	History *history.History
	// Settings says what the user allows the profile of a path.
	Settings func(profile string) (settings.Settings, error)
	// Kinds are the names of the providers that there are.
	Kinds func() []string
	// Check asks a provider what would stand in the way.
	Check func(ctx context.Context, kind string, spec cloud.Spec) cloud.Preflight
	// Steps are what leads to training with a provider.
	Steps func(kind string) []string
	// Up is how many nodes a cluster has already, and the path of the profile that made
	// it; none, and empty: it is not there.
	Up func(cluster string) (nodes int, madeBy string)
	// Ready reports whether the cluster of a profile is up and idle and was made
	// with that profile, and begins to connect to it.
	Ready func(*profiles.Profile) bool
	// Remember puts the profile of a plan among those that were used.
	Remember func(*Plan)
}

// New makes plans for an owner.
func New(owner Owner) *Maker { return &Maker{owner: owner} }
