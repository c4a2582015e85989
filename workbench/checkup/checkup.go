// Package checkup looks at the nodes of a cluster before the money is spent: the
// driver against the framework, what the framework sees, clock, disk and memory, and
// an all-reduce across all nodes. It changes nothing.
package checkup

import (
	"context"
	_ "embed" // what runs on the nodes
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
)

//go:embed scripts/look.py
var lookScript string

// Cluster is what is looked at.
type Cluster struct {
	Nodes  []*remote.Node
	Places []cloud.Node
	Envs   []environment.Result // none: the environment was not made yet

	first int // the node of the cluster that Nodes begins with
}

// led is 1 where the first node only leads the others, else 0.
func (c Cluster) led() int {
	if len(c.Places) > 0 && c.Places[0].Head {
		return 1
	}
	return 0
}

// training is the cluster without the node that only leads.
func (c Cluster) training() Cluster {
	led := c.led()
	c.Nodes, c.Places, c.first = c.Nodes[led:], c.Places[led:], c.first+led
	c.Envs = c.Envs[min(led, len(c.Envs)):]
	return c
}

// name is what a node of Nodes is called.
func (c Cluster) name(i int) string { return fmt.Sprintf("node%d", c.first+i) }

// Of reads the nodes of a cluster from its record.
func Of(record []byte, node func(i int) (*remote.Node, error)) (Cluster, error) {
	var data struct {
		Cluster cloud.Cluster        `json:"cluster"`
		Envs    []environment.Result `json:"environments"`
	}
	if err := json.Unmarshal(record, &data); err != nil {
		return Cluster{}, fmt.Errorf("read the record of the cluster: %w", err)
	}
	c := Cluster{Places: data.Cluster.Nodes, Envs: data.Envs}
	for i := range data.Cluster.Nodes {
		n, err := node(i)
		if err != nil {
			return c, err
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c, nil
}

// python starts the interpreter of a node.
func (c Cluster) python(node int) []string {
	if env, made := environment.OfNode(c.Envs, node); made && env.Python != "" {
		return append(append([]string{}, env.Wrap...), env.Python)
	}
	return []string{"python3"}
}

// framework is what one framework says of itself.
type framework struct {
	Version string `json:"version"`
	Cuda    string `json:"cuda"`
	GPUs    int    `json:"gpus"`
	Works   bool   `json:"works"`
	NCCL    bool   `json:"nccl"`
	Gloo    bool   `json:"gloo"`
	Error   string `json:"error"`
}

// seen is what a node says of itself.
type seen struct {
	Time        float64              `json:"time"`
	Python      string               `json:"python"`
	GPUs        [][]string           `json:"gpus"` // name, driver, memory
	DriverError string               `json:"driver_error"`
	DiskFree    int64                `json:"disk_free"`
	MemoryFree  int64                `json:"memory_free"`
	Shm         int64                `json:"shm"`
	Frameworks  map[string]framework `json:"frameworks"`

	skew, doubt time.Duration // of its clock against this machine's
	err         string
}

// lookLimit bounds the look at a node: a framework takes its time to be loaded.
const lookLimit = 3 * time.Minute

// Look looks at everything.
func (c Cluster) Look(ctx context.Context) []cloud.Finding {
	nodes := make([]seen, len(c.Nodes))
	var all sync.WaitGroup
	for i := range c.Nodes {
		all.Go(func() { nodes[i] = c.look(ctx, i) })
	}
	all.Wait()
	var findings []cloud.Finding
	whole := true
	for i, n := range nodes {
		who := fmt.Sprintf("node%d", i)
		if n.err != "" {
			findings = append(findings, cloud.Finding{What: who, Text: n.err, Next: "dlwb ssh shows it from near; dlwb up sets its environment up"})
			whole = false
			continue
		}
		if i >= c.led() { // the image's driver finds nothing on a head, and fails
			findings = append(findings, n.gpus(who))
		}
		findings = append(findings, n.clock(who))
		findings = append(findings, n.frameworks(who)...)
		findings = append(findings, n.room(who)...)
	}
	if !whole {
		return append(findings, cloud.Unchecked("network", "not all nodes answer", "mend those above first"))
	}
	return append(findings, differs(nodes, c.led())...)
}

// look asks one node. Its clock is read between two looks at ours.
func (c Cluster) look(ctx context.Context, i int) (s seen) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	began := time.Now()
	clock, err := c.Nodes[i].Exec(ctx, remote.Cmd{Line: "date +%s.%N"})
	s.doubt = time.Since(began) / 2
	if err != nil {
		return seen{err: err.Error()}
	}
	there, clockErr := strconv.ParseFloat(strings.TrimSpace(string(clock.Stdout)), 64)
	skew := time.Duration(there*float64(time.Second)) - time.Duration(began.Add(s.doubt).UnixNano())
	doubt := s.doubt
	r, err := c.Nodes[i].Exec(ctx, remote.Cmd{Line: shellword.Join(append(c.python(i), "-")...), Stdin: strings.NewReader(lookScript), Quiet: lookLimit})
	switch {
	case err != nil:
		return seen{err: err.Error()}
	case r.ExitCode != 0:
		return seen{err: fmt.Sprintf("%s ended with %d: %s", strings.Join(c.python(i), " "), r.ExitCode, lastLine(r.Stderr))}
	}
	if err := json.Unmarshal([]byte(lastLine(r.Stdout)), &s); err != nil {
		return seen{err: "what it said could not be read: " + err.Error()}
	}
	s.skew, s.doubt = skew, doubt
	if clockErr != nil { // date without fractions: the node's Python says it, later
		s.skew, s.doubt = 0, time.Minute
	}
	return s
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// The bounds of what is worth a word.
const (
	clockMost  = 2 * time.Second
	diskLeast  = 5 << 30
	memLeast   = 1 << 30
	shmLeast   = 256 << 20
	shmPerGPU  = 1 << 30
	shmDefault = 64 << 20 // what a container gets without a word
)

func (s seen) gpus(who string) cloud.Finding {
	f := cloud.Finding{OK: true, What: who + " driver"}
	switch {
	case s.DriverError != "":
		f.OK, f.Text, f.Next = false, "nvidia-smi: "+s.DriverError, "install the driver that fits the kernel, or start the machine again"
	case len(s.GPUs) == 0:
		f.Text = "no NVIDIA GPU"
	default:
		f.Text = fmt.Sprintf("%s: %d × %s, driver %s", units.Count(len(s.GPUs), "GPU"), len(s.GPUs), field(s.GPUs[0], 0), field(s.GPUs[0], 1))
	}
	return f
}

func field(row []string, i int) string {
	if i < len(row) {
		return row[i]
	}
	return "?"
}

func (s seen) clock(who string) cloud.Finding {
	f := cloud.Finding{OK: true, What: who + " clock"}
	off := s.skew.Abs()
	f.Text = fmt.Sprintf("%s from this machine's, ±%s", units.Duration(off.Round(time.Millisecond)), units.Duration(s.doubt.Round(time.Millisecond)))
	if off-s.doubt > clockMost {
		f.State, f.Next = cloud.Warned, "set it by NTP: sudo timedatectl set-ntp true; times of logs and checkpoints are told by it"
	}
	return f
}

// frameworks hold what the frameworks see against what the driver has.
func (s seen) frameworks(who string) (all []cloud.Finding) {
	for _, name := range slices.Sorted(maps.Keys(s.Frameworks)) {
		fw := s.Frameworks[name]
		f := cloud.Finding{OK: true, What: who + " " + name, Text: fmt.Sprintf("%s %s, sees %s", name, fw.Version, units.Count(fw.GPUs, "GPU"))}
		if fw.Cuda != "" {
			f.Text += ", built for CUDA " + fw.Cuda
		}
		switch {
		case fw.Error != "":
			f.OK, f.Text, f.Next = false, name+" can't be loaded: "+fw.Error, "dlwb up --force makes the environment again"
		case len(s.GPUs) > 0 && fw.Cuda == "" && !fw.Works:
			f.OK, f.Next = false, "this build has no CUDA: install one that has"
		case len(s.GPUs) > 0 && !fw.Works:
			f.OK, f.Next = false, fmt.Sprintf("the driver %s is too old for CUDA %s, or the device is busy: renew the driver, or install a build for an older CUDA", field(s.GPUs[0], 1), fw.Cuda)
		case fw.GPUs < len(s.GPUs):
			f.OK, f.Next = false, fmt.Sprintf("the node has %d: look at CUDA_VISIBLE_DEVICES, and dmesg for a GPU that fell off the bus", len(s.GPUs))
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		all = append(all, cloud.Finding{OK: true, State: cloud.Warned, What: who + " framework", Text: "Python " + s.Python + " has none of torch, tensorflow and jax",
			Next: "name them in the file of the environment, then dlwb up"})
	}
	return all
}

// room is the disk, the memory and the shared memory.
func (s seen) room(who string) []cloud.Finding {
	disk := cloud.Finding{OK: true, What: who + " disk", Text: units.Bytes(s.DiskFree) + " free in the home"}
	if s.DiskFree < diskLeast {
		disk.State, disk.Next = cloud.Warned, "free some, or raise machines.disk: checkpoints and logs need it"
	}
	mem := cloud.Finding{OK: true, What: who + " memory", Text: fmt.Sprintf("%s free, shared memory %s", units.Binary(s.MemoryFree), units.Binary(s.Shm))}
	switch {
	case s.MemoryFree < memLeast:
		mem.State, mem.Next = cloud.Warned, "end what uses it"
	case s.Shm < shmLeast || s.Shm < shmPerGPU*int64(len(s.GPUs)) && s.Shm <= shmDefault:
		mem.State, mem.Next = cloud.Warned, "workers of data loaders share it: sudo mount -o remount,size=8G /dev/shm; fewer workers need less"
	}
	return []cloud.Finding{disk, mem}
}

// differs says what is not the same on all nodes.
// GPUs are those of the nodes from training on.
func differs(nodes []seen, training int) (all []cloud.Finding) {
	check := func(what string, first int, of func(seen) string) {
		for i := first + 1; i < len(nodes); i++ {
			if a, b := of(nodes[first]), of(nodes[i]); a != b {
				all = append(all, cloud.Finding{OK: true, State: cloud.Warned, What: what, Text: fmt.Sprintf("node%d has %s, node%d has %s", first, orNone(a), i, orNone(b)),
					Next: "nodes of one run should have the same: dlwb up sets the environment up on all"})
				return
			}
		}
	}
	known := map[string]bool{}
	for _, n := range nodes {
		for name := range n.Frameworks {
			known[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		check(name, 0, func(s seen) string { return s.Frameworks[name].Version })
	}
	check("GPUs", training, func(s seen) string { return strconv.Itoa(len(s.GPUs)) })
	return all
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
