//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// Down ends everything that ever ran on the cluster, removes every file of it,
// and then looks again: what the receipt says was found by that second look. A
// cluster that is not there makes an empty receipt and no error.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	name := life.Name
	progress = orSilent(progress)
	receipt := cloud.Receipt{Cluster: name, Provider: kind}
	fail := func(err error) (cloud.Receipt, error) {
		return receipt, fmt.Errorf("take down cluster %s: %w", name, err)
	}
	dir, err := p.clusterDir(name)
	if err != nil {
		return fail(err)
	}
	unlock, err := lockDir(dir, false)
	if errors.Is(err, errNoCluster) {
		return receipt, nil
	}
	if err != nil {
		receipt.Resources = []cloud.Resource{{Kind: "directory", ID: dir, State: cloud.Unknown, Proof: err.Error()}}
		return fail(err)
	}
	defer unlock()
	in, err := readIntent(dir)
	if errors.Is(err, errNoCluster) {
		if err = removeUnbegun(dir); err == nil {
			receipt.Resources = []cloud.Resource{{Kind: "directory", ID: dir, State: cloud.Gone, Proof: "nothing had been started; " + dir + " is not there any more"}}
			return receipt, nil
		}
	}
	if err == nil {
		err = notFromWithin(in)
	}
	if err != nil {
		receipt.Resources = []cloud.Resource{{Kind: "directory", ID: dir, State: cloud.Unknown, Proof: err.Error()}}
		return fail(err)
	}
	if in.Ending = true; in.write(dir) != nil {
		// A full disk must not keep anything running.
		progress(-1, "the disk takes no more; going on without a note that this cluster ends")
	}
	found := survey(dir, in)
	endNodes(ctx, found, progress)
	left, boxes, err := finish(ctx, dir, in)
	fill(&receipt, dir, in, found, left)
	receipt.Resources = append(receipt.Resources, boxes...)
	progress(-1, fmt.Sprintf("%d processes and %d files left", receipt.ProcessesLeft, receipt.FilesLeft))
	if err == nil && !receipt.Proven() {
		err = errors.New("not everything is proven gone")
	}
	if err != nil {
		return fail(err)
	}
	return receipt, nil
}

