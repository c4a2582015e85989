// Package fakeaws is an AWS that is ours to break: one HTTP port that answers
// for EC2, STS, SSM, Service Quotas and the price list as AWS's API model says,
// and that can be told to refuse, to lose replies, to lie and to be late. The
// program under test knows it only by AWS_ENDPOINT_URL.
package fakeaws

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/clock"
	"github.com/dlwb/dlwb/internal/fakeaws/machinetype"
	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// Options say what kind of AWS it is. The zero value is a quick and well
// behaved one.
type Options struct {
	// Regions are there, the first one is the caller's; none: four that work
	// and one that is not opted in.
	Regions []Region
	// Boot makes a machine of each instance; nil: instances are records only.
	Boot Booter
	// Lag is asked at each change: for so long it is not seen by others, and
	// ids of new resources are not found. nil: no lag.
	Lag func() time.Duration
	// PageSize is the most items that a list has on a page; 0: 1000, as AWS.
	PageSize int
	// Speed is how fast the virtual clock runs; 0: as the real one.
	Speed float64

	Pending      time.Duration // until an instance runs; 0: 30 ms
	ShuttingDown time.Duration // until it is terminated, or stopped; 0: 50 ms
	Linger       time.Duration // that a terminated instance stays listed; 0: an hour
	// Release is how long after its end an instance still holds its groups;
	// 0: 50 ms.
	Release time.Duration
	// StatusChecks is how long after the start the status checks are passed;
	// 0: as long as Pending.
	StatusChecks time.Duration

	// ReplyDelay is waited before each reply, in real time.
	ReplyDelay time.Duration
	// Account and ARN say who the caller is; empty: account 123456789012,
	// user "dlwb".
	Account, ARN string
	// Addr is where to listen; empty: a free port of the loopback.
	Addr string
	// Profiles are the instance profiles that exist; nil: all that are
	// asked for.
	Profiles []string
	// Lacks is what it does not have of AWS.
	Lacks Lacks
}

// Region is one region of the account.
type Region struct {
	Name  string
	Zones []string // letters; none: a, b and c
	// Disabled regions are listed as not opted in and refuse every call.
	Disabled bool
	// Hangs makes every call to the region wait until its caller gives up.
	Hangs bool
	// NoDefaultVPC hides the default VPC and its subnets from the lists.
	NoDefaultVPC bool
	// Private are the letters of the zones whose subnets nobody can reach from
	// outside.
	Private []string
	// VPCs are there besides the default one.
	VPCs []VPC
	// Reservations are of capacity.
	Reservations []Reservation
}

// VPC is a network that somebody has made.
type VPC struct {
	Name    string
	Subnets []Subnet
	// Endpoint is an EC2 Instance Connect endpoint in its first subnet.
	Endpoint bool
	// ShowsClient says that the endpoint keeps the address of its caller.
	ShowsClient bool
	// Opens is the address type of the endpoint: "ipv4", "dualstack" or "ipv6"; empty:
	// ipv4.
	Opens string
}

// Subnet is a part of it in one zone.
type Subnet struct {
	Name    string
	Zone    string // a letter
	Private bool   // it has no route to the internet
	// IPv6 is "also" or "only"; empty: it has IPv4 alone. In6 says that its IPv6
	// addresses can be reached from the internet, else they only go out.
	IPv6 string
	In6  bool
}

// Reservation is one of capacity.
type Reservation struct {
	ID, Type string
	Zone     string // a letter
	Count    int
	// Block says that it is a capacity block for ML.
	Block bool
	// Waits says that it has not begun.
	Waits bool
}

// VPCID is the id of a VPC of a region, by its name.
func VPCID(region, name string) string { return wire.FixedID("vpc", region+name) }

// SubnetID is the id of a subnet of a VPC that somebody has made.
func SubnetID(region, vpc, name string) string { return wire.FixedID("subnet", region+vpc+name) }

// EndpointGroup is the security group of the endpoint of a VPC.
func EndpointGroup(region, vpc string) string { return wire.FixedID("sg", region+vpc+"endpoint") }

// Booter makes machines of instances. Its methods are called from goroutines,
// for one instance one after the other.
type Booter interface {
	// Boot starts the machine; an error ends the instance as AWS ends one
	// that fails to launch.
	Boot(i *Instance) (started *Machine, err error)
	// Halt switches the machine off. With keepDisk it will be started again.
	Halt(id string, keepDisk bool)
	// Remove forgets a machine that was halted for good.
	Remove(id string)
}

