package fakeaws

import "time"

// group is a security group.
type group struct {
	common
	Name, Description, VPC string
	In, Out                []rule
}

func (g group) labelled(t tags) group { g.Tags = t; return g }

// rule lets one kind of traffic through: from or to one of CIDR, CIDR6, Group
// and List.
type rule struct {
	ID                       string
	Egress                   bool
	Proto                    string // "-1": all
	From, To                 int    // -1: all
	CIDR, CIDR6, Group, List string
	Description              string
}

// keyPair is a public key.
type keyPair struct {
	common
	Name, Public, Fingerprint, Type string
	Made                            time.Time
}

func (k keyPair) labelled(t tags) keyPair { k.Tags = t; return k }

// placement is a placement group.
type placement struct {
	common
	Name, Strategy string
	Partitions     int
}

func (p placement) labelled(t tags) placement { p.Tags = t; return p }

// volume is a disk.
type volume struct {
	common
	Zone, Device, Snapshot, Type string
	KMSKey                       string
	SizeGB, IOPS, Throughput     int
	Encrypted                    bool
	DeleteOnTermination          bool
	Instance                     string // empty: attached to none
	Made                         time.Time
}

func (v volume) labelled(t tags) volume { v.Tags = t; return v }

// netInterface is a network interface.
type netInterface struct {
	common
	Zone, Subnet, Kind, PrivateIP, MAC, Description string
	Sixes                                           int // IPv6 addresses that it is to have
	Groups                                          []string
	Card, Device                                    int
	Public                                          bool // gets a public address while its instance runs
	DeleteOnTermination                             bool
	Instance                                        string // empty: attached to none
	Made                                            time.Time
}

func (n netInterface) labelled(t tags) netInterface { n.Tags = t; return n }

// address is an Elastic IP.
type address struct {
	common
	IP, Association, Interface, Instance string
}

func (a address) labelled(t tags) address { a.Tags = t; return a }

// spotRequest is a spot instance request.
type spotRequest struct {
	common
	Instance, Zone, Type, Image string
	Price                       string // the most it may cost per hour
	Persistent                  bool
	State, Status, Message      string
	Made, Updated               time.Time
	Interruption                string
}

func (q spotRequest) labelled(t tags) spotRequest { q.Tags = t; return q }

// live reports whether the request has an instance, or may get one.
func (q spotRequest) live() bool { return q.State == "open" || q.State == "active" }
