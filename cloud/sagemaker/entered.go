package sagemaker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/reach"
	"github.com/dlwb/dlwb/internal/job"
)

// entered is a host of a job that was made with remote debugging: sessions of Systems
// Manager lead into its container, carried by AWS's plugin. One session leads to a port,
// whatever the number of connections, and ends when there was none for a while.
type entered struct {
	*replica

	mu     sync.Mutex
	ports  map[int]*passageTo
	closed bool
}

var _ job.Visited = (*entered)(nil)

// passageTo is a session to a port.
type passageTo struct {
	mu   sync.Mutex // held while it is opened
	port *reach.Port

	users int         // connections; guarded by entered.mu
	idle  *time.Timer // ends it; guarded by entered.mu
}

// idleLimit is how long a session to a port stays without a connection.
const idleLimit = 30 * time.Second

// noPlugin is what is to be done where the plugin is missing or too old.
const noPlugin = "install it: https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"

// target is where sessions to the host lead, once the job is seen to let them in.
func (e *entered) target(ctx context.Context) (reach.Target, error) {
	if _, err := reach.Ready(ctx); err != nil { // before anybody is asked
		return reach.Target{}, &plainError{err.Error(), noPlugin}
	}
	d, err := e.door(ctx)
	if err != nil {
		return reach.Target{}, err
	}
	l, err := d.see(ctx, e.ref.Name)
	if err != nil {
		return reach.Target{}, err
	}
	if l == nil {
		return reach.Target{}, &plainError{"SageMaker has no job " + e.ref.Name, ""}
	}
	if err := closedTo(l.job); err != nil {
		return reach.Target{}, err
	}
	client := ssm.NewFromConfig(d.api.Config(d.region))
	return reach.Target{API: client, Region: d.region, Endpoint: aws.ToString(client.Options().BaseEndpoint),
		ID: fmt.Sprintf("sagemaker-training-job:%s_%s", e.ref.Name, hostName(e.number))}, nil
}

// hostName is the name of a host of a job.
func hostName(number int) string { return "algo-" + strconv.Itoa(number+1) }

// closedTo is why the containers of a job can't be entered now; nil: they can.
func closedTo(j *sagemaker.DescribeTrainingJobOutput) error {
	name := aws.ToString(j.TrainingJobName)
	switch {
	case terminal(j):
		return &plainError{fmt.Sprintf("job %s is over (%s): its containers are gone", name, j.TrainingJobStatus), "dlwb run"}
	case j.RemoteDebugConfig == nil || !aws.ToBool(j.RemoteDebugConfig.EnableRemoteDebug):
		return &plainError{"remote debugging of job " + name + " was turned off", "aws sagemaker update-training-job --training-job-name " + name + " --remote-debug-config EnableRemoteDebug=true"}
	case j.TrainingJobStatus != types.TrainingJobStatusInProgress || j.SecondaryStatus != types.SecondaryStatusTraining:
		return &plainError{fmt.Sprintf("job %s is %s: its containers are entered while it is Training", name, j.SecondaryStatus), "try again when it trains"}
	}
	return nil
}

// refused says what an error of a session means.
func (e *entered) refused(err error) error {
	code, _ := awsapi.CodeOf(err)
	switch {
	case code == "TargetNotConnected":
		return &plainError{"the agent of Systems Manager in " + hostName(e.number) + " does not answer",
			fmt.Sprintf("it needs some seconds after the start, and rights of the role to ssmmessages (dlwb plan shows them); what it says of itself: log stream %s/%s-…/ssm in %s", e.ref.Name, hostName(e.number), group)}
	case code != "":
		return awsapi.Explain(err, awsapi.Call{Action: "StartSession", Region: e.ref.Region, ID: e.ref.Name})
	}
	return err
}

// Shell begins a session with a shell.
func (e *entered) Shell(ctx context.Context) (*exec.Cmd, func(), error) {
	to, err := e.target(ctx)
	if err != nil {
		return nil, nil, err
	}
	program, end, err := to.Shell(ctx)
	return program, end, e.refused(err)
}

// Openly says who else reaches the ports: the plugin listens on loopback.
func (*entered) Openly() string {
	return "AWS's plugin, which carries it, listens on a port of its own here, which every user of this machine reaches"
}

// DialContext connects to a port of the host.
func (e *entered) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	to, err := e.use(number)
	if err != nil {
		return nil, err
	}
	conn, err := e.through(ctx, to, number)
	if err != nil {
		e.leave(number, to)
		return nil, err
	}
	return &passing{Conn: conn, leave: sync.OnceFunc(func() { e.leave(number, to) })}, nil
}

// use takes the session to a port for a connection.
func (e *entered) use(number int) (*passageTo, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, net.ErrClosed
	}
	to := e.ports[number]
	if to == nil {
		to = &passageTo{}
		if e.ports == nil {
			e.ports = map[int]*passageTo{}
		}
		e.ports[number] = to
	}
	if to.users++; to.idle != nil {
		to.idle.Stop()
	}
	return to, nil
}

// through connects by a session, and begins one where there is none that goes on.
func (e *entered) through(ctx context.Context, to *passageTo, number int) (net.Conn, error) {
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.port == nil || to.port.Over() {
		at, err := e.target(ctx)
		if err != nil {
			return nil, err
		}
		if to.port, err = at.Open(ctx, number); err != nil {
			to.port = nil
			return nil, e.refused(err)
		}
	}
	return to.port.Dial(ctx)
}

// leave gives a session back. Without another connection it ends after a while.
func (e *entered) leave(number int, to *passageTo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if to.users--; to.users > 0 || e.ports[number] != to {
		return
	}
	to.idle = time.AfterFunc(idleLimit, func() {
		e.mu.Lock()
		used := to.users > 0 || e.ports[number] != to
		if !used {
			delete(e.ports, number)
		}
		e.mu.Unlock()
		if !used {
			to.end()
		}
	})
}

func (to *passageTo) end() {
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.port != nil {
		to.port.Close()
	}
}

// Close ends all sessions to ports.
func (e *entered) Close() error {
	e.mu.Lock()
	ports := e.ports
	e.ports, e.closed = nil, true
	for _, to := range ports {
		if to.idle != nil {
			to.idle.Stop()
		}
	}
	e.mu.Unlock()
	var every sync.WaitGroup
	for _, to := range ports {
		every.Go(to.end)
	}
	every.Wait()
	return nil
}

// passing is a connection that gives its session back.
type passing struct {
	net.Conn
	leave func()
}

// CloseWrite ends what goes there.
func (c *passing) CloseWrite() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the connection.
func (c *passing) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// checkDebug looks whether sessions could be carried from here.
func (c *check) checkDebug(ctx context.Context) []cloud.Finding {
	if !c.m.RemoteDebug {
		return nil
	}
	if _, err := reach.Ready(ctx); err != nil {
		return []cloud.Finding{cloud.Warning("remote_debug", "shells and tunnels need AWS's plugin on this machine: "+err.Error(), noPlugin)}
	}
	text := "shells and tunnels by Systems Manager, while the job trains"
	if c.m.Subnet != "" {
		text += "; from " + c.m.Subnet + " it must be reached: by NAT, or a VPC endpoint of ssmmessages"
	}
	return []cloud.Finding{cloud.Passed("remote_debug", text)}
}
