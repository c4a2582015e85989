//go:build unix

package fakeecs

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// booter gives each machine an address of the loopback, and has it join the cluster
// that its user data names.
type booter struct{ f *Fake }

var clusterLine = regexp.MustCompile(`(?m)^ECS_CLUSTER=(.*)$`)

// Boot starts a machine.
func (b booter) Boot(i *fakeaws.Instance) (*fakeaws.Machine, error) {
	name := clusterLine.FindSubmatch(i.UserData)
	if name == nil {
		return nil, errors.New("its user data names no cluster")
	}
	b.f.mu.Lock()
	b.f.machines++
	n := b.f.machines
	b.f.mu.Unlock()
	b.f.every.Go(func() { b.f.join(string(name[1]), i.ID) })
	return &fakeaws.Machine{PrivateIP: fmt.Sprintf("127.%d.%d.%d", b.f.net, n/200, 2+n%200)}, nil
}

// Halt and Remove end nothing: reconcile sees that the machine is gone.
func (b booter) Halt(string, bool) {}

// Remove forgets a machine.
func (b booter) Remove(string) {}

// join has a machine join its cluster once it runs.
func (f *Fake) join(name, id string) {
	for {
		select {
		case <-f.done:
			return
		case <-time.After(30 * time.Millisecond):
		}
		if f.running(id) {
			break
		}
		if !f.AWS.Exists(Region, id) {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clusters[name]; c != nil && c.status == "ACTIVE" {
		x := &member{arn: arn("ecs", "container-instance/"+name+"/"+strings.TrimPrefix(id, "i-")), instance: id}
		c.members[x.arn] = x
	}
}

// task is a container.
type task struct {
	f                                  *Fake
	arn, service, status, desired, why string
	stopCode                           string
	member                             *member
	code                               *int
	proc                               *exec.Cmd
	number                             int
	resources                          map[string]float64
	group, stream, ip, container       string
	own                                bool // it has an address of its own
}

func (t *task) shown() m {
	c := m{"name": t.container, "lastStatus": t.status}
	if t.own {
		c["networkInterfaces"] = []m{{"attachmentId": "a", "privateIpv4Address": t.ip}}
	}
	if t.code != nil {
		c["exitCode"] = *t.code
	}
	return m{"taskArn": t.arn, "lastStatus": t.status, "desiredStatus": t.desired, "containerInstanceArn": t.member.arn, "stoppedReason": t.why, "stopCode": t.stopCode, "containers": []m{c}}
}

// lingers is how long ECS shows a machine that has ended, and its container as running.
// ECS needs a minute or two.
const lingers = 300 * time.Millisecond

// keepCluster has each service have its containers, one on each machine of its group.
func (f *Fake) keepCluster(c *cluster) {
	for name, x := range c.members {
		switch {
		case f.AWS.Exists(Region, x.instance):
		case x.gone.IsZero():
			x.gone = time.Now()
		case time.Since(x.gone) > lingers:
			for _, t := range c.tasks {
				if t.member == x {
					t.kill("Host EC2 (instance " + x.instance + ") terminated.")
				}
			}
			delete(c.members, name)
		}
	}
	for _, s := range c.services {
		alive := 0
		for _, t := range c.tasks {
			if t.service == s.name && t.status != "STOPPED" {
				if alive++; s.status == "DRAINING" || alive > s.want {
					t.stop("ServiceSchedulerInitiated", "Scaling activity initiated by (deployment ecs-svc/1)")
				}
			}
		}
		if s.status == "DRAINING" && alive == 0 && time.Since(s.drained) > 100*time.Millisecond {
			s.status = "INACTIVE"
		}
		for ; alive < s.want; alive++ {
			x := f.free(c, s)
			if x == nil {
				s.event = fmt.Sprintf("(service %s) was unable to place a task because no container instance met all of its requirements.", s.name)
				break
			}
			f.run(c, s, x)
		}
	}
}

// free is a machine of the service's group that has no container of it.
func (f *Fake) free(c *cluster, s *service) *member {
	p := f.providers[s.provider]
	if p == nil || f.groups[p.group] == nil {
		return nil
	}
	for _, id := range f.groups[p.group].machines {
		for _, x := range c.members {
			if x.instance == id && !slices.ContainsFunc(c.tasks, func(t *task) bool { return t.member == x && t.status != "STOPPED" }) {
				return x
			}
		}
	}
	return nil
}

var privateIP = regexp.MustCompile(`<privateIpAddress>([0-9.]+)</privateIpAddress>`)

// run starts a container.
func (f *Fake) run(c *cluster, s *service, x *member) {
	d := f.definition(s.task)
	def := objects(d.raw, "containerDefinitions")[0]
	id := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%s-%d", s.name[max(0, len(s.name)-12):], s.made)))
	said := f.ec2("DescribeInstances", map[string][]string{"InstanceId.1": {x.instance}})
	t := &task{f: f, arn: arn("ecs", "task/"+c.name+"/"+id), service: s.name, status: "PENDING", desired: "RUNNING", member: x, number: s.made, container: str(def, "name")}
	if ip := privateIP.FindStringSubmatch(said); ip != nil {
		t.ip = ip[1]
	}
	if t.own = str(d.raw, "networkMode") == "awsvpc"; t.own {
		f.faces++
		t.ip = fmt.Sprintf("10.0.%d.%d", f.faces/200, 2+f.faces%200)
	}
	s.made++
	c.tasks = append(c.tasks, t)
	lc, _ := def["logConfiguration"].(m)
	options, _ := lc["options"].(m)
	t.group, t.stream = str(options, "awslogs-group"), str(options, "awslogs-stream-prefix")+"/"+t.container+"/"+id
	env := objects(def, "environment")
	for _, s := range objects(def, "secrets") {
		p := f.parameters[strings.TrimPrefix(str(s, "valueFrom"), arn("ssm", "parameter"))]
		if p == nil || f.RefusesTo("ssm:GetParameters") {
			t.status, t.desired, t.stopCode, t.why = "STOPPED", "STOPPED", "TaskFailedToStart", "ResourceInitializationError: unable to pull secrets or registry auth: "+str(s, "valueFrom")
			return
		}
		env = append(env, m{"name": s["name"], "value": str(p, "Value")})
	}
	t.start(texts(def, "command"), env)
}

func (f *Fake) port(of string) string {
	if f.ports[of] == "" {
		f.ports[of] = freePort()
	}
	return f.ports[of]
}

var gpusAsked = regexp.MustCompile(`--num-gpus=(\d+)`)

// start runs the command of a container, or takes note of it where the Ray is the
// fake's own.
func (t *task) start(command []string, env []m) {
	f := t.f
	line := command[len(command)-1]
	isHead := strings.Contains(line, " --head ")
	if !isHead && f.Lost[t.number] {
		line = "echo 'ConnectionError: Ray is trying to start at the head'; sleep 600"
	} else if f.Ray == "" {
		gpus := 0.0
		if n := gpusAsked.FindStringSubmatch(line); n != nil {
			gpus, _ = strconv.ParseFloat(n[1], 64)
		}
		f.board.join(t, isHead, env, gpus)
		line = "echo Ray runtime started.; sleep 600"
	}
	if f.Ray != "" {
		agents := ""
		for _, option := range []string{"dashboard-agent-listen-port", "dashboard-agent-grpc-port", "runtime-env-agent-port", "metrics-export-port"} {
			agents += " --" + option + "=" + freePort()
		}
		if isHead {
			agents += " --ray-client-server-port=" + freePort() + " --temp-dir=" + filepath.Join("/tmp", fmt.Sprintf("fe%d-%d", os.Getpid(), f.net))
		}
		line = strings.NewReplacer("--port=6379", "--port="+f.port("6379"), ":6379", ":"+f.port("6379"), "--dashboard-port=8265", "--dashboard-port="+f.port("8265"),
			"--dashboard-host=127.0.0.1", "--dashboard-host=127.0.0.1", "exec ray start", "exec ray start"+agents+" --num-cpus=2", "--num-cpus=0", "").Replace(line)
	}
	t.proc = exec.Command("sh", "-c", line)
	t.proc.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DLWB_") }), "DLWB_NODE_IP="+t.ip)
	if f.Ray != "" {
		t.proc.Env = append(t.proc.Env, "PATH="+f.Ray+":"+os.Getenv("PATH"))
	}
	for _, e := range env {
		t.proc.Env = append(t.proc.Env, str(e, "name")+"="+str(e, "value"))
	}
	t.proc.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in, err := os.Pipe()
	if err != nil {
		return
	}
	t.proc.Stdout, t.proc.Stderr = in, in
	if err := t.proc.Start(); err != nil {
		t.status, t.desired, t.stopCode, t.why = "STOPPED", "STOPPED", "TaskFailedToStart", "CannotStartContainerError: "+err.Error()
		return
	}
	_ = in.Close()
	t.status = "RUNNING"
	go t.collect(out)
	go t.wait()
}

// collect brings what a container prints to CloudWatch.
func (t *task) collect(out *os.File) {
	defer out.Close()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		t.f.mu.Lock()
		if streams := t.f.logs[t.group]; streams != nil {
			streams[t.stream] = append(streams[t.stream], lines.Text())
		}
		t.f.mu.Unlock()
	}
}

func (t *task) wait() {
	err := t.proc.Wait()
	code := t.proc.ProcessState.ExitCode()
	if err != nil && code < 0 {
		code = 137
	}
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	t.status, t.desired, t.code = "STOPPED", "STOPPED", &code
	if t.why == "" {
		t.stopCode, t.why = "EssentialContainerExited", "Essential container in task exited"
	}
	t.f.board.leave(t)
}

// stop ends a container as ECS does, kill as a machine that goes away.
func (t *task) stop(code, why string) {
	t.end(syscall.SIGTERM, code, why)
}

func (t *task) kill(why string) {
	t.end(syscall.SIGKILL, "TerminationNotice", why)
}

func (t *task) end(signal syscall.Signal, code, why string) {
	if t.status == "STOPPED" {
		return
	}
	if t.desired == "RUNNING" {
		t.desired, t.stopCode, t.why = "STOPPED", code, why
	}
	if t.proc != nil && t.proc.Process != nil {
		_ = syscall.Kill(-t.proc.Process.Pid, signal)
	}
}

// freePort is one that nobody listens on.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0"
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
