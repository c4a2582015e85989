//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

// answerLimit is how long a node may take from its start to its first answer.
// It is long because a machine may be busy, not because it usually takes long.
const answerLimit = 20 * time.Second

// Names in the directory of a node.
const (
	homeDir     = "home"
	binDir      = "bin"
	hostKeyFile = "host_key"
	logFile     = "node.log"
	peerSSHName = "dlwb-peer-ssh"
)

var itoa = strconv.Itoa

// Up makes the cluster, or finishes what an earlier Up began. Nodes that
// already run are left as they are. It returns when every node has answered
// with its own host key.
func (p *Provider) Up(ctx context.Context, _ cloud.Life, spec cloud.Spec, progress cloud.Progress) (cloud.Cluster, error) {
	progress = orSilent(progress)
	dir, err := p.clusterDir(spec.Name)
	if err != nil {
		return cloud.Cluster{}, err
	}
	if err := validate(spec); err != nil {
		return cloud.Cluster{}, err
	}
	unlock, err := lockDir(dir, true)
	if err != nil {
		return cloud.Cluster{}, fmt.Errorf("bring up cluster %s: %w", spec.Name, err)
	}
	defer unlock()
	in, err := p.begin(ctx, dir, spec)
	if err != nil {
		return cloud.Cluster{}, fmt.Errorf("bring up cluster %s: %w", spec.Name, err)
	}
	if _, err := makeKey(filepath.Join(dir, keyFile), "dlwb cluster "+spec.Name); err != nil {
		return cloud.Cluster{}, fmt.Errorf("bring up cluster %s: %w", spec.Name, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range in.Count {
		group.Go(func() error {
			if err := p.upNode(ctx, dir, in, i, progress); err != nil {
				return fmt.Errorf("bring up node%d of cluster %s: %w", i, spec.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return cloud.Cluster{}, err
	}
	return describe(dir, in)
}

func orSilent(progress cloud.Progress) cloud.Progress {
	if progress == nil {
		return func(int, string) {}
	}
	return progress
}

// begin commits the intent, or takes up an earlier one.
func (p *Provider) begin(ctx context.Context, dir string, spec cloud.Spec) (intent, error) {
	in, err := readIntent(dir)
	if err == nil && in.Ending {
		// An earlier Down was interrupted: what it left is no basis for a
		// new cluster.
		if left, _, err := finish(ctx, dir, in); err != nil {
			return in, fmt.Errorf("an earlier one of this name is not gone yet (%d processes left): %w", len(left), err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return in, err
		}
		err = fs.ErrNotExist
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := unbegun(dir); err != nil {
			return in, err
		}
		if in, err = newIntent(spec); err != nil {
			return in, err
		}
		return in, in.write(dir)
	case err != nil:
		return in, err
	case in.Count != spec.Count || in.SimulateGPUs != simulated(spec):
		return in, fmt.Errorf("%s; take it down first (dlwb down %s) or use another name", in.unlike(spec), spec.Name)
	}
	return in, nil
}

// unbegun checks that a directory without an intent is one that an Up made and
// did not get further with, and not somebody's files.
func unbegun(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != intentFile+tempSuffix {
			return fmt.Errorf("%s holds %s and no %s, so it was not made by dlwb; move it away or use another name",
				dir, e.Name(), intentFile)
		}
	}
	return nil
}

// upNode brings up one node, unless it already answers.
func (p *Provider) upNode(ctx context.Context, dir string, in intent, i int, progress cloud.Progress) error {
	node, began := nodeDir(dir, i), time.Now()
	state, _ := probe(ctx, dir, i)
	s, err := readServing(node)
	if running := err == nil && s.alive(); running && state != cloud.Alive {
		// An interrupted Up may have started it a moment ago: it may have
		// begun to listen after that look.
		var why string
		if state, why = probe(ctx, dir, i); state != cloud.Alive {
			return errors.Join(ctx.Err(), fmt.Errorf("its process %d runs and does not answer (%s); "+
				"look at %s, or end it (kill -9 %d) and try again", s.PID, why, filepath.Join(node, logFile), s.PID))
		}
	}
	if state == cloud.Alive {
		progress(i, "already running")
		return nil
	}
	if err := p.prepare(node, in, i); err != nil {
		return err
	}
	port, err := p.spawn(ctx, node, in)
	if err != nil {
		return err
	}
	state, why := probe(ctx, dir, i)
	if state != cloud.Alive {
		return fmt.Errorf("it listens on 127.0.0.1:%d and does not answer: %s; its own log:\n%s", port, why, logTail(node))
	}
	progress(i, fmt.Sprintf("answers on 127.0.0.1:%d after %s", port, units.Duration(time.Since(began))))
	return nil
}

// prepare makes the directories, the host key and the programs of a node.
func (p *Provider) prepare(node string, in intent, i int) error {
	for _, d := range []string{node, filepath.Join(node, homeDir), filepath.Join(node, binDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := makeTemp(in.tempDir(i)); err != nil {
		return err
	}
	if _, err := makeKey(filepath.Join(node, hostKeyFile), "dlwb "+in.Name+" node"+itoa(i)); err != nil {
		return err
	}
	if err := sharePackages(filepath.Join(node, homeDir)); err != nil {
		return err
	}
	peer := wrapper(p.exe, node, PeerSSHCommand)
	if err := makeScript(filepath.Join(node, binDir, peerSSHName), peer); err != nil {
		return err
	}
	if in.SimulateGPUs == 0 {
		return nil
	}
	return makeScript(filepath.Join(node, binDir, "nvidia-smi"), wrapper(p.exe, node, SMICommand+" "+shellword.Quote(node)))
}

// wrapper is a program that runs a subcommand of dlwb. When the binary was
// moved or built anew meanwhile, the one that the node still runs as is used.
func wrapper(exe, node, subcommand string) string {
	return "#!/bin/sh\n" +
		"# Made by dlwb for a node of its local provider.\n" +
		"exe=" + shellword.Quote(exe) + "\n" +
		`[ -x "$exe" ] || exe=/proc/$(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' ` + shellword.Quote(filepath.Join(node, servingFile)) + ")/exe\n" +
		`exec "$exe" ` + subcommand + ` "$@"` + "\n"
}

// makeTemp makes a node's temporary directory. The directory around it is open
// to everyone, so one that is already there must be ours.
func makeTemp(path string) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return nil
	}
	if fi, err2 := os.Lstat(path); err2 == nil && isOwnDir(fi) {
		return nil
	}
	return fmt.Errorf("make the node's temporary directory: %w", err)
}

// isOwnDir reports whether a file is a directory, no link to one, and belongs
// to the present user.
func isOwnDir(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return fi.IsDir() && ok && int(st.Uid) == os.Getuid()
}

// spawn starts the process of a node and waits until it says that it listens.
// The process has its own session and no stream in common with this one.
func (p *Provider) spawn(ctx context.Context, node string, in intent) (port int, err error) {
	log, err := os.OpenFile(filepath.Join(node, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	ready, tell, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ready.Close()
	cmd := exec.Command(p.exe, NodeCommand, node)
	cmd.Env = append(callerEnv(), cookieName+"="+in.ID)
	cmd.Dir = filepath.Join(node, homeDir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{tell}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = tell.Close()
	if err != nil {
		return 0, fmt.Errorf("start its process: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = ready.SetReadDeadline(time.Now().Add(answerLimit))
	said, err := io.ReadAll(ready)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, fmt.Errorf("its process %d did not listen within %s; its own log:\n%s", cmd.Process.Pid, answerLimit, logTail(node))
	}
	port, err = strconv.Atoi(strings.TrimSpace(string(said)))
	if s, err2 := readServing(node); err != nil || err2 != nil || s.PID != cmd.Process.Pid {
		_ = cmd.Wait() // it gave up, or left the field to another
	}
	if err != nil {
		return 0, fmt.Errorf("its process ended before it listened; its own log:\n%s", logTail(node))
	}
	return port, nil
}

// logTail is the end of what a node's process wrote.
func logTail(node string) string {
	path := filepath.Join(node, logFile)
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return "(" + path + " is empty)"
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// describe says what a cluster consists of, from its directory alone.
func describe(dir string, in intent) (cloud.Cluster, error) {
	c := cloud.Cluster{
		Name: in.Name, Provider: kind, KeyFile: filepath.Join(dir, keyFile), CreatedAt: in.CreatedAt,
	}
	for i := range in.Count {
		n := cloud.Node{
			Index: i, Name: "node" + itoa(i), User: in.User, PeerHost: "127.0.0.1",
			Interface: loopback(), SimulatedGPUs: in.SimulateGPUs,
		}
		// A node that never came up has neither a key nor an address, and
		// is listed all the same: it may have to be taken down.
		if s, err := readServing(nodeDir(dir, i)); err == nil {
			n.PeerPort = s.Port
			n.Addr = net.JoinHostPort(n.PeerHost, itoa(s.Port))
		}
		if signer, err := readKey(filepath.Join(nodeDir(dir, i), hostKeyFile)); err == nil {
			n.HostKey = authorizedForm(signer.PublicKey())
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c, nil
}

// loopback is the name of the interface that the nodes reach each other on.
func loopback() string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	return ""
}

// Load describes a cluster that an Up began, now or in an earlier life of dlwb.
// Its nodes need not run. The error is fs.ErrNotExist when there is none.
func (p *Provider) Load(name string) (cloud.Cluster, error) {
	dir, err := p.clusterDir(name)
	if err != nil {
		return cloud.Cluster{}, err
	}
	in, err := readIntent(dir)
	if err != nil {
		return cloud.Cluster{}, fmt.Errorf("load cluster %s: %w", name, err)
	}
	return describe(dir, in)
}

// List describes all clusters, also those that never came up. One that can't
// be read makes an error, the others are returned with it.
func (p *Provider) List() ([]cloud.Cluster, error) {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []cloud.Cluster
	for _, e := range entries {
		if !e.IsDir() || !namePattern.MatchString(e.Name()) {
			continue
		}
		c, loadErr := p.Load(e.Name())
		if loadErr == nil {
			found = append(found, c)
		} else if !errors.Is(loadErr, fs.ErrNotExist) {
			err = errors.Join(err, loadErr)
		}
	}
	return found, err
}
