package cloud

import (
	"context"
	"time"
)

// Spec is what is asked of a provider.
type Spec struct {
	Name  string
	Count int
	// Engine is what the profile has its ranks started by, by its word or by the launcher
	// that its command begins with; empty: what is found at the launch.
	Engine string
	// Restarts is how often ranks that have failed are to be started again; 0: never.
	Restarts int
	// HasEnv says that the run gets variables.
	HasEnv bool
	// Own is what only this provider can be told, in the struct of its options;
	// nil: nothing is. about.Own reads it.
	Own any
	// Have is how many of the nodes exist already: a check asks for room for
	// the others only.
	Have int
	// Ask is a line of sh which a provider that logs in on machines before it takes
	// them has each of them run, with the Python and the modules that a machine has
	// of its own; what they print are Preflight.Answers. Nil, or an empty line: nothing is
	// asked. It changes nothing there.
	Ask func(python string, modules []string) string `json:"-"`
	// Held gives those of them to which a connection is held; nil: none is known.
	// Who can, asks them over it instead of logging in once more.
	Held func(context.Context) []Held `json:"-"`

	// Code gives what of the code directory goes with a job, for what is made of it before
	// the job; nil: it is not known.
	Code func(context.Context) (Code, error) `json:"-"`

	// Trials is how many the sweep of the profile has, and AtOnce how many of them are
	// jobs at a time; 0: it has no sweep.
	Trials, AtOnce int

	// The rest is for machines that are paid for.

	Regions []string // tried in order
	// Metrics are the values of the profile that are not found by themselves, as
	// name and expression: a service that reads logs is told them too.
	Metrics [][2]string
	// Instance is the type's name; empty: the best offer that meets Need.
	Instance string
	Need     Need
	Spot     bool
	Image    string // an alias, or an id; empty: "pytorch"
	Disk     int64  // bytes; 0: what the image needs and room to work

	Budget   float64       // US dollars for the whole life; 0: none
	Lifetime time.Duration // from the start of the machines
	Grace    time.Duration // what ranks get between TERM and KILL; 0: what the provider gives them by itself
	// LifetimeAsked: the profile itself has it; else it is what every profile gets.
	LifetimeAsked bool
	Idle          time.Duration
	// Drain is what the nodes save by themselves before their lease shuts
	// them down.
	Drain Drain
}

// Held is a node to which a connection is held.
type Held struct {
	Node Node
	// Run runs a line of sh there, in the home of its user. Each of its outputs is
	// kept up to 1 MiB.
	Run func(ctx context.Context, line string, input []byte) (Said, error)
}

// Drain says what goes where before a node shuts itself down.
type Drain struct {
	S3    string   // "s3://bucket/prefix"; empty: nothing is saved
	Paths []string // relative to the home directory
}

// Need describes a machine by what it must have instead of by its type name.
type Need struct {
	GPU      []string // models, any of them; none: any
	GPUs     int      // at least; 0: any number
	Memory   int64    // of each GPU, bytes, at least
	MaxPrice float64  // US dollars per machine and hour; 0: any
}

// None reports whether nothing is asked for.
func (n Need) None() bool {
	return len(n.GPU) == 0 && n.GPUs == 0 && n.Memory == 0 && n.MaxPrice == 0
}

// Price is what something costs, and how far that can be believed.
type Price struct {
	PerHour float64   `json:"per_hour"` // US dollars; 0: not known
	Source  string    `json:"source"`   // "AWS Price List", "spot price history", "dlwb's own table of 2026-07-20"
	At      time.Time `json:"at,omitzero"`
}

// Known reports whether there is a price at all.
func (p Price) Known() bool { return p.PerHour > 0 }

// Offer is one instance type that can be had now, in one region.
type Offer struct {
	Provider string `json:"provider"`
	Region   string `json:"region"`
	Instance string `json:"instance_type"`
	Arch     string `json:"arch"` // "x86_64" or "arm64"

	GPU  string `json:"gpu"` // model, "A10G"; empty: none
	GPUs int    `json:"gpus"`
	// GPUShare is below 1 for a type that has a part of a GPU.
	GPUShare  float64 `json:"gpu_share"`
	GPUMemory int64   `json:"gpu_memory_bytes"` // of each GPU
	VCPUs     int     `json:"vcpus"`
	Memory    int64   `json:"memory_bytes"`
	Network   string  `json:"network"` // as the provider says it: "Up to 10 Gigabit"
	// EFA is how many Elastic Fabric Adapters it can have.
	EFA  int   `json:"efa_interfaces"`
	NVMe int64 `json:"nvme_bytes"` // instance store

	OnDemand Price `json:"on_demand"`
	// Spot is the cheapest zone's price.
	Spot  Price  `json:"spot"`
	Zones []Zone `json:"zones"`

	Quota     Quota    `json:"quota"`
	SpotQuota Quota    `json:"spot_quota"`
	Notes     []string `json:"notes"` // what a person should know before choosing it
	// Queue is what is known of machines that are waited for and not bought; nil:
	// they are bought.
	Queue *Queue `json:"queue,omitempty"`
}

