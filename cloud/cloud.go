// Package cloud says what a provider of machines is. Each provider has a
// folder of its own below this one. A node provider hands out nodes as plain
// data (an address, a user, a host key, a private key): whatever dials them
// needs nothing else from here.
package cloud

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/sshkeys"
)

// ByOwnSSH is the Way of a machine that is reached by the user's own ssh, under the
// name that Called has: a person has logged in there, and ssh keeps the connection.
const ByOwnSSH = "own-ssh"

// Node is one machine reached by ssh. Node 0 of a cluster is the head.
type Node struct {
	Index int    `json:"index"`
	Name  string `json:"name"` // "node0", unique in its cluster
	// Called is what the user calls the machine, as in the profile; empty: Name.
	Called string `json:"called,omitempty"`
	// ID is the provider's own name of the machine ("i-0abc…"); empty where
	// it has none.
	ID string `json:"id,omitempty"`
	// Addr is host:port as the caller of Dial reaches it; empty while the
	// machine is stopped.
	Addr string `json:"addr"`
	User string `json:"user"`
	// Keys are what to log in with where that is not Cluster.KeyFile.
	Keys sshkeys.Keys `json:"keys,omitzero"`
	// Jumps are the hosts through which Addr is reached, in the order in
	// which they are dialed; none: it is reached directly.
	Jumps []Jump `json:"jumps,omitempty"`
	// Way says how Addr is reached where a TCP connection is not possible, in
	// the provider's own words: its Reach knows them. Empty: by TCP. See ByOwnSSH.
	Way string `json:"way,omitempty"`
	// HostKey is the host's public key in authorized_keys form
	// ("ssh-ed25519 AAAA…"). It is known before the first connection.
	HostKey string `json:"host_key"`
	// RotateHostKey says that HostKey came to the machine by a way that
	// others may read (user-data): it proves the first connection only, and
	// is to be replaced then by one that the machine makes itself.
	RotateHostKey bool `json:"rotate_host_key,omitempty"`
	// NextHostKey is the key that the machine has made to replace HostKey:
	// while the change is under way it may show either.
	NextHostKey string `json:"next_host_key,omitempty"`
	// PeerHost and PeerPort are where the other nodes of the cluster reach
	// this one: the private address, and the port of its sshd there.
	PeerHost string `json:"peer_host"`
	PeerPort int    `json:"peer_port"`
	// PeerUnsure says that it is still to be tried whether they do, and PeerGiven that
	// no other address is to be: a person has given this one.
	PeerUnsure bool `json:"peer_unsure,omitempty"`
	PeerGiven  bool `json:"peer_given,omitempty"`
	// PeerClosed says that PeerHost is where the others reach it, and that its sshd there
	// does not let them in: what they need of it comes by this machine.
	PeerClosed bool `json:"peer_closed,omitempty"`
	// Beside says that the home directory there is one that another cluster has on other
	// hosts, and came first to: the key between nodes has another name there.
	Beside bool `json:"beside,omitempty"`
	// Interface is the network interface that carries traffic between the
	// nodes ("lo", "ens5"); empty when unknown.
	Interface string `json:"interface,omitempty"`
	// GPUs are the numbers of the GPUs that may be used, as nvidia-smi has
	// them; nil: all.
	GPUs []int `json:"gpus,omitempty"`
	// Python is the interpreter to start from there; empty: the profile's.
	Python string `json:"python,omitempty"`
	// Modules are loaded there before anything else of a run, as `module load` does.
	Modules []string `json:"modules,omitempty"`
	// HomeOf is the name of the first node whose home directory this one has too, as
	// on a file system that they share, and CodeOf that of the first node that has the
	// same place for the code; empty: it is itself the first, or the only one.
	HomeOf string `json:"home_of,omitempty"`
	CodeOf string `json:"code_of,omitempty"`
	// SimulatedGPUs is the number of simulated GPUs on this node. Whatever
	// shows them must say SIMULATED.
	SimulatedGPUs int `json:"simulated_gpus,omitempty"`
	// Head says that no rank trains there: it leads the others. It is node 0 then,
	// and Instance its type, which is not the cluster's.
	Head     bool   `json:"head,omitempty"`
	Instance string `json:"instance_type,omitempty"`
}

// MachinesText names the machines of a cluster, whose type is instance but for its
// head: "2 × g5.xlarge spot", "2 × g5.xlarge led by m5.xlarge".
func MachinesText(nodes []Node, instance string, spot bool) string {
	count, head := len(nodes), ""
	if count > 0 && nodes[0].Head {
		count, head = count-1, " led by "+nodes[0].Instance
	}
	text := fmt.Sprintf("%d × %s", count, instance)
	if spot {
		text += " spot"
	}
	return text + head
}

// Jump is a host that is only passed through on the way to a node.
type Jump struct {
	Name    string       `json:"name"` // what errors call it: "bastion"
	Addr    string       `json:"addr"` // host:port, as the host before it reaches it
	User    string       `json:"user"`
	HostKey string       `json:"host_key"` // in authorized_keys form
	Keys    sshkeys.Keys `json:"keys,omitzero"`
}

