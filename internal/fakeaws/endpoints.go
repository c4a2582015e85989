package fakeaws

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// blockLasts is the length of a capacity block.
const blockLasts = 24 * time.Hour

type endpointXML struct {
	ID     string           `xml:"instanceConnectEndpointId"`
	DNS    string           `xml:"dnsName"`
	State  string           `xml:"state"`
	VPC    string           `xml:"vpcId"`
	Subnet string           `xml:"subnetId"`
	Zone   string           `xml:"availabilityZone"`
	Shows  bool             `xml:"preserveClientIp"`
	Groups wire.Set[string] `xml:"securityGroupIdSet"`
	Opens  string           `xml:"ipAddressType"`
}

// EndpointID is the id of the Instance Connect endpoint of a VPC.
func EndpointID(region, vpc string) string { return wire.FixedID("eice", region+vpc) }

func (r *region) endpoints() (all []endpointXML) {
	for _, v := range r.VPCs {
		if !v.Endpoint {
			continue
		}
		vpc := VPCID(r.Name, v.Name)
		i := slices.IndexFunc(r.others, func(s subnet) bool { return s.VPC == vpc })
		opens := v.Opens
		orElse(&opens, "ipv4")
		all = append(all, endpointXML{EndpointID(r.Name, v.Name), strings.TrimPrefix(r.s.URL, "http://"), "create-complete", vpc,
			r.others[i].ID, r.others[i].Zone, v.ShowsClient, wire.SetOf([]string{EndpointGroup(r.Name, v.Name)}), opens})
	}
	return all
}

func describeInstanceConnectEndpoints(q *request) (any, error) {
	ids, out := q.list("InstanceConnectEndpointId"), []endpointXML{}
	for _, e := range q.region.endpoints() {
		ok, err := q.passes(nil, fields{"vpc-id": one(e.VPC), "state": one(e.State), "subnet-id": one(e.Subnet), "instance-connect-endpoint-id": one(e.ID)})
		if err != nil {
			return nil, err
		}
		if ok && among(e.ID, ids) {
			out = append(out, e)
		}
	}
	if len(ids) > 0 && len(out) == 0 {
		return nil, bad("InvalidInstanceConnectEndpointId.NotFound", "The instance connect endpoint '%s' does not exist", ids[0])
	}
	return struct {
		Endpoints wire.Set[endpointXML] `xml:"instanceConnectEndpointSet"`
		listing
	}{wire.SetOf(out), listing{}}, nil
}

var tunnelScope = regexp.MustCompile(`^([^/]+)/\d{8}/([^/]+)/ec2-instance-connect/aws4_request$`)

// openTunnel is what an endpoint answers: a websocket that carries the bytes of a
// connection to a private address, where the security groups let it in.
func (s *Server) openTunnel(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	scope := tunnelScope.FindStringSubmatch(v.Get("X-Amz-Credential"))
	signed, err := time.Parse("20060102T150405Z", v.Get("X-Amz-Date"))
	switch {
	case scope == nil || scope[1] != AccessKey || err != nil || v.Get("X-Amz-SignedHeaders") != "host" || len(v.Get("X-Amz-Signature")) != 64:
		http.Error(w, "The request signature could not be verified", http.StatusForbidden)
		return
	case v.Get("X-Amz-Expires") != "60" || time.Since(signed).Abs() > time.Minute:
		http.Error(w, "Signature expired", http.StatusForbidden)
		return
	}
	s.mu.Lock()
	what := s.tunnelTo(scope[2], v.Get("instanceConnectEndpointId"), v.Get("privateIpAddress"), v.Get("remotePort"))
	s.tunnels++
	s.mu.Unlock()
	if what != "" {
		http.Error(w, what, http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(v.Get("privateIpAddress"), v.Get("remotePort")))
	if err != nil {
		http.Error(w, "Unable to connect to target", http.StatusGatewayTimeout)
		return
	}
	defer to.Close()
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	c.SetReadLimit(1 << 16) // what AWS takes in one frame
	life, end := context.WithCancel(context.Background())
	defer end()
	stop := context.AfterFunc(life, func() { _ = to.Close() })
	defer stop()
	from := websocket.NetConn(life, c, websocket.MessageBinary)
	go func() {
		defer end()
		_, _ = io.Copy(from, to)
	}()
	go func() {
		select {
		case <-s.done:
			end()
		case <-life.Done():
		}
	}()
	_, _ = io.Copy(to, from)
}

// tunnelTo says why an endpoint opens no tunnel to an address; empty: it does.
// The lock is held.
func (s *Server) tunnelTo(name, endpoint, ip, port string) string {
	at := slices.IndexFunc(s.regions, func(r *region) bool { return r.Name == name })
	if at < 0 {
		return "no such region"
	}
	r := s.regions[at]
	e := slices.IndexFunc(r.endpoints(), func(e endpointXML) bool { return e.ID == endpoint })
	if e < 0 {
		return "no such endpoint"
	}
	to, _ := strconv.Atoi(port)
	for _, i := range r.instances.all() {
		if sub, _ := r.subnet(i.Subnet); (i.PrivateIP == ip || i.IPv6 == ip) && sub.VPC == r.endpoints()[e].VPC {
			if r.admits(i, r.endpoints()[e], to) {
				return ""
			}
			return "the security groups do not let the endpoint in"
		}
	}
	return "no instance of the endpoint's VPC has this address"
}

// admits reports whether an instance's groups let in the tunnels of an endpoint.
func (r *region) admits(i instance, e endpointXML, port int) bool {
	for _, id := range i.Groups {
		g, _ := r.groups.get(id)
		for _, in := range g.In {
			right := in.Proto == "-1" || in.Proto == "tcp" && in.From <= port && port <= in.To
			local, err := netip.ParsePrefix(in.CIDR)
			here := e.Shows && err == nil && local.Contains(netip.MustParseAddr("127.0.0.1"))
			if right && (here || !e.Shows && slices.Contains(e.Groups.Items, in.Group)) {
				return true
			}
		}
	}
	return false
}

// Tunnels is how many tunnels were asked for.
func (s *Server) Tunnels() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tunnels
}