// Queue is what stands behind an offer of a queue: how many machines of that kind
// there are, what is free of them, and by which limits. Times are in seconds.
type Queue struct {
	Nodes     int `json:"nodes"`
	Up        int `json:"nodes_up"`
	FreeNodes int `json:"nodes_free"` // nothing of them is given to anybody
	GPUs      int `json:"gpus"`       // of all nodes
	FreeGPUs  int `json:"gpus_free"`
	// TimeLimit is the longest a job may take, and UsualTime what one gets that asks
	// for nothing; 0: there is none.
	TimeLimit float64 `json:"time_limit_s"`
	UsualTime float64 `json:"default_time_s"`
	// NodesPerJob is how many a job may have; 0: any number.
	NodesPerJob int `json:"nodes_per_job"`
	// Accounts and QOS are those that the user has and that are taken there; null:
	// none are kept.
	Accounts []string `json:"accounts"`
	QOS      []string `json:"qos"`
	// BeginsIn is when the scheduler expects a job to begin that is handed in now;
	// nil: it does not say.
	BeginsIn *float64 `json:"begins_in_s"`
}

// Zone is one availability zone that offers a type.
type Zone struct {
	Name string  `json:"name"`
	ID   string  `json:"id,omitempty"`  // the same in every account
	Spot float64 `json:"spot_per_hour"` // US dollars; 0: not known
}

// Quota is how much of a family of types an account may run at once.
type Quota struct {
	// Known is false when it could not be asked: that is not a quota of 0.
	Known bool   `json:"known"`
	Name  string `json:"name"` // "Running On-Demand G and VT instances"
	Code  string `json:"code"` // "L-DB2E81BA"
	Limit int    `json:"limit_vcpus"`
	Used  int    `json:"used_vcpus"`
	// Left is how many machines of the offer's type still fit.
	Left int    `json:"left_instances"`
	Why  string `json:"why,omitempty"` // why it is not known
}

// PerGPUHour is the price of one GPU for one hour; 0 when not known.
func (o Offer) PerGPUHour(spot bool) float64 {
	if gpus := float64(o.GPUs) * o.GPUShare; gpus > 0 {
		return o.price(spot) / gpus
	}
	return 0
}

// PerGBHour is the price of one GB (10^9 bytes) of GPU memory for one hour; 0
// when not known.
func (o Offer) PerGBHour(spot bool) float64 {
	if gb := float64(o.GPUs) * float64(o.GPUMemory) / 1e9; gb > 0 {
		return o.price(spot) / gb
	}
	return 0
}

func (o Offer) price(spot bool) float64 {
	if spot {
		return o.Spot.PerHour
	}
	return o.OnDemand.PerHour
}

// SpotSaving is what part of the price on demand a spot machine saves, 0 to 1;
// 0 when not known.
func (o Offer) SpotSaving() float64 {
	if !o.Spot.Known() || !o.OnDemand.Known() {
		return 0
	}
	return max(0, 1-o.Spot.PerHour/o.OnDemand.PerHour)
}

// Query says which offers are wanted.
type Query struct {
	Regions  []string
	Need     Need
	Spot     bool   // rank, and hold Need.MaxPrice against, the spot price
	Instance string // one type; empty: all
	CPU      bool   // types without a GPU too
	// Login is the machine through which the provider is asked, where there is one to
	// name; empty: this machine.
	Login string
	// Fresh asks the provider also when there is a young answer on the disk.
	Fresh bool
	// Count is how many machines must fit into the quota; 0: 1.
	Count int
}

// Offers are the answer to a query, the best first.
type Offers struct {
	Offers []Offer `json:"offers"`
	// Live is false when the provider could not be asked and the offers are
	// facts that came with dlwb.
	Live  bool      `json:"live"`
	At    time.Time `json:"at"` // how old the oldest part is
	Notes []string  `json:"notes"`
}
