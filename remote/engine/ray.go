package engine

import (
	_ "embed" // the look at the cluster
	"fmt"
	"slices"
	"strconv"
)

// rayLook says which nodes of a Ray cluster are missing.
//
//go:embed ray.py
var rayLook string

// rayBegin is ray start for slow machines.
//
//go:embed raystart.py
var rayBegin string

const (
	// rayPatience is for how many seconds the head waits for the other nodes, before
	// it takes those that are missing for lost. They are named all the time.
	rayPatience = 180
	// rayStarting is for how many seconds a node waits for the parts of its Ray.
	rayStarting = 240
	// rayLimit is how long the head may take to come up, and the others to join.
	rayLimit = rayStarting + rayPatience
)

// The ports of Ray behind that at which nodes join.
const (
	rayDashboard = 1 + iota
	rayClient
	rayAgents // those of each node of a machine
)

// rayAgentPorts are the options for the ports of a node's own.
var rayAgentPorts = []string{"--dashboard-agent-listen-port=", "--dashboard-agent-grpc-port=", "--runtime-env-agent-port=", "--metrics-export-port="}

// rayEnv is how long the parts of a Ray wait for each other: their own times are
// for a machine that has nothing else to do.
var rayEnv = []string{"RAY_DEDUP_LOGS=0", "RAY_gcs_server_port_wait_time_s=" + strconv.Itoa(rayStarting),
	"RAY_DASHBOARD_STARTUP_TIMEOUT_S=" + strconv.Itoa(rayStarting), "RAY_agent_register_timeout_ms=" + strconv.Itoa(1000*rayStarting),
	"RAY_worker_register_timeout_seconds=" + strconv.Itoa(rayStarting)}

// ray starts a Ray on every node, and on the first one the script, once all
// nodes have joined: it is the driver, and its own rank. Where the workers run,
// Ray decides. All of it belongs to the run: it goes on without a laptop, and
// ends with the script.
func ray(l layout) [][]Proc {
	plan := make([][]Proc, len(l.nodes))
	if l.job.Given {
		for i := range l.nodes {
			plan[i] = []Proc{{Name: "ray", Argv: []string{"ray", "start"}, Log: "agent.log", Helper: true}}
		}
		plan[0][0].Argv = append(plan[0][0].Argv, "--head")
		plan[0] = append(plan[0], l.rayDriver())
		return plan
	}
	for i := range l.nodes {
		p := Proc{Name: "ray", Env: append(unset(slices.Clone(rayEnv), l.job.Env), l.commonEnv(i)...), Argv: l.rayStart(i), Log: "agent.log", Helper: true}
		if i > 0 {
			// One that comes before the head gives up after half a minute.
			p.After = l.rayReady("the head of Ray on node0", 0, 0)
		}
		plan[i] = []Proc{p}
	}
	driver := l.rayDriver("RAY_ADDRESS=" + joinHostPort(l.nodes[0].Host, l.port))
	driver.After = l.rayReady(fmt.Sprintf("Ray to show %d nodes and %d GPUs", len(l.nodes), l.gpus()), len(l.nodes), l.gpus())
	plan[0] = append(plan[0], driver)
	return plan
}

// rayDriver is the script, with more variables than all have.
func (l layout) rayDriver(more ...string) Proc {
	return Proc{
		Name: "rank-0", Ranks: []int{0}, Log: "rank-0.log", Argv: l.wrapped(),
		Env: append(unset(slices.Concat([]string{"RANK=0"}, more, []string{"RAY_DEDUP_LOGS=0", "RAY_TRAIN_V2_ENABLED=1",
			"RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S=" + strconv.Itoa(rayStarting),
			"DLWB_WORKERS=" + strconv.Itoa(l.world), "DLWB_GPUS=" + strconv.Itoa(l.gpus())}), l.job.Env), l.commonEnv(0)...),
	}
}

// gpus are those of all nodes.
func (l layout) gpus() (gpus int) {
	for node := range l.nodes {
		gpus += l.rayGPUs(node)
	}
	return gpus
}

// rayReady waits until Ray has so many nodes and GPUs.
func (l layout) rayReady(what string, nodes, gpus int) *Ready {
	return &Ready{What: what, Limit: rayLimit, Argv: []string{l.job.Python, "-c", rayLook, joinHostPort(l.nodes[0].Host, l.port),
		strconv.Itoa(nodes), strconv.Itoa(gpus), strconv.Itoa(rayPatience)}}
}

