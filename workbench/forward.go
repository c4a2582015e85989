package workbench

import (
	"os"
	"os/exec"
	"strconv"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/tunnel"
)

// listedForwards are the forwards that the profile of a cluster lists: of its
// newest run, or before there is one, of the file. None is an error.
func (w *Workbench) listedForwards(cluster string) ([]string, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return nil, err
	}
	var listed []string
	runs, err := w.runs(c.Name)
	switch {
	case err != nil:
		return nil, err
	case len(runs) > 0 && runs[0].Life == c.ID:
		_, data, err := w.runRecord(runs[0].ID)
		if err != nil {
			return nil, err
		}
		listed = data.Forward
	case c.ProfileSource != "":
		p, err := profiles.Parse(c.ProfilePath, []byte(c.ProfileSource))
		if err != nil {
			return nil, err
		}
		listed = p.Forward
	}
	if len(listed) == 0 {
		return nil, &event.Fault{What: "open the forwards of cluster " + c.Name, Node: -1, Why: "its profile lists none",
			Next: "name one: dlwb forward " + c.Name + " jupyter; or list them in the profile: forward: [jupyter, 8265]"}
	}
	return listed, nil
}

// ShellCommand is a command that gives the terminal to a shell on a node.
func (w *Workbench) ShellCommand(cluster string, node int) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		exe = "dlwb"
	}
	return exec.Command(exe, "ssh", cluster, strconv.Itoa(node))
}

// tunnelTo is a cluster as tunnels to one of its nodes need it.
func (w *Workbench) tunnelTo(cluster string, node int) (tunnel.Cluster, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return tunnel.Cluster{}, err
	}
	d, err := w.clusterData(c)
	if err != nil {
		return tunnel.Cluster{}, err
	}
	l, err := w.visit(c, "reach a port of cluster "+c.Name, job.Dial)
	if err != nil {
		return tunnel.Cluster{}, err
	}
	n, err := l.node(c.Name, node)
	if err != nil {
		return tunnel.Cluster{}, err
	}
	to := tunnel.Cluster{Name: c.Name, Life: c.ID, Mark: d.Life, Number: node, Node: n, SharedHost: traits(c.Provider).SharedHost, Code: planning.RemoteCode(c.Name)}
	switch env, made := environment.OfNode(d.Envs, node); {
	case made:
		to.Python, to.Env = env.Python, env.Env
	case l.dir != "": // no environment is made there: Python is the image's
		to.Python, to.Code = "python3", l.dir
	}
	return to, nil
}

// machinesOf are the machines of a cluster that came up.
func (w *Workbench) machinesOf(cluster string) (string, cloud.Cluster, error) {
	c, err := w.FindCluster(cluster)
	if err != nil {
		return "", cloud.Cluster{}, err
	}
	d, err := w.clusterData(c)
	if err == nil {
		err = lacks("configure ssh for cluster "+c.Name, d.Cluster, job.Exec)
	}
	if err == nil && len(d.Cluster.Nodes) == 0 {
		err = &event.Fault{What: "configure ssh for cluster " + c.Name, Node: -1, Why: "it never came up",
			Next: "dlwb down " + c.Name + " removes what there is of it"}
	}
	return c.Name, d.Cluster, err
}