// removeUnbegun removes what an Up left that was interrupted before it had
// written its intent.
func removeUnbegun(dir string) error {
	if err := unbegun(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// notFromWithin refuses to saw off the branch this process sits on: it would
// end itself half way.
func notFromWithin(in intent) error {
	if os.Getenv(cookieName) == in.ID || carriers(in.ID)(os.Getpid()) {
		return errors.New("this dlwb runs on a node of that very cluster; run it from outside")
	}
	return nil
}

// ending is a node on its way out.
type ending struct {
	index int
	serving
	wasAlive bool
	how      string
}

// survey reads which process each node is, before anything is ended.
func survey(dir string, in intent) []ending {
	nodes := make([]ending, in.Count)
	for i := range nodes {
		s, _ := readServing(nodeDir(dir, i))
		nodes[i] = ending{index: i, serving: s, wasAlive: s.alive()}
	}
	return nodes
}

// endNodes asks every node to end, all at once, and waits. A node ends what runs
// on it before it ends itself. One that doesn't is left to the sweep.
func endNodes(ctx context.Context, nodes []ending, progress cloud.Progress) {
	var all sync.WaitGroup
	for i := range nodes {
		if !nodes[i].wasAlive {
			nodes[i].how = "did not run any more"
			continue
		}
		all.Go(func() {
			nodes[i].end(ctx)
			progress(nodes[i].index, nodes[i].how)
		})
	}
	all.Wait()
}

// end asks a node to end and waits until it has.
func (e *ending) end(ctx context.Context) {
	began := time.Now()
	p := process{pid: e.PID, start: e.Start}
	p.signal(syscall.SIGTERM, syscall.SIGCONT) // one that was stopped hears nothing
	for e.alive() {
		if time.Since(began) > grace+killLimit || waits.Pause(ctx, 5*time.Millisecond) != nil {
			e.how = "did not end when it was asked to, and was killed"
			return
		}
	}
	e.how = "ended with what ran on it in " + units.Duration(time.Since(began))
}

// finish ends whatever process is left of a cluster and removes its containers and its
// files, the intent last: as long as something is left, the next Down must know what to
// look for. Besides what is left it returns the receipt's lines for containers.
func finish(ctx context.Context, dir string, in intent) (left []process, boxes []cloud.Resource, err error) {
	if left, err = sweep(ctx, in); err != nil || len(left) > 0 {
		return left, nil, err // its files may be what tells the user why
	}
	if boxes, err = removeContainers(ctx, dir, in); err != nil {
		return nil, boxes, err
	}
	if len(boxes) > 0 { // an engine may leave something running
		if left, err = sweep(ctx, in); err != nil || len(left) > 0 {
			return left, boxes, err
		}
	}
	removeGroups(dir)
	if err := removeNodes(dir, in); err != nil {
		return nil, boxes, err
	}
	return nil, boxes, removeRest(dir)
}

// sweep ends every process of a cluster, and returns those that are left.
func sweep(ctx context.Context, in intent) ([]process, error) {
	_, err := end(ctx, membersOf(in.ID), grace)
	left, lookErr := membersOf(in.ID)()
	return left, errors.Join(err, lookErr)
}

// removeContainers removes the containers of all nodes as the nodes would. It returns a
// line of the receipt for each node with an image, and an error where containers are left,
// or may be.
func removeContainers(ctx context.Context, dir string, in intent) (lines []cloud.Resource, err error) {
	for i := range in.Count {
		n := node{dir: nodeDir(dir, i), home: filepath.Join(nodeDir(dir, i), homeDir), temp: in.tempDir(i), shell: shell(), index: i, intent: in}
		has, left := containers.Remove(ctx, filepath.Join(n.home, "dlwb", in.Name), n.commandEnv())
		if !has && left == nil {
			continue
		}
		line := cloud.Resource{Kind: "containers", ID: "of node" + itoa(i), Node: "node" + itoa(i), State: cloud.Gone, Proof: containers.Proof}
		if left != nil {
			line.State, line.Proof = cloud.Unknown, left.Error()
			err = errors.Join(err, fmt.Errorf("%s: %w", line.Node, left))
			if len(left.Containers) > 0 {
				line.ID, line.State = strings.Join(left.Containers, ", "), cloud.Alive
			}
		}
		lines = append(lines, line)
	}
	return lines, err
}

// removeGroups removes the cgroups that runs have made and could not remove, as
// their supervisor was killed. One that holds a process stays: that is not of
// this cluster.
func removeGroups(dir string) {
	const cgroups = "/sys/fs/cgroup/"
	records, _ := fs.Glob(os.DirFS(dir), "node*/"+homeDir+"/.dlwb/runs/*/cgroup")
	for _, record := range records {
		text, err := os.ReadFile(filepath.Join(dir, record))
		group := strings.TrimSpace(string(text))
		if err == nil && strings.HasPrefix(group, cgroups) && filepath.Clean(group) == group && strings.HasPrefix(filepath.Base(group), "dlwb-") {
			_ = syscall.Rmdir(group)
		}
	}
}

// fill looks once more and writes down what it sees.
func fill(r *cloud.Receipt, dir string, in intent, nodes []ending, left []process) {
	r.Lived = cloud.Lived(in.CreatedAt, time.Now())
	add := func(res cloud.Resource) {
		res.Lived = r.Lived
		r.Resources = append(r.Resources, res)
	}
	if again, err := membersOf(in.ID)(); err == nil {
		left = again
	}
	r.ProcessesLeft = len(left)
	for _, e := range nodes {
		name := "node" + itoa(e.index)
		add(nodeProcess(name, e, in, len(left)))
		add(directory(name, nodeDir(dir, e.index), &r.FilesLeft))
		add(directory(name, in.tempDir(e.index), &r.FilesLeft))
	}
	add(directory("", dir, &r.FilesLeft))
	for _, p := range left {
		add(cloud.Resource{
			Kind: "process", ID: fmt.Sprintf("pid %d (%s)", p.pid, p.name), Node: nodeOf(p),
			State: cloud.Alive, Proof: "it is this cluster's (" + cookieName + ") and is still there after KILL",
		})
	}
}

// nodeOf is the node that a process was started on, as far as it tells.
func nodeOf(p process) string {
	if i := variable(p.pid, "DLWB_NODE"); i != "" {
		return "node" + i
	}
	return ""
}

// nodeProcess is the line of a receipt for the process of one node.
func nodeProcess(name string, e ending, in intent, left int) cloud.Resource {
	res := cloud.Resource{Kind: "process", Node: name, State: cloud.Gone, ID: fmt.Sprintf("pid %d", e.PID)}
	others := fmt.Sprintf("no process carries %s=%s…", cookieName, in.ID[:8])
	if left > 0 {
		others = fmt.Sprintf("%d processes carry %s=%s…", left, cookieName, in.ID[:8])
	}
	switch {
	case e.PID == 0:
		res.ID = "none"
		res.Proof = "it never listened; " + others
		if left > 0 {
			res.State = cloud.Unknown
		}
	case e.alive():
		res.State, res.Proof = cloud.Alive, fmt.Sprintf("process %d is still there after KILL", e.PID)
	default:
		res.Proof = fmt.Sprintf("%s; no process has pid %d and its start time; %s", e.how, e.PID, others)
	}
	return res
}

// directory is the line of a receipt for one directory. What lies in a node's
// directory is counted there and once more for nothing else.
func directory(node, path string, files *int) cloud.Resource {
	res := cloud.Resource{Kind: "directory", ID: path, Node: node, State: cloud.Gone, Proof: path + " is not there any more"}
	left, err := countFiles(path)
	switch {
	case err != nil:
		res.State, res.Proof = cloud.Unknown, err.Error()
	case len(left) > 0:
		res.State = cloud.Alive
		res.Proof = fmt.Sprintf("%d files are left: %s", len(left), strings.Join(left[:min(3, len(left))], ", "))
	}
	// The cluster's own directory holds those of its nodes: their files
	// were counted before it.
	for _, f := range left {
		if node != "" || !strings.HasPrefix(f, filepath.Join(path, "node")) {
			*files++
		}
	}
	return res
}
