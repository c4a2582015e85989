package ecs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/reach"
	"github.com/dlwb/dlwb/cloud/rayjobs"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// gate is the way to the dashboard of one Ray cluster.
type gate struct {
	*rayjobs.Client
	door    *door
	cluster string
	reach   string
	find    func(context.Context) (machine, error) // where the head is now
	notes   string                                 // where it is kept why dlwb stopped a job; empty: in a tag of the cluster

	mu sync.Mutex
	at machine // of the head, as it was seen last

	looks sync.Mutex
	seen  map[string]look // by the id of the job
}

// look is what was seen of a job last; many ask at once, and one look serves them.
type look struct {
	at  time.Time
	job *rayjobs.Job
}

// machine is a machine of the cluster.
type machine struct {
	instance, ip string
	own          bool // the address is that of the container alone, not of its machine
}

// gate gives the way to a cluster's dashboard.
func (p *Provider) gate(d *door, life cloud.Life, cluster, way string) *gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.rays[cluster]; g != nil {
		return g
	}
	g := &gate{door: d, cluster: cluster, reach: way, seen: map[string]look{}, find: func(ctx context.Context) (machine, error) { return d.headOf(ctx, cluster) }}
	g.Client = rayjobs.New(g.dial, func() (string, error) { return tokenOf(life) })
	p.rays[cluster] = g
	return g
}

// dial connects to the dashboard, wherever the head is now.
func (g *gate) dial(ctx context.Context) (net.Conn, error) {
	g.mu.Lock()
	at := g.at
	g.mu.Unlock()
	if at.instance == "" {
		var err error
		if at, err = g.find(ctx); err != nil {
			return nil, err
		}
		g.mu.Lock()
		g.at = at
		g.mu.Unlock()
	}
	conn, err := g.connect(ctx, at)
	if err != nil {
		g.mu.Lock()
		g.at = machine{} // it may be another one now
		g.mu.Unlock()
	}
	return conn, err
}

func (g *gate) connect(ctx context.Context, at machine) (net.Conn, error) {
	if g.reach == reachDirect {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", net.JoinHostPort(at.ip, portDashboard))
	}
	if at.own {
		to := reach.Target{API: g.door.api.SSM(g.door.region), Region: g.door.region, Endpoint: g.door.api.Endpoint(), ID: at.instance}
		return to.Beyond(ctx, at.ip, portDashboard)
	}
	return reach.Session(ctx, g.door.api.SSM(g.door.region), g.door.region, g.door.api.Endpoint(), at.instance, portDashboard)
}

// headOf is the machine of the head's container that runs.
func (d *door) headOf(ctx context.Context, cluster string) (machine, error) {
	all, err := d.tasksOf(ctx, cluster, head)
	if err != nil {
		return machine{}, d.explain(err)
	}
	for _, t := range all {
		if t.status != "RUNNING" || t.stopped {
			continue
		}
		found, err := d.machines(ctx, cluster, []string{t.machine})
		if at, is := found[t.machine]; is || err != nil {
			return at, err
		}
	}
	return machine{}, fmt.Errorf("no head of Ray runs in cluster %s", cluster)
}

// machines are those of ECS's own names for them, as far as they are there: ECS knows a
// machine for some time after it has ended.
func (d *door) machines(ctx context.Context, cluster string, names []string) (map[string]machine, error) {
	found := map[string]machine{}
	for some := range slices.Chunk(names, 100) { // as many as ECS takes
		out, err := d.ecs.DescribeContainerInstances(ctx, &awsecs.DescribeContainerInstancesInput{Cluster: &cluster, ContainerInstances: some})
		if err != nil {
			return nil, d.explain(err)
		}
		of := map[string]string{}
		for _, c := range out.ContainerInstances {
			of[aws.ToString(c.Ec2InstanceId)] = aws.ToString(c.ContainerInstanceArn)
		}
		if len(of) == 0 {
			continue
		}
		// Filters, since a call that names ids fails as a whole where one is unknown.
		all, err := d.ec2.DescribeInstances(ctx, &awsec2.DescribeInstancesInput{Filters: []ec2types.Filter{
			{Name: aws.String("instance-id"), Values: slices.Sorted(maps.Keys(of))},
			{Name: aws.String("instance-state-name"), Values: []string{string(ec2types.InstanceStateNameRunning)}}}})
		if err != nil {
			return nil, d.explain(err)
		}
		for _, r := range all.Reservations {
			for _, i := range r.Instances {
				found[of[aws.ToString(i.InstanceId)]] = machine{instance: aws.ToString(i.InstanceId), ip: aws.ToString(i.PrivateIpAddress)}
			}
		}
	}
	return found, nil
}

// freshFor is how long a look at a job serves others.
const freshFor = time.Second

// see looks at a job; nil: the cluster has none of that id.
func (g *gate) see(ctx context.Context, id string) (*rayjobs.Job, error) {
	g.looks.Lock()
	defer g.looks.Unlock()
	if l := g.seen[id]; l.job != nil && (l.job.Over() || time.Since(l.at) < freshFor) {
		return l.job, nil
	}
	j, err := g.Look(ctx, id)
	if err == nil && j != nil {
		g.seen[id] = look{time.Now(), j}
	}
	return j, err
}

// tokenOf is what everybody shows who asks the Ray of a life anything. It is made once
// and lies beside the life's keys.
func tokenOf(life cloud.Life) (string, error) {
	path := filepath.Join(life.Dir, "ray-token")
	if text, err := os.ReadFile(path); err == nil && len(text) == 2*tokenBytes {
		return string(text), nil
	}
	var raw [tokenBytes]byte
	_, _ = rand.Read(raw[:])
	token := hex.EncodeToString(raw[:])
	return token, wholefile.Write(path, []byte(token), 0o600)
}

const tokenBytes = 32
