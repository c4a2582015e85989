package boot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/local/options"
	"github.com/dlwb/dlwb/internal/fakeaws"
	"golang.org/x/crypto/ssh"
)

// guest is one machine.
type guest struct {
	rig     *Rig
	id      string
	dir     string // stands for its file system
	node    string // of the local provider
	private string // address, for its whole life

	// Of the boot that goes on; one begins when the last one is through.
	user      string // who logs in
	installed bool   // a boot before this one came so far

	power sync.Mutex // held while it is switched on or off

	mu        sync.Mutex
	instance  fakeaws.Instance
	end       context.CancelFunc // of the present boot; nil: it is off
	booted    chan struct{}      // closed when the boot is through
	inside    string             // where its node listens
	answering time.Time
	doors     []net.Listener
	conns     map[net.Conn]struct{}
	serving   sync.WaitGroup // doors and connections
	notice    *notice
}

func newGuest(r *Rig, id, private string) *guest {
	return &guest{
		rig: r, id: id, private: private, dir: r.Dir(id),
		node:  filepath.Join(r.opt.Dir, "nodes", id, "node0"),
		conns: map[net.Conn]struct{}{},
	}
}

// start switches the machine on.
func (g *guest) start(i fakeaws.Instance, public string) (*fakeaws.Machine, error) {
	g.power.Lock()
	defer g.power.Unlock()
	for _, d := range []string{"lib", "ssh", "systemd/enabled", "systemd/runs", "run", "pts", "root"} {
		if err := os.MkdirAll(filepath.Join(g.dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("boot %s: %w", g.id, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	booted := make(chan struct{})
	g.mu.Lock()
	g.instance, g.end, g.booted = i, cancel, booted
	g.mu.Unlock()
	go func() {
		defer close(booted)
		if err := g.boot(ctx, i, public); err != nil && ctx.Err() == nil {
			g.say("boot: %v", err)
		}
	}()
	return &fakeaws.Machine{PublicIP: host(public), PrivateIP: host(g.private)}, nil
}

func host(addr string) string {
	h, _, _ := net.SplitHostPort(addr)
	return h
}

// boot is what happens from the power switch to the end of user-data, in the
// order of cloud-init. It goes on where something fails, as cloud-init does.
func (g *guest) boot(ctx context.Context, i fakeaws.Instance, public string) error {
	began := time.Now()
	c, badConfig := parse(i.UserData)
	if badConfig != nil {
		g.say("%v", badConfig)
	}
	for _, key := range c.Ignored {
		g.say("cloud-config: %s is not obeyed in this rig", key)
	}
	g.user = cmp.Or(c.User, g.rig.opt.User)
	cluster, err := g.up(ctx, i)
	if err != nil {
		return err
	}
	shell, err := dial(cluster)
	if err != nil {
		return err
	}
	defer shell.Close()
	defer context.AfterFunc(ctx, func() { _ = shell.Close() })()
	first := !g.installed
	if first {
		if err := g.install(c, i); err != nil {
			return err
		}
		g.installed = true
	}
	g.run(shell, "bootcmd", c.Early)
	if first {
		g.writeFiles(c.Files)
	} else {
		g.run(shell, "units", g.enabledUnits())
	}
	if !waitUntil(ctx, began.Add(g.rig.planFor(g.id).delay)) {
		return ctx.Err()
	}
	if err := g.openDoors(ctx, cluster.Nodes[0].Addr, public); err != nil {
		return err
	}
	if first {
		g.run(shell, "runcmd", c.Late)
	}
	return nil
}

// up starts the node that plays the machine.
func (g *guest) up(ctx context.Context, i fakeaws.Instance) (cloud.Cluster, error) {
	gpus := 0
	if g.rig.opt.GPUs != nil {
		gpus = g.rig.opt.GPUs(i.Type)
	}
	return g.rig.local.Up(ctx, cloud.Life{}, cloud.Spec{Name: g.id, Count: 1, Own: &options.Machines{User: g.user, SimulateGPUs: gpus}}, nil)
}

// dial connects to the node by its own port and the local provider's key,
// which nothing of the program under test knows.
func dial(c cloud.Cluster) (*ssh.Client, error) {
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, err
	}
	shown, _, _, _, err := ssh.ParseAuthorizedKey([]byte(c.Nodes[0].HostKey))
	if err != nil {
		return nil, err
	}
	return ssh.Dial("tcp", c.Nodes[0].Addr, &ssh.ClientConfig{
		User: c.Nodes[0].User, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: ssh.FixedHostKey(shown), Timeout: 10 * time.Second,
	})
}

// run runs a script of user-data as the guest's root. It is part of the node
// and ends with it.
func (g *guest) run(shell *ssh.Client, name, script string) {
	if script == "" {
		return
	}
	path := filepath.Join(g.dir, "run", name)
	err := os.WriteFile(path, []byte(g.rewrite(script)), 0o755)
	if err == nil {
		err = execute(shell, "exec sudo sh "+path+" >>"+filepath.Join(g.dir, "console")+" 2>&1")
	}
	if err != nil {
		g.say("%s: %v", name, err)
	}
}

func execute(shell *ssh.Client, line string) error {
	s, err := shell.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Run(line)
}

// halt switches the machine off. It returns when nothing of it runs any more.
func (g *guest) halt(ctx context.Context, keepDisk bool) error {
	g.power.Lock()
	defer g.power.Unlock()
	g.mu.Lock()
	end, booted := g.end, g.booted
	g.end, g.notice = nil, nil
	g.mu.Unlock()
	if end != nil {
		end()
		<-booted
	}
	g.closeDoors()
	if keepDisk {
		return g.endNode(ctx)
	}
	receipt, err := g.rig.local.Down(ctx, cloud.Life{Name: g.id}, nil)
	if err == nil && !receipt.Proven() {
		err = errors.New("not everything is proven gone")
	}
	g.rig.keepConsole(g.id)
	if err = errors.Join(err, os.RemoveAll(g.dir)); err != nil {
		return fmt.Errorf("remove the machine of %s: %w", g.id, err)
	}
	return nil
}

// endNode ends the node's process and with it all that it ran, and keeps its
// files.
func (g *guest) endNode(ctx context.Context) error {
	cluster, err := g.rig.local.Load(g.id)
	if err != nil {
		return fmt.Errorf("stop the machine of %s: %w", g.id, err)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		states, err := g.rig.local.Probe(ctx, cluster)
		if err == nil && states[0].State == cloud.Gone {
			return nil
		}
		if time.Since(began) > 10*time.Second {
			return fmt.Errorf("stop the machine of %s: its node does not end (%w)", g.id, err)
		}
		g.signalNode()
	}
}

// signalNode asks the node's process to end. It is a child of this process, so
// that its number is no other's until a probe has found it dead.
func (g *guest) signalNode() {
	var serving struct{ PID int }
	text, err := os.ReadFile(filepath.Join(g.node, "serving.json"))
	if err != nil || json.Unmarshal(text, &serving) != nil || serving.PID <= 1 {
		return
	}
	if p, err := os.FindProcess(serving.PID); err == nil {
		_ = p.Signal(terminate)
		_ = p.Release()
	}
}

// waitUntil returns false when the context ended before.
func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// say adds a line to the machine's console.
func (g *guest) say(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(g.dir, "console"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return // the machine is being removed
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}