// rayStart is what a node runs as long as the run goes on.
func (l layout) rayStart(node int) []string {
	n := l.nodes[node]
	argv := []string{l.job.Python, l.runDir() + "/raystart.py", strconv.Itoa(rayStarting), "start", "--block", "--disable-usage-stats",
		"--node-ip-address=" + n.Host, "--node-name=" + nodeName(node),
		"--num-gpus=" + strconv.Itoa(l.rayGPUs(node)),
		// A free port for each worker: two nodes of one machine would take the same.
		"--min-worker-port=0", "--max-worker-port=0"}
	for i, option := range rayAgentPorts {
		argv = append(argv, option+l.portAt(rayAgents+l.before(node)*len(rayAgentPorts)+i))
	}
	switch {
	case n.Head: // nothing is placed there but the driver, and what asks for no processor
		argv = append(argv, "--num-cpus=0")
	case l.job.MaxThreads > 0:
		// The controller of a training needs one beside the workers.
		argv = append(argv, "--num-cpus="+strconv.Itoa(max(l.job.MaxThreads, l.procs[node]+1)))
	}
	if node > 0 {
		return append(argv, "--address="+joinHostPort(l.nodes[0].Host, l.port))
	}
	return append(argv, "--head", "--port="+l.port, "--dashboard-host=127.0.0.1", "--dashboard-port="+l.portAt(rayDashboard),
		"--ray-client-server-port="+l.portAt(rayClient),
		"--temp-dir="+l.rayDir())
}

// rayGPUs is how many GPUs Ray has of a node.
func (l layout) rayGPUs(node int) int {
	if l.nodes[node].Head {
		return 0
	}
	return l.nodes[node].GPUs
}

// raySocket is the longest of the paths below Ray's directory, at which sockets lie.
// A path of a socket may have 107 bytes.
const raySocket = "/session_2026-11-24_20-38-18_751733_1234567/sockets/plasma_store-node9999"

// rayDir is where Ray has its sockets and logs on node 0: of a long name of a run
// the end, which has the time and what tells it from others.
func (l layout) rayDir() string {
	const dir = "/tmp/ray-"
	run := l.job.Run
	return dir + run[max(0, len(run)-(107-len(dir)-len(raySocket))):]
}

// before is how many nodes before this one are on the same machine, or may be.
func (l layout) before(node int) (before int) {
	if l.job.Unplaced {
		return node
	}
	for _, n := range l.nodes[:node] {
		if n.Host == l.nodes[node].Host {
			before++
		}
	}
	return before
}

// nodeName is how dlwb calls a node.
func nodeName(node int) string { return "node" + strconv.Itoa(node) }

// rayOwnDashboard is where a Ray has its dashboard that somebody else starts.
const rayOwnDashboard = "8265"

func rayMore(l layout, p *Plan) {
	p.Leads = len(l.nodes) > 1
	if l.job.Given {
		p.Notes = append(p.Notes, rayNote(rayOwnDashboard))
		if l.nodes[0].Head {
			p.Notes = append(p.Notes, "node0 is one more: Ray's head, with the script and without GPUs")
		}
		return
	}
	p.Files = make([][]File, len(l.nodes))
	most := 0
	for node := range l.nodes {
		p.Files[node] = []File{{"raystart.py", rayBegin}}
		most = max(most, l.before(node))
	}
	p.Ports = rayAgents + (most+1)*len(rayAgentPorts)
	p.Notes = append(p.Notes, rayNote(l.portAt(rayDashboard)))
}

func rayNote(dashboard string) string {
	return "Ray's dashboard listens on node0, 127.0.0.1:" + dashboard + "; the script is the driver, and finds the number of workers in DLWB_WORKERS"
}

// rayCommand is how a job is handed to a Ray that is there. What it says of its
// own environment is not known here, and so refused: it belongs in the profile.
var rayCommand = launcherCommand{
	program: []string{"ray", "job", "submit"},
	options: map[string]option{
		"address": dropValue, "working_dir": dropValue, "no_wait": dropFlag, "submission_id": dropValue, "job_id": dropValue,
		"log_style": dropValue, "log_color": dropValue, "verify": dropValue, "headers": dropValue,
	},
}

func unwrapRay(j *Job) ([]string, bool, error) {
	_, notes, ok, err := rayCommand.unwrap(j)
	return notes, ok, err
}