// Cluster is a named set of nodes, in order.
type Cluster struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Nodes    []Node `json:"nodes"`
	// KeyFile is the path of the cluster's private key (0600, OpenSSH form)
	// with which the nodes are reached from here.
	KeyFile   string    `json:"key_file"`
	CreatedAt time.Time `json:"created_at"`
	// Notices are sentences that the user should see, and are kept nowhere.
	Notices []string `json:"-"`
	// PricePerHour is in US dollars for everything together: machines, disks
	// and addresses; 0 for machines that cost nothing.
	PricePerHour float64 `json:"price_per_hour"`

	// The rest is empty for machines that nobody pays for.

	Region   string `json:"region,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Instance string `json:"instance_type,omitempty"`
	Spot     bool   `json:"spot,omitempty"`
	// Costs are the parts of PricePerHour.
	Costs []Cost `json:"costs,omitempty"`
	// Lacks are what can't be done on the nodes; none of a cluster of machines.
	Lacks []job.Lack `json:"lacks,omitempty"`
	// ExpiresAt is when the nodes' lease ends at the latest: they drain and
	// shut themselves down then.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// BootLimit is how long the machines may take from "running" to their first
	// ssh answer; 0: ten minutes.
	BootLimit time.Duration `json:"boot_limit,omitempty"`
	// Stopped says that the machines are stopped and only the disks cost.
	Stopped bool `json:"stopped,omitempty"`
}

// Cost is one part of what a cluster costs, in US dollars per hour.
type Cost struct {
	What    string  `json:"what"` // "2 × g5.xlarge, spot", "400 GB of gp3 disk"
	PerHour float64 `json:"per_hour"`
	// Source says where the price is from and how old it is.
	Source string `json:"source"`
}

// State says what is known of a resource. The zero value is Unknown: doubt is
// the default, and doubt neither destroys nor claims success.
type State string

// The three states a resource can be in.
const (
	Unknown State = "unknown"
	Alive   State = "alive"
	Gone    State = "gone" // proven
)

// Resource is one thing a cluster consists of, with what proves its state.
type Resource struct {
	Kind  string        `json:"kind"` // "process", "directory", "instance", …
	ID    string        `json:"id"`
	Node  string        `json:"node,omitempty"`
	State State         `json:"state"`
	Proof string        `json:"proof"` // how the state was established
	Lived time.Duration `json:"-"`
	Cost  float64       `json:"cost"` // US dollars
}

// Receipt is what teardown shows.
type Receipt struct {
	Cluster   string     `json:"cluster"`
	Provider  string     `json:"provider"`
	Resources []Resource `json:"resources"`
	// ProcessesLeft and FilesLeft count what could still be found after
	// everything was removed.
	ProcessesLeft int           `json:"processes_left"`
	FilesLeft     int           `json:"files_left"`
	Lived         time.Duration `json:"-"`
	Cost          float64       `json:"cost"` // US dollars
}

// Proven reports whether every resource is proven gone and nothing was left.
func (r Receipt) Proven() bool {
	for _, res := range r.Resources {
		if res.State != Gone {
			return false
		}
	}
	return r.ProcessesLeft == 0 && r.FilesLeft == 0
}

// Open counts the resources that are not proven gone, and names them: " (host a,
// host b)", the first few.
func (r Receipt) Open() (n int, which string) {
	const most = 8
	for _, res := range r.Resources {
		if res.State == Gone {
			continue
		}
		if n++; n <= most {
			which += ", " + strings.TrimSpace(res.Kind+" "+res.ID)
		}
	}
	if n > most {
		which += fmt.Sprintf(" and %d more", n-most)
	}
	if n > 0 {
		which = " (" + which[2:] + ")"
	}
	return n, which
}

// Progress is called with a sentence for each thing a provider does. It may be
// called from several goroutines. node is -1 for the whole cluster.
type Progress func(node int, text string)

// Untold is the Progress of a wait that nobody watches.
func Untold(int, string) {}

// Status is what a provider says of one node.
type Status struct {
	State State `json:"state"`
	// Phase is the provider's own word ("pending", "running", "stopped",
	// "shutting-down", "terminated"); empty where it has none.
	Phase string `json:"phase,omitempty"`
	// Why says what made it so, where the provider tells ("reclaimed by
	// EC2: Server.SpotInstanceTermination").
	Why string `json:"why,omitempty"`
}

// Preflight is what was found out before anything is started or paid.
type Preflight struct {
	Findings []Finding
	// Offer is the machine that would be used; nil where there is no choice,
	// or none fits.
	Offer *Offer
	// PricePerHour is what everything together would cost, in US dollars;
	// Costs are its parts.
	PricePerHour float64
	Costs        []Cost
	// MostPerHour is what it can cost at most: for spot machines, the price on
	// demand.
	MostPerHour float64
	// Choices are all machines that may be used, Offer first: where there is no
	// room for one, the next is tried.
	Choices []Offer
	// Script is what would be handed to the service, as text; empty: nothing is.
	// RUN and HOME stand in it for what is known at the launch alone.
	Script string
	// GPUs is how many GPUs each node has for this cluster, as far as it was
	// seen: UnknownGPUs where it was not. It is empty where nothing is known
	// of the nodes before they are there.
	GPUs []int
	// Beside: the service does not start the engine's cluster here (about.Provider.Clusters),
	// and what that is made of runs beside the ranks.
	Beside bool
	// Answers are what machines printed that were asked Spec.Ask, in their order; one
	// that could not be asked has none.
	Answers []Answer
}

// Answer is what one machine printed when it was asked.
type Answer struct {
	Node    int
	Name    string   // as the profile has it
	Python  string   // what it has of its own, as Spec.Ask was told
	Modules []string // those of the machine, too
	Printed []byte
}

// UnknownGPUs is the number of GPUs of a machine that could not be looked at.
const UnknownGPUs = -1

// Provider makes and removes clusters. Every method may be called again after
// a crash at any point: Up finishes what an earlier Up of the same life began,
// Down removes whatever is left of a life, also of one that never came up.
type Provider interface {
	// Kind is its name in the table of cloud/providers, which says what it is
	// like.
	Kind() string
	// Check looks for what would make Up fail and changes nothing.
	Check(ctx context.Context, spec Spec) Preflight
	// Up makes the machines and returns when they run and their addresses are
	// known. Whether ssh answers, the caller finds out.
	Up(ctx context.Context, life Life, spec Spec, progress Progress) (Cluster, error)
	// Probe reports the status of each node of a cluster. It never changes
	// anything and answers Unknown where it could not find out.
	Probe(ctx context.Context, c Cluster) ([]Status, error)
	// Down removes the cluster and everything in it, then looks again. The
	// receipt is valid also when err is not nil.
	Down(ctx context.Context, life Life, progress Progress) (Receipt, error)
}

// Reacher is a provider with nodes that are not reached by TCP: those with a Way.
type Reacher interface {
	// Reach connects to the sshd of a node. The connection outlives ctx.
	Reach(ctx context.Context, c Cluster, n Node) (net.Conn, error)
}

// Witness is a provider that can say more of a machine that does not answer.
type Witness interface {
	// Testify says why a node may be silent, one sentence each, and gives the
	// last lines that its console shows, where there are any. It changes nothing.
	Testify(ctx context.Context, c Cluster, node int) (causes []string, console []string)
}

// Offerer is a provider whose machines can be chosen from a list.
type Offerer interface {
	Offers(ctx context.Context, q Query) (Offers, error)
}

// Knower is a provider that knows values which a key of its profiles can have, such
// as the hosts of the user's own ssh. It reads files of this machine and asks nobody.
type Knower interface {
	Known(key string) []string
}

// Greeter is a provider that may have to ask a person something before its
// machines can be used. Where a screen is about to take the terminal, it is
// asked before.
type Greeter interface {
	Meet(ctx context.Context, spec Spec) error
}

// Suspender is a provider that can stop the machines of a cluster and keep
// their disks.
type Suspender interface {
	// Stop returns when the machines are seen stopped; what the disks still
	// cost is the cluster's price then.
	Stop(ctx context.Context, life Life, c Cluster, progress Progress) (Cluster, error)
	// Start starts them again. Addresses may be others than before.
	Start(ctx context.Context, life Life, c Cluster, progress Progress) (Cluster, error)
}

// Collector is a provider that finds what was left behind without any record
// here, and removes it.
type Collector interface {
	// Orphans looks everywhere for resources that dlwb made for the present
	// identity. known are the lives that are on record and not ended: theirs
	// are none.
	Orphans(ctx context.Context, known func(life string) bool, progress Progress) (Hunt, error)
	// Collect removes one orphan, as Down does with a life.
	Collect(ctx context.Context, o Orphan, progress Progress) (Receipt, error)
}

// Hunt is what was found by looking everywhere.
type Hunt struct {
	Identity string   `json:"identity"` // who asked
	Orphans  []Orphan `json:"orphans"`
	// Looked are the places that were seen whole; Blind those that could not
	// be looked into, with the reason. What is there, nobody knows.
	Looked []string          `json:"looked"`
	Blind  map[string]string `json:"blind"`
	// Closed are the places that are not open to the account: nothing can be
	// started there, and what was started before one was closed can't be seen.
	Closed []string `json:"closed"`
	// Settle is for how long something that was just made may stay unseen.
	Settle time.Duration `json:"-"`
}

// Orphan is a life of a cluster of which nothing is on record here.
type Orphan struct {
	Name      string     `json:"cluster"`
	Life      string     `json:"life"`
	Owner     string     `json:"owner"`
	Host      string     `json:"host"` // the machine on which dlwb made it
	Regions   []string   `json:"regions"`
	Resources []Resource `json:"resources"`
	// Since is when the oldest of it was made, as far as is known.
	Since time.Time `json:"since,omitzero"`
	// PerHour is what it costs now, in US dollars, as far as is known.
	PerHour float64 `json:"per_hour"`
	// Foreign says that it belongs to somebody else: it is shown and never
	// removed.
	Foreign bool `json:"foreign,omitempty"`
}