// Noticer is a Booter whose machines have a metadata service that tells of the
// end of a spot instance.
type Noticer interface {
	Notice(id string, action string, at time.Time)
}

// Consoler is a Booter whose machines write to a console.
type Consoler interface {
	Console(id string) string
}

// Instance is what a Booter is told of a machine.
type Instance struct {
	ID, Region, Zone, Type, Image string
	Index                         int // AmiLaunchIndex
	KeyName                       string
	PublicKey                     string // of the key pair, authorized_keys form
	UserData                      []byte // as the machine reads it, not base64
	Tags                          map[string]string
	PrivateIP                     string
	Spot                          bool
	// Boots is how often it was started before: 0 at the first time.
	Boots int
	// PowerOff is what the guest's own shutdown leads to.
	PowerOff func()
}

// Machine is what a Booter has started. Empty addresses are made up.
type Machine struct {
	PublicIP, PrivateIP string
}

// Server is a running fake.
type Server struct {
	// URL is where it listens; what AWS_ENDPOINT_URL has to be.
	URL string

	opt   Options
	clock *clock.Clock
	http  *http.Server
	wg    sync.WaitGroup // machines being started and ended, delayed calls
	done  chan struct{}

	mu        sync.Mutex
	regions   []*region
	calls     []Call
	forgotten int // calls that are no longer in the log
	faults    []*armed
	types     []machinetype.Type
	byName    map[string]machinetype.Type
	orders    int // given to each new resource
	tunnels   int // that were asked for
	undo      []func()
	after     []func() // what the call being applied leads to
}

// New starts a fake. It panics when it can not listen, as httptest does.
func New(o Options) *Server {
	o.fill()
	s := &Server{opt: o, clock: clock.New(o.Speed), done: make(chan struct{}), types: machinetype.All()}
	s.byName = map[string]machinetype.Type{}
	for _, t := range s.types {
		s.byName[t.Name] = t
	}
	for _, r := range o.Regions {
		s.regions = append(s.regions, newRegion(s, r))
	}
	s.grant()
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		panic(fmt.Sprintf("fakeaws: %v", err))
	}
	s.URL = "http://" + l.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("fakeaws: %v", err))
		}
	}()
	return s
}

func (o *Options) fill() {
	if len(o.Regions) == 0 {
		o.Regions = []Region{{Name: "us-east-1"}, {Name: "us-east-2"}, {Name: "us-west-2"},
			{Name: "eu-central-1"}, {Name: "ap-east-1", Disabled: true}}
	}
	orElse(&o.PageSize, 1000)
	orElse(&o.Speed, 1)
	orElse(&o.Pending, 30*time.Millisecond)
	orElse(&o.ShuttingDown, 50*time.Millisecond)
	orElse(&o.Linger, time.Hour)
	orElse(&o.Release, 50*time.Millisecond)
	orElse(&o.StatusChecks, o.Pending)
	orElse(&o.Account, "123456789012")
	orElse(&o.ARN, "arn:aws:iam::"+o.Account+":user/dlwb")
	orElse(&o.Addr, "127.0.0.1:0")
	if o.Lag == nil {
		o.Lag = func() time.Duration { return 0 }
	}
}

func orElse[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// The credentials that the fake accepts.
const (
	AccessKey = "AKIAFAKE0000DLWB0000"
	SecretKey = "fake/secret/of/the/fake/aws/of/dlwb00000"
)

// Env is the environment that leads an AWS client here and nowhere else.
func (s *Server) Env() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + s.URL,
		"AWS_ACCESS_KEY_ID=" + AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + SecretKey,
		"AWS_SESSION_TOKEN=",
		"AWS_REGION=" + s.opt.Regions[0].Name,
		"AWS_DEFAULT_REGION=" + s.opt.Regions[0].Name,
		"AWS_PROFILE=",
		"AWS_CA_BUNDLE=", // every client would read all of its certificates
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// Close ends the server and every machine that it started.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.done:
		s.mu.Unlock()
		return
	default:
	}
	s.removeMachines()
	close(s.done)
	s.mu.Unlock()
	_ = s.http.Close()
	s.wg.Wait()
}

// ARN is who the caller is.
func (s *Server) ARN() string { return s.opt.ARN }

// Account is the caller's account.
func (s *Server) Account() string { return s.opt.Account }
